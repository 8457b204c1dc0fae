/** What can be written next: streams and attributes that one may know of, words of the language, functions. */
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { Diagnostic } from "@codemirror/lint";
import { post } from "../../api/client";
import type { Drawn, Stream, Vocabulary } from "../../api/types";
import { toUnits } from "../../ui/format";

export function makeCompletion(streams: Stream[], words: Vocabulary | null) {
  const options: Completion[] = [
    ...streams.map((each) => ({ label: each.name, type: "class", detail: "stream", boost: 3 })),
    ...listAttributes(streams),
    ...(words?.aggregates ?? []).map((name) => ({ label: name, type: "function", detail: "aggregate", apply: `${name}(` })),
    ...(words?.functions ?? []).map((each) => ({ label: each.name, type: "function", detail: each.told, apply: `${each.name}(` })),
    ...(words?.keywords ?? []).map((name) => ({ label: name, type: "keyword", boost: -1 })),
  ];
  return (context: CompletionContext): CompletionResult | null => {
    const dotted = context.matchBefore(/\w+\.\w*/);
    if (dotted) {
      const [alias = ""] = dotted.text.split(".");
      const found = streams.find((each) => each.name === alias);
      if (!found) return null;
      const own = found.attributes.map((each) => ({ label: each.name, type: "property", detail: each.type }));
      return { from: dotted.from + alias.length + 1, options: own };
    }
    const word = context.matchBefore(/\w+/);
    return word || context.explicit ? { from: word?.from ?? context.pos, options, validFor: /^\w*$/ } : null;
  };
}

function listAttributes(streams: Stream[]): Completion[] {
  const seen = new Map<string, Completion>();
  for (const stream of streams) {
    for (const each of stream.attributes) {
      const known = seen.get(each.name);
      const detail = known ? `${known.detail}, ${stream.name}` : `${each.type} of ${stream.name}`;
      seen.set(each.name, { label: each.name, type: "property", detail, boost: 2 });
    }
  }
  return [...seen.values()];
}

/** What the gateway's own reader says of the text; nothing is decided or recorded by asking. */
export async function checkQuery(text: string, keep: (found: Drawn) => void): Promise<Diagnostic[]> {
  if (!text.trim()) return [];
  const found = await post<Drawn>("/v1/graph/read", { query: text }).catch(() => null);
  if (!found) return [];
  keep(found);
  return found.problems.map((each) => ({
    from: toUnits(text, each.start ?? 0),
    to: Math.max(toUnits(text, each.end ?? 0), toUnits(text, each.start ?? 0)),
    severity: each.severity === "warning" ? "warning" : "error",
    message: each.help ? `${each.message}\n${each.help}` : each.message,
  }));
}

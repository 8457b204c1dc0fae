/** A text editor for queries and statements: keywords in colour, completion, and what is wrong underlined. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionSource } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { linter, type Diagnostic } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { nonce } from "./nonce";

const WORDS = new Set(
  (
    "SELECT FROM WHERE GROUP BY HAVING JOIN ON AND OR NOT IN IS NULL LIKE BETWEEN AS UNION ALL CASE WHEN THEN ELSE END CAST " +
    "RANGE ROWS SLIDE WINDOW UNITED START AT LATEST EARLIEST TIMESTAMP RESULT DISTINCT TRUE FALSE CREATE DROP GRANT READ " +
    "APPEND STREAM ROLE USER SET FACT PUBLIC TO WITH OPTION STEP LEAST MIN DURING ALTER REPLACE ROLES POLYGON CASCADE " +
    "AGGREGATE NARROW OWNER WATERMARK INHERITS FOLLOW WITHIN INSERT SP INTO LET"
  ).split(" "),
);

const language = StreamLanguage.define<null>({
  startState: () => null,
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match("--")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match(/^'(?:[^']|'')*'?/)) return "string";
    if (stream.match(/^"(?:[^"]|"")*"?/)) return "variableName";
    if (stream.match(/^\d+(?:\.\d+)?/)) return "number";
    const word = stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null;
    if (word) return WORDS.has(word[0].toUpperCase()) ? "keyword" : stream.peek() === "(" ? "function" : "variableName";
    stream.next();
    return "operator";
  },
  tokenTable: { function: tags.function(tags.variableName) },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent-strong)", fontWeight: "600" },
  { tag: tags.string, color: "var(--good)" },
  { tag: tags.number, color: "var(--warn)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.function(tags.variableName), color: "var(--policy)" },
]);

const look = EditorView.theme({
  "&": { fontSize: "0.92rem", backgroundColor: "var(--surface)", color: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", padding: "10px 0" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft) !important" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "8px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-diagnostic": { borderLeftColor: "var(--bad)", fontFamily: "var(--sans)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft) !important", color: "inherit !important" },
});

export interface Props {
  value: string;
  onChange: (text: string) => void;
  label: string;
  onRun?: () => void;
  complete?: CompletionSource;
  check?: (text: string) => Promise<Diagnostic[]>;
  hint?: string;
  minHeight?: number;
}

export function SqlEditor(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    if (!place.current) return;
    const completion = new Compartment();
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          EditorView.cspNonce.of(nonce),
          lineNumbers(),
          history(),
          drawSelection(),
          bracketMatching(),
          closeBrackets(),
          language,
          syntaxHighlighting(colours),
          look,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": props.label }),
          placeholder(props.hint ?? ""),
          completion.of(autocompletion({ override: [(context) => latest.current.complete?.(context) ?? null] })),
          linter(async (editor) => (await latest.current.check?.(editor.state.doc.toString())) ?? [], { delay: 350 }),
          keymap.of([
            { key: "Mod-Enter", run: () => (latest.current.onRun?.(), true) },
            ...closeBracketsKeymap,
            ...completionKeymap,
            ...historyKeymap,
            ...defaultKeymap,
          ]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
    // the editor is made once; what changes is read through `latest`
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== props.value) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.value } });
    }
  }, [props.value]);

  return <div ref={place} className="sql-editor" style={{ minHeight: props.minHeight ?? 96 }} />;
}

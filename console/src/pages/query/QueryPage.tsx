/** Write a query as text or as a graph, see what it may have, run it. */
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import type { PageProps } from "../../App";
import { get, post, tell } from "../../api/client";
import type { Drawn, Explanation, Query, Vocabulary } from "../../api/types";
import { go } from "../../ui/route";
import { SqlEditor } from "../../ui/SqlEditor";
import { Loading } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { Words } from "../../ui/Words";
import { checkQuery, makeCompletion } from "./completion";
import { Explain } from "./Explain";
import { SavedQueries } from "./SavedQueries";
import "./query.css";

const GraphEditor = lazy(() => import("../editor/GraphEditor"));
const DRAFT = "sluicegate.draft";

export default function QueryPage({ streams }: PageProps) {
  const [text, setText] = useState(() => sessionStorage.getItem(DRAFT) ?? "");
  const [mode, setMode] = useState<"text" | "graph">("text");
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [explained, setExplained] = useState<{ of: string; found: Explanation } | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const words = useLoaded((signal) => get<Vocabulary>("/v1/vocabulary", signal), []);
  const complete = useMemo(() => makeCompletion(streams, words.value), [streams, words.value]);

  useEffect(() => sessionStorage.setItem(DRAFT, text), [text]);

  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setWrong(null);
    try {
      await work();
    } catch (error) {
      setWrong(tell(error));
    } finally {
      setBusy(false);
    }
  };
  const explain = (): Promise<void> =>
    attempt(async () => setExplained({ of: text, found: await post<Explanation>("/v1/explain", { query: text, graphs: 0 }) }));
  const run = (): Promise<void> =>
    attempt(async () => {
      const made = await post<Query>("/v1/queries", { query: text });
      go("live", made.handle);
    });
  const problems = mode === "text" ? (drawn?.problems ?? []) : [];

  return (
    <>
      <div className="page-head">
        <h1>Query</h1>
        <div className="tabs" role="tablist" aria-label="How the query is written">
          <button role="tab" aria-selected={mode === "text"} onClick={() => setMode("text")}>
            Text
          </button>
          <button role="tab" aria-selected={mode === "graph"} onClick={() => setMode("graph")}>
            Graph
          </button>
        </div>
      </div>
      <section className="card editor" aria-label="The query">
        {mode === "text" ? (
          <SqlEditor
            label="Query"
            value={text}
            onChange={setText}
            onRun={() => void run()}
            complete={complete}
            check={(asked) => checkQuery(asked, setDrawn)}
            hint="SELECT … FROM …"
          />
        ) : (
          <Suspense fallback={<Loading label="Opening the graph" />}>
            <GraphEditor text={text} streams={streams} onText={setText} />
          </Suspense>
        )}
        <footer className="row apart">
          <div className="row">
            <button className="primary" disabled={busy || !text.trim()} onClick={() => void run()}>
              Run
            </button>
            <button disabled={busy || !text.trim()} onClick={() => void explain()}>
              Explain
            </button>
          </div>
          <span className="muted small">{mode === "text" ? "Ctrl+Space completes, Ctrl+Enter runs" : "The text follows the graph"}</span>
        </footer>
      </section>
      {problems.length > 0 && text.trim() && (
        <ul className="problems" aria-label="What is wrong with the query">
          {problems.map((each, at) => (
            <li key={at} className={`note ${each.severity === "warning" ? "warn" : "bad"}`}>
              <span>
                <Words of={each.message} /> <code>{each.code}</code>
              </span>
              {each.help && (
                <span className="small">
                  <Words of={each.help} />
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {wrong && (
        <div className="note bad" role="alert">
          <Words of={wrong} />
        </div>
      )}
      <div className={explained ? "query-below" : "query-below alone"}>
        {explained && <Explain found={explained.found} isOld={explained.of !== text} />}
        <SavedQueries text={text} open={setText} />
      </div>
    </>
  );
}

/** Policies, for administrators and owners of streams: look, search, try a change, make it, take it back. */
import { useMemo, useState } from "react";
import type { PageProps } from "../../App";
import { get } from "../../api/client";
import { Busy, Empty } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { ChangePanel } from "./ChangePanel";
import { FactsView } from "./FactsView";
import { HistoryView } from "./HistoryView";
import { StatementList } from "./StatementList";
import { listStatements, writeDrop, writeEdit, type Statement } from "./statements";
import { UsersView } from "./UsersView";
import { WhoView } from "./WhoView";
import "./policies.css";

type Tab = "statements" | "facts" | "users" | "who" | "history";

export default function PoliciesPage({ me, streams }: PageProps) {
  const [tab, setTab] = useState<Tab>("statements");
  const [text, setText] = useState("");
  const [turn, setTurn] = useState(0);
  const done = (): void => setTurn((each) => each + 1);
  const write = (statement: string): void => {
    setText(statement);
    document.querySelector<HTMLElement>("[aria-label='Statements'].cm-content")?.focus();
    window.scrollTo({ top: 0, behavior: "smooth" });
  };
  const owned = me.is_admin ? streams : streams.filter((each) => each.is_owner);
  const tabs: [Tab, string, boolean][] = [
    ["statements", me.is_admin ? "All policies" : "My policies", true],
    ["facts", "Facts", true],
    ["users", "Users and roles", me.is_admin],
    ["who", "Who can see this", true],
    ["history", "History", true],
  ];
  return (
    <>
      <div className="page-head">
        <h1>Policies</h1>
      </div>
      <ChangePanel text={text} setText={setText} done={done} />
      <section className="card" aria-label="The catalog">
        <header className="with-tabs">
          <div className="tabs" role="tablist" aria-label="Parts of the catalog">
            {tabs
              .filter(([, , can]) => can)
              .map(([key, title]) => (
                <button key={key} role="tab" aria-selected={tab === key} onClick={() => setTab(key)}>
                  {title}
                </button>
              ))}
          </div>
        </header>
        {tab === "statements" && <Statements turn={turn} write={write} />}
        {tab === "facts" && <FactsView turn={turn} write={write} />}
        {tab === "users" && <UsersView turn={turn} write={write} />}
        {tab === "who" && <WhoView streams={owned} />}
        {tab === "history" && <HistoryView me={me} turn={turn} done={done} />}
      </section>
    </>
  );
}

function Statements({ turn, write }: { turn: number; write: (text: string) => void }) {
  const found = useLoaded((signal) => get<{ version: number; text: string }>("/v1/catalog", signal), [turn]);
  return <Busy of={found}>{({ text, version }) => <Listed key={version} text={text} write={write} />}</Busy>;
}

function Listed({ text, write }: { text: string; write: (text: string) => void }) {
  const statements = useMemo(() => listStatements(text), [text]);
  const [chosen, setChosen] = useState<Statement | null>(null);
  if (!statements.length) return <Empty title="There is no policy of yours">Grants on your streams appear here.</Empty>;
  return (
    <>
      <StatementList statements={statements} chosen={chosen} choose={setChosen} />
      {chosen && (
        <div className="body stack tight chosen">
          <pre>{chosen.text}</pre>
          <div className="row">
            <button className="mini" onClick={() => write(writeEdit(chosen))}>
              Edit
            </button>
            <button className="mini danger" onClick={() => write(writeDrop(chosen))}>
              {chosen.kind === "GRANT" ? "Revoke" : "Drop"}
            </button>
          </div>
        </div>
      )}
    </>
  );
}

/** How things run: queries and their switches, feeds and what they refused, counters, the audit trail. */
import { useState } from "react";
import type { PageProps } from "../../App";
import { AuditView } from "./AuditView";
import { CountersView } from "./CountersView";
import { FeedsView } from "./FeedsView";
import { NetworkView } from "./NetworkView";
import { SharedNetwork } from "./SharedNetwork";
import "./operations.css";

type Tab = "queries" | "network" | "feeds" | "counters" | "audit";

export default function OperationsPage({ me, streams }: PageProps) {
  const owned = me.is_admin ? streams : streams.filter((each) => each.is_owner);
  const tabs: [Tab, string, boolean][] = [
    ["queries", "Running queries", true],
    ["network", "Shared network", me.is_admin],
    ["feeds", "Feeds", owned.length > 0],
    ["counters", "Counters", me.is_admin],
    ["audit", "Audit trail", true],
  ];
  const [tab, setTab] = useState<Tab>("queries");
  return (
    <>
      <div className="page-head">
        <h1>Operations</h1>
      </div>
      <section className="card" aria-label="Operations">
        <header className="with-tabs">
          <div className="tabs" role="tablist" aria-label="Parts of operations">
            {tabs
              .filter(([, , can]) => can)
              .map(([key, title]) => (
                <button key={key} role="tab" aria-selected={tab === key} onClick={() => setTab(key)}>
                  {title}
                </button>
              ))}
          </div>
        </header>
        {tab === "queries" && <NetworkView me={me} />}
        {tab === "network" && <SharedNetwork />}
        {tab === "feeds" && <FeedsView streams={owned} />}
        {tab === "counters" && <CountersView />}
        {tab === "audit" && <AuditView me={me} />}
      </section>
    </>
  );
}

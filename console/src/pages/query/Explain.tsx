/** The decision on a query: what comes back, what is withheld and why, and the graph before and after policies. */
import { useState } from "react";
import type { Explanation, Notice } from "../../api/types";
import { show } from "../../ui/format";
import { GraphView } from "../../ui/GraphView";
import { Words } from "../../ui/Words";

export const DECISIONS: Record<string, { title: string; tone: string; told: string }> = {
  permit: { title: "Permitted", tone: "good", told: "Everything that the query asks for may come back." },
  partial: { title: "In part", tone: "warn", told: "Some of what the query asks for is or may be withheld." },
  empty: { title: "Empty", tone: "warn", told: "Nothing can come back: the query contradicts itself or what you may see." },
  deny: { title: "Denied", tone: "bad", told: "No grant lets you ask this." },
};

export function DecisionBadge({ decision }: { decision: string }) {
  const found = DECISIONS[decision];
  return <span className={`badge ${found?.tone ?? ""}`}>{found?.title ?? decision}</span>;
}

export function Explain({ found, isOld }: { found: Explanation; isOld: boolean }) {
  const [which, setWhich] = useState<"after" | "before">("after");
  const graph = which === "after" && found.plan ? found.plan.graph : found.graph;
  const used = found.reasons.filter((each) => each.used);
  const others = found.reasons.filter((each) => !each.used);
  return (
    <section className="card" aria-label="Explanation">
      <header>
        <h2>Explanation</h2>
        <DecisionBadge decision={found.decision} />
        {isOld && <span className="badge">the query was changed since</span>}
        <span className="muted small push">catalog version {found.version}</span>
      </header>
      <div className="body stack">
        <p>{DECISIONS[found.decision]?.told}</p>
        {found.notices.map((each, at) => (
          <NoticeView key={at} notice={each} />
        ))}
        <div className="stack tight">
          <div className="row apart">
            <div className="tabs" role="tablist" aria-label="Graph">
              <button role="tab" aria-selected={which === "before"} onClick={() => setWhich("before")}>
                As asked
              </button>
              <button role="tab" aria-selected={which === "after"} disabled={!found.plan} onClick={() => setWhich("after")}>
                As it runs
              </button>
            </div>
            {which === "after" && found.plan && <span className="badge policy">put there by policies</span>}
          </div>
          {which === "after" && !found.plan ? (
            <p className="muted">Nothing would run.</p>
          ) : (
            <GraphView graph={graph} label={which === "after" ? "The query as it runs" : "The query as asked"} />
          )}
        </div>
        <GrantReasons title="Grants used" list={used} />
        <GrantReasons title="Grants not used" list={others} />
      </div>
    </section>
  );
}

function NoticeView({ notice }: { notice: Notice }) {
  const witness = Object.entries(notice.witness ?? {});
  return (
    <div className={`note ${notice.code === "PR" ? "warn" : "bad"}`}>
      <div>
        <strong>
          <Words of={notice.message.charAt(0).toUpperCase() + notice.message.slice(1)} />.
        </strong> <code>{notice.code}</code>
      </div>
      {witness.length > 0 && (
        <div className="small">
          For instance a tuple with {witness.map(([name, value]) => `${name} = ${show(value) || "NULL"}`).join(", ")} would be asked for and withheld.
        </div>
      )}
    </div>
  );
}

function GrantReasons({ title, list }: { title: string; list: { grant: string; reason: string }[] }) {
  if (!list.length) return null;
  return (
    <div className="stack tight">
      <h3>{title}</h3>
      <ul className="reasons">
        {list.map((each) => (
          <li key={each.grant}>
            <strong>{each.grant}</strong>{" "}
            <span className="muted">
              — <Words of={each.reason} />
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

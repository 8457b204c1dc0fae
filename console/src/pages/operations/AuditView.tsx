/** The audit trail: who did what, by which grants, with what decision. Others than administrators see their own. */
import { useState } from "react";
import { get } from "../../api/client";
import type { AuditEvent, Me } from "../../api/types";
import { showTime } from "../../ui/format";
import { Busy, Empty } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { VirtualTable } from "../../ui/VirtualTable";

const COLUMNS = [
  { key: "time", title: "When", width: "225px" },
  { key: "principal", title: "Who", width: "minmax(90px, 130px)" },
  { key: "action", title: "Did", width: "130px" },
  { key: "subject", title: "What", width: "minmax(240px, 1fr)" },
  { key: "decision", title: "Decision", width: "110px" },
  { key: "grants", title: "By grants", width: "minmax(120px, 220px)" },
];
const SPANS: [string, number][] = [
  ["the last hour", 3600],
  ["the last day", 86_400],
  ["the last week", 604_800],
  ["the last year", 31_536_000],
];

export function AuditView({ me }: { me: Me }) {
  const [text, setText] = useState("");
  const [principal, setPrincipal] = useState("");
  const [action, setAction] = useState("");
  const [span, setSpan] = useState(86_400);
  const [chosen, setChosen] = useState<AuditEvent | null>(null);
  const found = useLoaded(
    (signal) => {
      const since = new Date(Date.now() - span * 1000).toISOString().slice(0, 19);
      const asked = new URLSearchParams({ since, limit: "10000" });
      for (const [name, value] of Object.entries({ text, principal, action })) if (value.trim()) asked.set(name, value.trim());
      return get<{ events: AuditEvent[]; next: number | null }>(`/v1/audit?${asked.toString()}`, signal);
    },
    [text, principal, action, span],
    10_000,
  );
  return (
    <>
      <div className="body filters">
        <input type="search" aria-label="Search the trail" placeholder="Search…" value={text} onChange={(event) => setText(event.target.value)} />
        {me.is_admin && <input aria-label="Who" placeholder="Who" value={principal} onChange={(event) => setPrincipal(event.target.value)} />}
        <input aria-label="Action" placeholder="Action" value={action} onChange={(event) => setAction(event.target.value)} />
        <select aria-label="Since" value={span} onChange={(event) => setSpan(Number(event.target.value))}>
          {SPANS.map(([title, seconds]) => (
            <option key={seconds} value={seconds}>
              {title}
            </option>
          ))}
        </select>
      </div>
      <Busy of={found}>
        {({ events, next }) =>
          events.length === 0 ? (
            <Empty title="Nothing was recorded">Choose a longer time, or search for less.</Empty>
          ) : (
            <>
              {next !== null && <p className="body muted small">Only the first 10,000 of this time are shown; search for something narrower.</p>}
              <VirtualTable
                label="Audit trail, the newest first"
                columns={COLUMNS}
                rows={[...events].reverse()}
                rowKey={(row) => row.number}
                onRow={setChosen}
                cell={(row, key) =>
                  key === "time" ? (
                    <button className="quiet mini" onClick={() => setChosen(row)}>
                      {showTime(row.time)}
                    </button>
                  ) : key === "grants" ? (
                    row.grants.join(", ")
                  ) : (
                    String(row[key as keyof AuditEvent] ?? "")
                  )
                }
              />
            </>
          )
        }
      </Busy>
      {chosen && (
        <div className="body stack tight chosen" aria-label="The chosen event">
          <strong>
            {chosen.principal} · {chosen.action}
          </strong>
          <pre>{chosen.subject}</pre>
          {chosen.notices.map((each) => (
            <span key={each} className="small">
              {each}
            </span>
          ))}
          <span className="muted small">
            event {chosen.number}, catalog version {chosen.version}
            {chosen.request ? `, request ${chosen.request}` : ""}
          </span>
        </div>
      )}
    </>
  );
}

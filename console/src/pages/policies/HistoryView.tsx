/** Every version: who made it, why, what it says, what is different by it, and the way back. */
import { useState } from "react";
import { get, post, tell } from "../../api/client";
import type { HistoryEntry, Me } from "../../api/types";
import { showTime } from "../../ui/format";
import { Busy, Empty, Loading } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";

interface Diff {
  removed: string[];
  added: string[];
}

const SHOWN = 100;

export function HistoryView({ me, turn, done }: { me: Me; turn: number; done: () => void }) {
  const found = useLoaded(
    async (signal) => {
      const { version } = await get<{ version: number }>("/v1/catalog/version", signal);
      const after = Math.max(0, version - SHOWN);
      return get<{ version: number; entries: HistoryEntry[] }>(`/v1/catalog/history?limit=1000${me.is_admin ? `&after=${after}` : ""}`, signal);
    },
    [turn],
  );
  return (
    <Busy of={found}>
      {({ entries, version }) =>
        entries.length === 0 ? (
          <Empty title="You made no change yet" />
        ) : (
          <ol className="history">
            {[...entries].reverse().map((each) => (
              <Version key={each.version} entry={each} me={me} isNow={each.version === version} done={done} />
            ))}
          </ol>
        )
      }
    </Busy>
  );
}

function Version({ entry, me, isNow, done }: { entry: HistoryEntry; me: Me; isNow: boolean; done: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const back = (): void => {
    if (!window.confirm(`Go back to the state of version ${entry.version}? Running queries are rewritten or withdrawn.`)) return;
    post("/v1/catalog/rollback", { version: entry.version, reason: `back to version ${entry.version}` }).then(done, (error: unknown) => setWrong(tell(error)));
  };
  return (
    <li>
      <div className="row">
        <strong>Version {entry.version}</strong>
        {isNow && <span className="badge good">in force</span>}
        <span className="muted small">
          {entry.actor}, {showTime(entry.time)}
        </span>
        <span className="row push">
          <button className="mini" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "Hide" : "Show"}
          </button>
          {me.is_admin && !isNow && (
            <button className="mini" onClick={back}>
              Go back to it
            </button>
          )}
        </span>
      </div>
      {entry.reason && <p className="small">{entry.reason}</p>}
      {wrong && <p className="wrong">{wrong}</p>}
      {isOpen && (me.is_admin ? <DiffView version={entry.version} /> : <pre className="small">{entry.statements.join("\n")}</pre>)}
    </li>
  );
}

function DiffView({ version }: { version: number }) {
  const found = useLoaded((signal) => get<Diff>(`/v1/catalog/diff?before=${version - 1}&after=${version}`, signal), [version]);
  if (!found.value) return found.error ? <p className="wrong">{tell(found.error)}</p> : <Loading />;
  const { removed, added } = found.value;
  return (
    <div className="diff" role="group" aria-label={`What version ${version} changed`}>
      {removed.slice(0, 500).map((each) => (
        <pre key={`-${each}`} className="gone">
          − {each}
        </pre>
      ))}
      {added.slice(0, 500).map((each) => (
        <pre key={`+${each}`} className="new">
          + {each}
        </pre>
      ))}
      {removed.length + added.length > 1000 && <p className="muted small">The rest is not shown.</p>}
    </div>
  );
}

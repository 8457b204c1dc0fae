/** A change of the catalog: write it, see which running queries it would touch, make it. */
import { useState } from "react";
import { ApiError, get, post, tell } from "../../api/client";
import type { Changed, Query } from "../../api/types";
import { toUnits } from "../../ui/format";
import { SqlEditor } from "../../ui/SqlEditor";
import { Words } from "../../ui/Words";

interface Outcome {
  made: Changed;
  queries: Query[];
}

interface Props {
  text: string;
  setText: (text: string) => void;
  done: () => void;
}

/** What is known of the queries behind handles: all to an administrator, to others their own. */
async function describe(handles: string[]): Promise<Query[]> {
  if (!handles.length) return [];
  const { queries } = await get<{ queries: Query[] }>("/v1/queries");
  return queries.filter((each) => handles.includes(each.handle));
}

export function ChangePanel({ text, setText, done }: Props) {
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [wrong, setWrong] = useState<ApiError | string | null>(null);

  const run = async (dry: boolean): Promise<void> => {
    setBusy(true);
    setWrong(null);
    setOutcome(null);
    try {
      const asked = { statements: text, reason, dry_run: dry };
      const before = dry ? null : await post<Changed>("/v1/catalog", { ...asked, dry_run: true });
      const known = before ? await describe(before.queries) : [];
      const made = await post<Changed>("/v1/catalog", asked);
      setOutcome({ made, queries: dry ? await describe(made.queries) : known });
      if (!dry) {
        setText("");
        setReason("");
        done();
      }
    } catch (error) {
      setWrong(error instanceof ApiError ? error : tell(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <section className="card" aria-label="Change">
      <header>
        <h2>Change</h2>
        <span className="muted small">Statements of one change are made together, or not at all.</span>
      </header>
      <SqlEditor label="Statements" value={text} onChange={setText} hint="CREATE GRANT … ;" minHeight={110} check={() => Promise.resolve(mark(wrong, text))} />
      <div className="body stack">
        <div className="row">
          <div className="grow">
            <label className="hidden-label" htmlFor="reason">
              Reason
            </label>
            <input id="reason" value={reason} maxLength={2000} placeholder="Why, for the history" onChange={(event) => setReason(event.target.value)} />
          </div>
          <button disabled={busy || !text.trim()} onClick={() => void run(true)}>
            Dry run
          </button>
          <button className="primary" disabled={busy || !text.trim()} onClick={() => void run(false)}>
            Make the change
          </button>
        </div>
        {wrong && <Wrong wrong={wrong} />}
        {outcome && <Told outcome={outcome} />}
      </div>
    </section>
  );
}

function mark(wrong: ApiError | string | null, text: string): { from: number; to: number; severity: "error"; message: string }[] {
  if (!(wrong instanceof ApiError)) return [];
  return wrong.places
    .filter((each) => each.end <= [...text].length)
    .map((each) => ({ from: toUnits(text, each.start), to: toUnits(text, each.end), severity: "error", message: each.message }));
}

function Wrong({ wrong }: { wrong: ApiError | string }) {
  if (typeof wrong === "string") return <div className="note bad">{wrong}</div>;
  const messages = [wrong.message, ...wrong.more.map((each) => each.message)];
  return (
    <div className="note bad" role="alert">
      {messages.map((each, at) => (
        <span key={at}>
          <Words of={each} />
        </span>
      ))}
      {wrong.help && (
        <span className="small">
          <Words of={wrong.help} />
        </span>
      )}
    </div>
  );
}

/** `These 3 running queries will change; 1 of them will be withdrawn:` */
function tellTouched({ changed, withdrawn, dry_run: dry }: Changed): string {
  const count = changed + withdrawn;
  const gone = dry ? "will be withdrawn" : withdrawn === 1 ? "was withdrawn" : "were withdrawn";
  if (!count) return `No running query ${dry ? "will change" : "changed"}.`;
  const who = count === 1 ? "This running query" : `These ${count} running queries`;
  if (withdrawn === count) return `${who} ${gone}:`;
  return `${who} ${dry ? "will change" : "changed"}${withdrawn ? `; ${withdrawn} of them ${gone}` : ""}:`;
}

function Told({ outcome: { made, queries } }: { outcome: Outcome }) {
  const count = made.changed + made.withdrawn;
  return (
    <div className={`note ${made.dry_run ? "" : "good"}`} role="status">
      <strong>{made.dry_run ? "Nothing was changed yet." : `Version ${made.version} is in force.`}</strong>
      <span>{tellTouched(made)}</span>
      <ul className="touched">
        {queries.map((each) => (
          <li key={each.handle}>
            <strong>{each.user}</strong> <code>{each.query}</code>
          </li>
        ))}
      </ul>
      {count > queries.length && <span className="small muted">{count - queries.length} of them you may know of, but not read.</span>}
    </div>
  );
}

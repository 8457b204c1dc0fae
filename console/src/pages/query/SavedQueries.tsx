/** Queries kept at the gateway under names of one's own. */
import { useState } from "react";
import { get, send, tell } from "../../api/client";
import type { Saved } from "../../api/types";
import { useLoaded } from "../../ui/useLoaded";

export function SavedQueries({ text, open }: { text: string; open: (text: string) => void }) {
  const found = useLoaded((signal) => get<{ saved: Saved[] }>("/v1/saved", signal), []);
  const [name, setName] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const run = (work: Promise<unknown>): void => {
    setWrong(null);
    work.then(found.reload, (error: unknown) => setWrong(tell(error)));
  };
  const saved = found.value?.saved ?? [];
  return (
    <section className="card" aria-label="Saved queries">
      <header>
        <h2>Saved queries</h2>
      </header>
      <div className="body stack">
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault();
            run(send("PUT", "/v1/saved", { name: name.trim(), query: text }));
            setName("");
          }}
        >
          <div className="grow">
            <label className="hidden-label" htmlFor="save-name">
              Name of the query
            </label>
            <input id="save-name" value={name} maxLength={200} placeholder="Name of this query" onChange={(event) => setName(event.target.value)} />
          </div>
          <button disabled={!name.trim() || !text.trim()}>Save</button>
        </form>
        {wrong && (
          <p className="wrong" role="alert">
            {wrong}
          </p>
        )}
        {saved.length === 0 && <p className="muted small">Nothing is saved yet.</p>}
        <ul className="saved">
          {saved.map((each) => (
            <li key={each.name}>
              <button className="quiet mini name" title={each.query} onClick={() => open(each.query)}>
                {each.name}
              </button>
              <button className="quiet mini" aria-label={`Remove ${each.name}`} onClick={() => run(send("DELETE", `/v1/saved?name=${encodeURIComponent(each.name)}`))}>
                ✕
              </button>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

/** Streams as their owners see them: who reads, what was refused, and the way to stop sharing. */
import { useState } from "react";
import { get, post, tell } from "../../api/client";
import type { Stream } from "../../api/types";
import { Busy, Empty } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { VirtualTable } from "../../ui/VirtualTable";

interface Sharing {
  stream: string;
  paused: boolean;
  /** Without handle and query where they name other streams too. */
  readers: { user: string; handle: string | null; query: string | null; decision: string; grants: string[]; rows_delivered: number; paused: boolean }[];
  denied: Record<string, number>;
}

interface DeadLetters {
  dead: { offset: number; reason: string; raw: string | null }[];
}

export function FeedsView({ streams }: { streams: Stream[] }) {
  const [name, setName] = useState(streams[0]?.name ?? "");
  const path = `/v1/streams/${encodeURIComponent(name)}`;
  const found = useLoaded(
    async (signal) => {
      const [sharing, letters] = await Promise.all([get<Sharing>(`${path}/sharing`, signal), get<DeadLetters>(`${path}/dead-letters?limit=1000`, signal)]);
      return { sharing, dead: letters.dead };
    },
    [name],
    5000,
  );
  const [wrong, setWrong] = useState<string | null>(null);
  const turn = (paused: boolean): void => {
    if (!paused && !window.confirm(`Stop sharing ${name}? Every query on it is withdrawn.`)) return;
    post(`${path}/${paused ? "resume" : "pause"}`).then(found.reload, (error: unknown) => setWrong(tell(error)));
  };
  return (
    <>
      <div className="body row">
        <label htmlFor="feed" className="small muted">
          Stream
        </label>
        <select id="feed" className="narrow" value={name} onChange={(event) => setName(event.target.value)}>
          {streams.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
        {found.value && (
          <>
            <span className={`badge ${found.value.sharing.paused ? "warn" : "good"}`}>{found.value.sharing.paused ? "sharing is paused" : "shared"}</span>
            <button className={found.value.sharing.paused ? "mini push" : "mini danger push"} onClick={() => turn(found.value!.sharing.paused)}>
              {found.value.sharing.paused ? "Share again" : "Stop sharing"}
            </button>
          </>
        )}
      </div>
      {wrong && <div className="note bad">{wrong}</div>}
      <Busy of={found}>
        {({ sharing, dead }) => (
          <>
            <div className="body">
              <h3>Readers</h3>
            </div>
            {sharing.readers.length === 0 ? (
              <Empty title="Nobody reads it now" />
            ) : (
              <VirtualTable
                label="Readers"
                columns={[
                  { key: "user", title: "User", width: "minmax(90px, 150px)" },
                  { key: "query", title: "Query", width: "minmax(260px, 1fr)" },
                  { key: "grants", title: "Your grants", width: "minmax(90px, 200px)" },
                  { key: "rows", title: "Rows", width: "120px" },
                ]}
                rows={sharing.readers}
                height={220}
                cell={(row, key) => {
                  if (key === "user") return row.user;
                  if (key === "grants") return row.grants.join(", ");
                  if (key === "rows") return row.rows_delivered.toLocaleString();
                  return row.query === null ? <span className="muted">names other streams too</span> : <code title={row.query}>{row.query}</code>;
                }}
              />
            )}
            {Object.keys(sharing.denied).length > 0 && (
              <p className="body small">
                Given to nobody:{" "}
                {Object.entries(sharing.denied)
                  .map(([reason, count]) => `${count} ${reason}`)
                  .join(", ")}
              </p>
            )}
            <div className="body">
              <h3>Dead letters</h3>
            </div>
            {dead.length === 0 ? (
              <Empty title="No tuple was malformed" />
            ) : (
              <VirtualTable
                label="Dead letters"
                columns={[
                  { key: "offset", title: "Offset", width: "90px" },
                  { key: "reason", title: "Reason", width: "minmax(160px, 1fr)" },
                  { key: "raw", title: "As it came", width: "minmax(220px, 2fr)" },
                ]}
                rows={dead}
                height={220}
                cell={(row, key) => (key === "offset" ? row.offset : key === "reason" ? row.reason : <code>{row.raw ?? ""}</code>)}
              />
            )}
          </>
        )}
      </Busy>
    </>
  );
}

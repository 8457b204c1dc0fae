/** Queries that run, and the results of one of them as they come. */
import type { PageProps } from "../../App";
import { get, post, send, tell } from "../../api/client";
import type { Query } from "../../api/types";
import { go, link, usePlace } from "../../ui/route";
import { Busy, Empty } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { useState } from "react";
import { DecisionBadge } from "../query/Explain";
import { Followed } from "./Followed";
import "./live.css";

export default function LivePage({ me }: PageProps) {
  const { rest } = usePlace();
  const handle = rest[0];
  return handle ? <Followed key={handle} handle={handle} /> : <Running user={me.user} />;
}

function Running({ user }: { user: string }) {
  const found = useLoaded((signal) => get<{ queries: Query[] }>("/v1/queries", signal), [], 5000);
  const [wrong, setWrong] = useState<string | null>(null);
  const run = (work: Promise<unknown>): void => void work.then(found.reload, (error: unknown) => setWrong(tell(error)));
  return (
    <>
      <div className="page-head">
        <h1>Live results</h1>
        <button className="primary" onClick={() => go("query")}>
          New query
        </button>
      </div>
      {wrong && (
        <div className="note bad" role="alert">
          {wrong}
        </div>
      )}
      <Busy of={found}>
        {({ queries }) => {
          const own = queries.filter((each) => each.user === user);
          if (!own.length) return <Empty title="No query of yours is running">Write one on the page Query, and its results come here.</Empty>;
          return (
            <ul className="running">
              {own.map((each) => (
                <li key={each.handle} className="card">
                  <a className="query-text mono" href={link("live", each.handle)}>
                    {each.query}
                  </a>
                  <div className="row">
                    <DecisionBadge decision={each.decision} />
                    {each.paused && <span className="badge">paused</span>}
                    <span className="muted small">{each.rows_delivered.toLocaleString()} rows handed to you</span>
                    <span className="row push">
                      <button className="mini" onClick={() => run(post(`${each.uri}/${each.paused ? "resume" : "pause"}`))}>
                        {each.paused ? "Resume" : "Pause"}
                      </button>
                      <button className="mini danger" onClick={() => run(send("DELETE", each.uri))}>
                        Drop
                      </button>
                    </span>
                  </div>
                </li>
              ))}
            </ul>
          );
        }}
      </Busy>
    </>
  );
}

/** One query's results: what it may have, how the connection is, and the rows as table, chart and map. */
import { lazy, Suspense, useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from "react";
import { get, post, send, tell } from "../../api/client";
import type { Link } from "../../api/follow";
import type { Area, OwnGrants, Query, Row } from "../../api/types";
import { findRoles } from "../../map/fleet";
import { show, showTime, toMillis } from "../../ui/format";
import { go, link } from "../../ui/route";
import { Empty, Failure, Loading } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { VirtualTable } from "../../ui/VirtualTable";
import { Words } from "../../ui/Words";
import { DecisionBadge } from "../query/Explain";
import { Chart, findNumbers, findTime } from "./Chart";
import { Results, type Ended, type Snapshot } from "./results";

const MapView = lazy(() => import("../../map/MapView"));

export function Followed({ handle }: { handle: string }) {
  const described = useLoaded((signal) => get<Query>(`/v1/queries/${encodeURIComponent(handle)}`, signal), [handle]);
  const results = useResults(handle);
  const state = useSyncExternalStore(results.subscribe, results.getSnapshot);
  const [wrong, setWrong] = useState<string | null>(null);
  const query = described.value;
  const act = (work: Promise<unknown>, then: () => void): void => void work.then(then, (error: unknown) => setWrong(tell(error)));
  if (described.error && !state.ended && !state.received) return <Gone error={described.error} />;
  return (
    <>
      <div className="page-head">
        <h1>Live results</h1>
        <a href={link("live")}>All my queries</a>
      </div>
      <section className="card" aria-label="The query">
        <div className="body stack tight">
          <pre className="query-text">{query?.query ?? " "}</pre>
          <div className="row">
            {state.told && !state.ended && <DecisionBadge decision={state.told.decision} />}
            <LinkBadge link={state.link} />
            {query?.paused && <span className="badge">paused</span>}
            <span className="row push">
              {query && !state.ended && (
                <>
                  <button className="mini" onClick={() => edit(query.query)}>
                    Edit
                  </button>
                  <button className="mini" onClick={() => act(post(`${query.uri}/${query.paused ? "resume" : "pause"}`), described.reload)}>
                    {query.paused ? "Resume" : "Pause"}
                  </button>
                  <button className="mini danger" onClick={() => act(send("DELETE", query.uri), () => go("live"))}>
                    Drop
                  </button>
                </>
              )}
            </span>
          </div>
        </div>
      </section>
      <Messages state={state} wrong={wrong} />
      {state.ended ? <Over ended={state.ended} text={query?.query} /> : <Views results={results} state={state} />}
    </>
  );
}

/** A follower that lives as long as the page shows it. */
function useResults(handle: string): Results {
  const results = useMemo(() => new Results(handle), [handle]);
  useEffect(() => {
    results.start();
    return () => results.close();
  }, [results]);
  return results;
}

function edit(text: string): void {
  sessionStorage.setItem("sluicegate.draft", text);
  go("query");
}

const LINKS: Record<Link, { title: string; tone: string }> = {
  connecting: { title: "connecting", tone: "" },
  live: { title: "live", tone: "good" },
  reconnecting: { title: "reconnecting", tone: "warn" },
  ended: { title: "ended", tone: "" },
};

function LinkBadge({ link: state }: { link: Link }) {
  const found = LINKS[state];
  return (
    <span className={`badge ${found.tone}`} role="status">
      <span className={state === "ended" ? "dot" : "dot pulse"} aria-hidden="true" />
      {found.title}
    </span>
  );
}

function Messages({ state, wrong }: { state: Snapshot; wrong: string | null }) {
  const notices = state.ended ? [] : (state.told?.notices ?? []);
  return (
    <>
      {wrong && (
        <div className="note bad" role="alert">
          {wrong}
        </div>
      )}
      {notices.length > 0 && (
        <div className="note warn" role="note" aria-label="What is withheld">
          {notices.map((each) => (
            <span key={each}>
              <Words of={each.charAt(0).toUpperCase() + each.slice(1)} />.
            </span>
          ))}
        </div>
      )}
      {state.link === "reconnecting" && (
        <div className="note warn" role="status">
          The connection is gone. The page tries again by itself and goes on after the last row that arrived.
        </div>
      )}
      {state.changes > 0 && !state.ended && (
        <div className="note" role="status">
          What you may see of this changed. Results from now on are shown.
        </div>
      )}
      {state.gaps > 0 && (
        <div className="note warn" role="status">
          Older results are no longer kept by the gateway, so some are missing here.
        </div>
      )}
    </>
  );
}

const ENDS: Record<string, string> = {
  withdrawn: "The query was withdrawn: no grant is left for it.",
  revoked: "The session ended.",
  closed: "The query was dropped.",
  gone: "This query is not running, or is not yours.",
  error: "The results cannot be read.",
};

function Over({ ended, text }: { ended: Ended; text: string | undefined }) {
  return (
    <Empty title={ENDS[ended.kind] ?? "The results have ended."}>
      {ended.reason && (
        <p>
          <Words of={ended.reason} />
        </p>
      )}
      {text && <button onClick={() => edit(text)}>Open the query</button>}
    </Empty>
  );
}

function Gone({ error }: { error: unknown }) {
  return (
    <>
      <h1>Live results</h1>
      <Failure error={error} />
      <a href={link("live")}>All my queries</a>
    </>
  );
}

type Tab = "map" | "chart" | "table";

function Views({ results, state }: { results: Results; state: Snapshot }) {
  const grants = useLoaded((signal) => get<OwnGrants>("/v1/grants", signal), []);
  const areas = useMemo<Area[]>(() => grants.value?.grants.flatMap((each) => each.areas) ?? [], [grants.value]);
  const [chosen, setChosen] = useState<Tab | null>(null);
  const columns = results.columns;
  const count = columns.length;
  const roles = useMemo(() => findRoles(columns), [columns, count]);
  if (!count) {
    return state.link === "connecting" ? <Loading label="Connecting" /> : <Empty title="No rows yet">They appear here as they come.</Empty>;
  }
  const canChart = Boolean(findTime(columns, results.recent) && findNumbers(columns, results.recent).length);
  const usual: Tab = roles ? "map" : columns.includes("window_end") ? "chart" : "table";
  const tab = chosen ?? usual;
  const tabs: [Tab, string, boolean][] = [
    ["map", "Map", Boolean(roles)],
    ["chart", "Chart", canChart],
    ["table", "Table", true],
  ];
  return (
    <section className="card views" aria-label="Results">
      <header>
        <div className="tabs" role="tablist" aria-label="How results are shown">
          {tabs.map(([key, title, can]) => (
            <button key={key} role="tab" aria-selected={tab === key} disabled={!can} onClick={() => setChosen(key)}>
              {title}
            </button>
          ))}
        </div>
        <span className="muted small push">{state.received.toLocaleString()} rows since this page was opened</span>
      </header>
      {tab === "map" && roles && (
        <Suspense fallback={<Loading label="Opening the map" />}>
          <MapView source={results} roles={roles} areas={areas} />
        </Suspense>
      )}
      {tab === "chart" && <Chart columns={columns} rows={results.rows} />}
      {tab === "table" && <Rows columns={columns} rows={results.rows} />}
    </section>
  );
}

function Rows({ columns, rows }: { columns: string[]; rows: Row[] }) {
  const newest = useMemo(() => [...rows].reverse(), [rows]);
  const times = columns.filter((each) => toMillis(rows.at(-1)?.[each]) !== null);
  return (
    <VirtualTable
      label="Rows, the newest first"
      columns={columns.map((each) => ({ key: each, title: each, width: times.includes(each) ? "minmax(200px, 1fr)" : undefined }))}
      rows={newest}
      cell={(row, key) => showCell(row, key, times)}
    />
  );
}

function showCell(row: Row, key: string, times: string[]): ReactNode {
  if (!(key in row)) return <span className="muted">withheld</span>;
  const value = row[key];
  if (value === null) return <span className="muted">NULL</span>;
  return times.includes(key) && typeof value === "string" ? showTime(value) : show(value);
}

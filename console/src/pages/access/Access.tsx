/** What I may see: streams with their attributes, my grants in words, and until when. */
import { get } from "../../api/client";
import type { Me, OwnGrant, OwnGrants, Stream } from "../../api/types";
import { show, showTime } from "../../ui/format";
import { go } from "../../ui/route";
import { Busy, Empty } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import "./access.css";

interface Found {
  streams: Stream[];
  own: OwnGrants;
}

async function load(signal: AbortSignal): Promise<Found> {
  const [streams, own] = await Promise.all([
    get<{ streams: Stream[] }>("/v1/streams", signal),
    get<OwnGrants>("/v1/grants", signal),
  ]);
  return { streams: streams.streams, own };
}

export default function Access({ me }: { me: Me }) {
  const found = useLoaded(load, [], 15_000);
  return (
    <>
      <div className="page-head">
        <h1>What I may see</h1>
        <span className="muted small">This session lasts until {showTime(me.expires)}</span>
      </div>
      <Busy of={found}>{(value) => <Shown me={me} {...value} />}</Busy>
    </>
  );
}

function Shown({ me, streams, own }: Found & { me: Me }) {
  const profile = Object.entries(own.profile);
  return (
    <>
      <section className="card" aria-labelledby="own-title">
        <header>
          <h2 id="own-title">{me.user}</h2>
          {me.is_admin && <span className="badge accent">administrator</span>}
          {me.roles.map((role) => (
            <span key={role} className="badge">
              {role}
            </span>
          ))}
          {profile.map(([name, value]) => (
            <span key={name} className="badge">
              {name}: {show(value)}
            </span>
          ))}
        </header>
        <div className="body stack">
          {own.grants.length === 0 ? (
            <Empty title="No grant is given to you">
              {me.is_admin ? "Administrators change policies; reading a stream takes a grant, as for everybody." : "Ask the owner of a stream for one."}
            </Empty>
          ) : (
            own.grants.map((each) => <GrantCard key={each.name} grant={each} />)
          )}
        </div>
      </section>
      <section className="stack" aria-label="Streams">
        <h2>Streams</h2>
        {streams.length === 0 && <Empty title="There is no stream that you may know of" />}
        <div className="stream-grid">
          {streams.map((each) => (
            <StreamCard key={each.name} stream={each} />
          ))}
        </div>
      </section>
    </>
  );
}

const VERB = { read: "Read", aggregate: "Aggregate", append: "Write" } as const;

function GrantCard({ grant }: { grant: OwnGrant }) {
  const words = grant.words.charAt(0).toUpperCase() + grant.words.slice(1);
  return (
    <article className="grant">
      <div className="row">
        <span className={`badge ${grant.kind === "append" ? "" : "policy"}`}>{VERB[grant.kind]}</span>
        <strong>{grant.name}</strong>
        <span className="muted small">{grant.role ? `by your role ${grant.role}` : "to you"}</span>
        {grant.closed && <span className="badge bad">allows nothing at present</span>}
      </div>
      <p>{words}.</p>
      <p className="muted small">{tellSpan(grant)}</p>
    </article>
  );
}

function tellSpan(grant: OwnGrant): string {
  const until = grant.until ? `until ${tellBound(grant.until)}` : "without an end";
  return `${grant.since ? `For tuples from ${tellBound(grant.since)}, ${until}` : grant.until ? `For tuples ${until}` : "Until it is revoked"}${grant.grant_option ? "; you may pass it on" : ""}.`;
}

function tellBound(text: string): string {
  return /^\d{4}-/.test(text) ? showTime(text) : text;
}

function StreamCard({ stream }: { stream: Stream }) {
  const names = stream.attributes.map((each) => each.name).join(", ");
  return (
    <article className="card">
      <header>
        <h3>{stream.name}</h3>
        {stream.is_owner && <span className="badge accent">yours</span>}
        {stream.may_append && <span className="badge">you may write</span>}
        {stream.paused && <span className="badge warn">paused</span>}
        <button className="mini push" onClick={() => openQuery(`SELECT ${names || "*"} FROM ${stream.name}`)}>
          Query it
        </button>
      </header>
      <div className="body">
        {stream.attributes.length === 0 ? (
          <p className="muted">No attribute of it is shown to you.</p>
        ) : (
          <ul className="attributes">
            {stream.attributes.map((each) => (
              <li key={each.name}>
                <span className="mono">{each.name}</span>
                <span className="muted small">
                  {each.type}
                  {each.name === stream.event_time ? ", event time" : ""}
                </span>
              </li>
            ))}
          </ul>
        )}
        <p className="muted small">
          {stream.event_time ? "" : "A table, without event time. "}
          {stream.owner ? `Owned by ${stream.owner}.` : "Without an owner."}
        </p>
      </div>
    </article>
  );
}

function openQuery(text: string): void {
  sessionStorage.setItem("sluicegate.draft", text);
  go("query");
}

/** Who can see a stream, or one attribute of it: by which grants, raw or aggregated, until when. */
import { useState } from "react";
import { get } from "../../api/client";
import type { Stream, WhoEntry } from "../../api/types";
import { Busy, Empty } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { VirtualTable } from "../../ui/VirtualTable";

const COLUMNS = [
  { key: "principal", title: "Who", width: "minmax(100px, 160px)" },
  { key: "grant", title: "By", width: "minmax(120px, 200px)" },
  { key: "what", title: "What", width: "minmax(180px, 1fr)" },
  { key: "condition", title: "Where", width: "minmax(200px, 2fr)" },
  { key: "until", title: "When", width: "minmax(140px, 1fr)" },
];

export function WhoView({ streams }: { streams: Stream[] }) {
  const [name, setName] = useState(streams[0]?.name ?? "");
  const [attribute, setAttribute] = useState("");
  const stream = streams.find((each) => each.name === name);
  const query = `/v1/who?stream=${encodeURIComponent(name)}${attribute ? `&attribute=${encodeURIComponent(attribute)}` : ""}`;
  const found = useLoaded((signal) => get<{ entries: WhoEntry[] }>(query, signal), [query]);
  if (!streams.length) return <Empty title="There is no stream whose readers you may know" />;
  return (
    <>
      <div className="body row">
        <select className="narrow" aria-label="Stream" value={name} onChange={(event) => (setName(event.target.value), setAttribute(""))}>
          {streams.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
        <select className="narrow" aria-label="Attribute" value={attribute} onChange={(event) => setAttribute(event.target.value)}>
          <option value="">every attribute</option>
          {stream?.attributes.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      </div>
      <Busy of={found}>
        {({ entries }) =>
          entries.length === 0 ? (
            <Empty title="Nobody can see this" />
          ) : (
            <VirtualTable label="Who can see this" columns={COLUMNS} rows={entries} cell={tellCell} />
          )
        }
      </Busy>
    </>
  );
}

function tellCell(entry: WhoEntry, key: string): string {
  switch (key) {
    case "principal":
      return entry.principal === "*" ? "anybody" : entry.principal;
    case "grant":
      return [entry.grant || entry.kind, entry.role && `role ${entry.role}`, entry.through && `through ${entry.through}`].filter(Boolean).join(", ");
    case "what": {
      const parts = [entry.attributes.length ? `reads ${entry.attributes.join(", ")}` : "", entry.functions.join(", ")].filter(Boolean);
      return `${parts.join("; ") || entry.kind}${entry.window ? `, over ${entry.window}` : ""}`;
    }
    case "condition":
      return entry.condition ?? "always";
    default:
      return `${entry.since ? `from ${entry.since} ` : ""}${entry.until ? `until ${entry.until}` : entry.since ? "" : "until it is revoked"}${entry.open ? "" : " (not now)"}`;
  }
}

/** All statements of the catalog, searched as one types; ten thousand are no more work than ten. */
import { useDeferredValue, useMemo, useState } from "react";
import { VirtualTable } from "../../ui/VirtualTable";
import type { Statement } from "./statements";

const COLUMNS = [
  { key: "kind", title: "Kind", width: "90px" },
  { key: "name", title: "Name", width: "minmax(130px, 220px)" },
  { key: "text", title: "Statement", width: "minmax(280px, 1fr)" },
];

interface Props {
  statements: Statement[];
  chosen: Statement | null;
  choose: (statement: Statement) => void;
}

export function StatementList({ statements, chosen, choose }: Props) {
  const [search, setSearch] = useState("");
  const [kind, setKind] = useState("");
  const asked = useDeferredValue(search.trim().toLowerCase());
  const lower = useMemo(() => statements.map((each) => each.text.toLowerCase()), [statements]);
  const kinds = useMemo(() => [...new Set(statements.map((each) => each.kind))].sort(), [statements]);
  const found = useMemo(() => {
    const words = asked.split(/\s+/).filter(Boolean);
    return statements.filter((each) => (!kind || each.kind === kind) && words.every((word) => lower[each.at]?.includes(word)));
  }, [statements, lower, asked, kind]);
  return (
    <>
      <div className="body row">
        <div className="grow">
          <label className="hidden-label" htmlFor="policy-search">
            Search
          </label>
          <input id="policy-search" type="search" value={search} placeholder="Search grants, users, facts…" onChange={(event) => setSearch(event.target.value)} />
        </div>
        <select className="narrow" aria-label="Kind" value={kind} onChange={(event) => setKind(event.target.value)}>
          <option value="">all kinds</option>
          {kinds.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <span className="muted small" role="status">
          {found.length.toLocaleString()} of {statements.length.toLocaleString()}
        </span>
      </div>
      <VirtualTable
        label="Statements"
        columns={COLUMNS}
        rows={found}
        rowKey={(row) => row.at}
        height={360}
        onRow={choose}
        cell={(row, key) =>
          key === "name" ? (
            <button className="quiet mini" aria-pressed={chosen?.at === row.at} onClick={() => choose(row)}>
              {row.name || "—"}
            </button>
          ) : key === "kind" ? (
            <span className="badge">{row.kind.toLowerCase()}</span>
          ) : (
            <code>{row.text}</code>
          )
        }
      />
    </>
  );
}

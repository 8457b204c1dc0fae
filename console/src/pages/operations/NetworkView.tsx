/** Queries that run, with their switches: an open one lets rows through, a closed one is paused. */
import { useRef } from "react";
import { get } from "../../api/client";
import type { Me, Query } from "../../api/types";
import { Busy, Empty } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { VirtualTable } from "../../ui/VirtualTable";
import { DecisionBadge } from "../query/Explain";

const COLUMNS = [
  { key: "switch", title: "Switch", width: "100px" },
  { key: "user", title: "User", width: "minmax(90px, 140px)" },
  { key: "query", title: "Query", width: "minmax(260px, 1fr)" },
  { key: "decision", title: "Decision", width: "110px" },
  { key: "rows", title: "Rows", width: "110px" },
  { key: "rate", title: "Rows a second", width: "120px" },
];
const EVERY_MS = 3000;

function count(number: number, one: string, many: string): string {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}

export function NetworkView({ me }: { me: Me }) {
  const before = useRef<{ at: number; rows: Map<string, number> } | null>(null);
  const rates = useRef(new Map<string, number>());
  const found = useLoaded(
    async (signal) => {
      const { queries } = await get<{ queries: Query[] }>("/v1/queries", signal);
      const now = performance.now();
      const last = before.current;
      if (last) {
        const seconds = (now - last.at) / 1000;
        rates.current = new Map(queries.map((each) => [each.handle, Math.max(0, (each.rows_delivered - (last.rows.get(each.handle) ?? each.rows_delivered)) / seconds)]));
      }
      before.current = { at: now, rows: new Map(queries.map((each) => [each.handle, each.rows_delivered])) };
      return queries;
    },
    [],
    EVERY_MS,
  );
  return (
    <Busy of={found}>
      {(queries) =>
        queries.length === 0 ? (
          <Empty title={me.is_admin ? "No query is running" : "No query of yours is running"} />
        ) : (
          <>
            <p className="body muted small">
              {count(queries.length, "query", "queries")} of {count(new Set(queries.map((each) => each.user)).size, "user", "users")}. Rows are those that were handed to readers since the gateway started.
            </p>
            <VirtualTable
              label="Running queries"
              columns={COLUMNS}
              rows={queries}
              rowKey={(row) => row.handle}
              cell={(row, key) => {
                switch (key) {
                  case "switch":
                    return <span className={`badge ${row.paused ? "" : "good"}`}>{row.paused ? "closed" : "open"}</span>;
                  case "user":
                    return row.user;
                  case "query":
                    return <code title={row.query}>{row.query}</code>;
                  case "decision":
                    return <DecisionBadge decision={row.decision} />;
                  case "rows":
                    return row.rows_delivered.toLocaleString();
                  default:
                    return (rates.current.get(row.handle) ?? 0).toFixed(1);
                }
              }}
            />
          </>
        )
      }
    </Busy>
  );
}

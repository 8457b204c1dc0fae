/** Facts that policies name; an area is drawn on the map, point by point. */
import { lazy, Suspense, useState } from "react";
import { get } from "../../api/client";
import type { Fact } from "../../api/types";
import { show } from "../../ui/format";
import { Busy, Empty, Loading } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { VirtualTable } from "../../ui/VirtualTable";

const AreaEditor = lazy(() => import("../../map/AreaEditor"));

type FactWithArea = Fact & { polygon: number[][][][] | null };

const COLUMNS = [
  { key: "name", title: "Fact", width: "minmax(140px, 240px)" },
  { key: "value", title: "Value", width: "minmax(240px, 1fr)" },
  { key: "public", title: "Told to", width: "130px" },
];

export function nameFact(fact: Fact): string {
  return `${fact.name}(${fact.args.map((each) => (typeof each === "string" ? `'${each.replaceAll("'", "''")}'` : String(each))).join(", ")})`;
}

export function FactsView({ turn, write }: { turn: number; write: (text: string) => void }) {
  const found = useLoaded((signal) => get<{ facts: FactWithArea[] }>("/v1/facts", signal), [turn]);
  const [area, setArea] = useState<{ name: string; isPublic: boolean; ring: [number, number][] } | null>(null);
  const edit = (fact: FactWithArea): void => {
    if (!fact.polygon) {
      write(`SET ${fact.public ? "PUBLIC " : ""}FACT ${nameFact(fact)} = ${typeof fact.value === "string" && !/^[{P]/.test(fact.value) ? `'${fact.value}'` : show(fact.value)};`);
      return;
    }
    setArea({ name: nameFact(fact), isPublic: fact.public, ring: (fact.polygon[0]?.[0] ?? []) as [number, number][] });
  };
  return (
    <Busy of={found}>
      {({ facts }) => (
        <>
          <div className="body row">
            <button className="mini" onClick={() => setArea({ name: "port('XX')", isPublic: true, ring: [] })}>
              Draw a new area
            </button>
            <button className="mini" onClick={() => write("SET FACT name('of') = value;")}>
              New fact
            </button>
          </div>
          {facts.length === 0 ? (
            <Empty title="No facts are set" />
          ) : (
            <VirtualTable
              label="Facts"
              columns={COLUMNS}
              rows={facts}
              height={260}
              onRow={edit}
              cell={(fact, key) =>
                key === "name" ? (
                  <button className="quiet mini" onClick={() => edit(fact)}>
                    {nameFact(fact)}
                  </button>
                ) : key === "value" ? (
                  <code>{show(fact.value)}</code>
                ) : fact.public ? (
                  "everybody"
                ) : (
                  "administrators"
                )
              }
            />
          )}
          {area && (
            <Suspense fallback={<Loading label="Opening the map" />}>
              <AreaEditor
                key={area.name}
                ring={area.ring}
                name={area.name}
                save={(name, ring) => write(`SET ${area.isPublic ? "PUBLIC " : ""}FACT ${name} = POLYGON '${ring.map(([long, lat]) => `${long} ${lat}`).join(", ")}';`)}
              />
            </Suspense>
          )}
        </>
      )}
    </Busy>
  );
}

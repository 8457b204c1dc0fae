/** The running network: operators that queries share, and the switches on the way to their readers, open and closed. */
import { useMemo } from "react";
import { get } from "../../api/client";
import { layOut } from "../../ui/layout";
import { Busy, Empty } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import "../../ui/graph.css";

interface Operator {
  id: string;
  text: string[];
  inputs: string[];
  queries: string[];
  common_prefix: boolean;
  runs?: boolean;
}

interface Switch {
  from: string;
  to: string;
  kind: string;
  queries: string[];
  open?: boolean;
}

interface Network {
  operators: Operator[];
  switches: Switch[];
  outputs: Record<string, string>;
  counts: Record<string, number>;
  queries: Record<string, { user: string; query: string; switch: string | null; open: boolean }>;
  left_out: number;
}

interface Box {
  id: string;
  lines: string[];
  note: string;
  tone: string;
  width: number;
  height: number;
  inputs: string[];
}

const WIDTH = 232;
const LINE = 17;
const PER_LINE = 23;
const MOST_LINES = 8;

export function SharedNetwork() {
  const found = useLoaded((signal) => get<Network>("/v1/network", signal), [], 5000);
  return (
    <Busy of={found}>
      {(network) =>
        network.operators.length === 0 ? (
          <Empty title="Nothing runs now" />
        ) : (
          <div className="body stack tight">
            <div className="row small">
              <span className="badge good">switch open</span>
              <span className="badge bad">switch closed</span>
              <span className="badge policy">shared by several queries</span>
              {network.left_out > 0 && <span className="muted">{network.left_out.toLocaleString()} more queries are not drawn</span>}
            </div>
            <Drawn network={network} />
          </div>
        )
      }
    </Busy>
  );
}

function listBoxes(network: Network): Box[] {
  const operators = network.operators.map((each) => {
    const note = each.queries.length > 1 ? `shared by ${each.queries.length}` : "";
    return makeBox(each.id, each.text, note, `${note ? "policy" : ""} ${each.runs === false ? "still" : ""}`, each.inputs);
  });
  const readers = Object.entries(network.outputs).map(([handle, operator]) => {
    const query = network.queries[handle];
    return makeBox(`reader ${handle}`, [`→ ${query?.user ?? handle}`], query?.switch ? `as ${query.switch}` : "", query && !query.open ? "reader still" : "reader", [operator]);
  });
  return [...operators, ...readers];
}

function makeBox(id: string, text: string[], note: string, tone: string, inputs: string[]): Box {
  const lines = text.slice(0, MOST_LINES);
  const count = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / PER_LINE)), 0) + (note ? 1 : 0);
  return { id, lines, note, tone, width: WIDTH, height: count * LINE + 18, inputs };
}

function Drawn({ network }: { network: Network }) {
  const { boxes, layout } = useMemo(() => {
    const made = listBoxes(network);
    return { boxes: made, layout: layOut(made) };
  }, [network]);
  const by = new Map(boxes.map((each) => [each.id, each]));
  const switches = new Map(network.switches.map((each) => [`${each.from}|${each.to}`, each]));
  const edges = boxes.flatMap((box) => box.inputs.map((input, at) => ({ box, input, at })));
  return (
    <div className="graph-view" role="group" aria-label="The running network" tabIndex={0}>
      <div className="graph-canvas" style={{ width: layout.width, height: layout.height }}>
        <svg width={layout.width} height={layout.height} aria-hidden="true">
          {edges.map(({ box, input, at }) => {
            const from = layout.places.get(input);
            const to = layout.places.get(box.id);
            const source = by.get(input);
            if (!from || !to || !source) return null;
            const [x1, y1] = [from.x + WIDTH / 2, from.y + source.height];
            const x2 = to.x + (WIDTH * (at + 1)) / (box.inputs.length + 1);
            const bend = (to.y - y1) / 2;
            const found = switches.get(`${input}|${box.id.replace(/^reader /, "")}`);
            return (
              <g key={`${input}-${box.id}-${at}`}>
                <path d={`M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${to.y - bend} ${x2} ${to.y}`} />
                {found && <circle className={found.open === false ? "switch closed" : "switch open"} cx={(x1 + x2) / 2} cy={(y1 + to.y) / 2} r={7} />}
              </g>
            );
          })}
        </svg>
        {boxes.map((box) => {
          const at = layout.places.get(box.id);
          return (
            <div key={box.id} className={`graph-node ${box.tone}`} style={{ left: at?.x, top: at?.y, width: WIDTH, height: box.height }}>
              {box.lines.map((line, number) => (
                <div key={number}>{line}</div>
              ))}
              {box.note && <div className="by">{box.note}</div>}
            </div>
          );
        })}
      </div>
    </div>
  );
}

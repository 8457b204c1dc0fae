/** A graph to look at: operators from the sources down; those that policies put there stand out, with the grants' names. */
import { useMemo } from "react";
import type { Graph, GraphNode } from "../api/types";
import { layOut } from "./layout";
import "./graph.css";

const WIDTH = 232;
const LINE = 17;
const PER_LINE = 24;

export function GraphView({ graph, label }: { graph: Graph; label: string }) {
  const { boxes, layout } = useMemo(() => {
    const made = graph.nodes.map((node) => ({
      node,
      id: String(node.id),
      width: WIDTH,
      height: measure(node),
      inputs: node.inputs.map(String),
    }));
    return { boxes: made, layout: layOut(made) };
  }, [graph]);
  const by = new Map(boxes.map((each) => [each.id, each]));
  return (
    <div className="graph-view" role="group" aria-label={label} tabIndex={0}>
      <div className="graph-canvas" style={{ width: layout.width, height: layout.height }}>
        <svg width={layout.width} height={layout.height} aria-hidden="true">
          {boxes.flatMap((box) =>
            box.inputs.map((input, at) => {
              const from = layout.places.get(input);
              const to = layout.places.get(box.id);
              const source = by.get(input);
              if (!from || !to || !source) return null;
              const x1 = from.x + WIDTH / 2;
              const y1 = from.y + source.height;
              const x2 = to.x + (WIDTH * (at + 1)) / (box.inputs.length + 1);
              const bend = (to.y - y1) / 2;
              return <path key={`${input}-${box.id}-${at}`} d={`M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${to.y - bend} ${x2} ${to.y}`} />;
            }),
          )}
        </svg>
        {boxes.map(({ node, id, height }) => {
          const at = layout.places.get(id);
          return (
            <div key={id} className={node.policy ? "graph-node policy" : "graph-node"} style={{ left: at?.x, top: at?.y, width: WIDTH, height }}>
              {node.text.map((line, number) => (
                <div key={number}>{line}</div>
              ))}
              {node.policy && node.grants.length > 0 && <div className="by">by {node.grants.join(", ")}</div>}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function measure(node: GraphNode): number {
  const lines = node.text.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / PER_LINE)), 0);
  const grants = node.policy && node.grants.length ? Math.ceil((node.grants.join(", ").length + 3) / PER_LINE) : 0;
  return (lines + grants) * LINE + 18;
}

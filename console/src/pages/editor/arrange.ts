/** How large operators are drawn, and where, so that none covers another. */
import type { Drawing } from "../../api/types";
import { layOut } from "../../ui/layout";
import { type Operator, type Sketch } from "./model";

export const WIDTH = 220;
const LINE = 17;
const PER_LINE = 25;

/** What an operator says of itself, in lines. */
export function describe(node: Omit<Operator, "x" | "y">): string[] {
  switch (node.kind) {
    case "source":
      return [node.alias ? `${node.stream} as ${node.alias}` : node.stream || "choose a stream"];
    case "select":
      return [node.predicate || "no condition yet"];
    case "project":
      return [(node.items ?? []).map((each) => (each.name && each.name !== each.value ? `${each.value} as ${each.name}` : each.value)).join(", ") || "no attributes yet"];
    case "aggregate": {
      const calls = (node.calls ?? []).map((each) => `${each.function}(${each.argument})`).join(", ");
      const groups = (node.group_by ?? []).map((each) => each.value).join(", ");
      return [calls || "no function yet", ...(groups ? [`by ${groups}`] : []), `over ${tellWindow(node.window)}`];
    }
    case "join":
      return [node.predicate || "all pairs", `[${(node.windows ?? []).map(tellWindow).join("; ")}]`];
    case "union":
      return ["all of them"];
  }
}

function tellWindow(window: Operator["window"]): string {
  if (!window?.size) return "no window";
  const size = window.rows ? `${window.size} rows` : window.size;
  return window.step ? `${size} / ${window.step}` : size;
}

export function measure(node: Omit<Operator, "x" | "y">): number {
  const lines = describe(node).reduce((sum, line) => sum + Math.min(6, Math.max(1, Math.ceil(line.length / PER_LINE))), 0);
  return 34 + lines * LINE + 14;
}

export function arrange(sketch: Sketch): Sketch {
  const boxes = sketch.nodes.map((node) => ({
    id: node.id,
    width: WIDTH,
    height: measure(node),
    inputs: node.inputs.filter((each) => each !== null),
  }));
  const { places } = layOut(boxes);
  return { ...sketch, nodes: sketch.nodes.map((node) => ({ ...node, ...places.get(node.id) })) };
}

export function fromDrawing(drawing: Drawing): Sketch {
  const nodes = drawing.nodes.map((node) => ({ ...node, x: 0, y: 0 }));
  return arrange({ nodes, united: drawing.united, ending: drawing.ending });
}

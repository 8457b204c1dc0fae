/** Places for the operators of a graph, so that none covers another: layers from the sources down, by dagre. */
import dagre from "@dagrejs/dagre";

export interface Box {
  id: string;
  width: number;
  height: number;
  inputs: string[];
}

export interface Placed {
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  places: Map<string, Placed>;
}

/** Upper left corners, by id. */
export function layOut(boxes: Box[], across = false): Layout {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: across ? "LR" : "TB", nodesep: 36, ranksep: 44, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const each of boxes) graph.setNode(each.id, { width: each.width, height: each.height });
  for (const each of boxes) for (const input of each.inputs) graph.setEdge(input, each.id);
  dagre.layout(graph);
  const places = new Map<string, Placed>();
  for (const each of boxes) {
    const found = graph.node(each.id) as unknown as { x: number; y: number };
    places.set(each.id, { x: found.x - each.width / 2, y: found.y - each.height / 2 });
  }
  untangle(boxes, places);
  const size = graph.graph() as unknown as { width?: number; height?: number };
  return { width: size.width ?? 0, height: size.height ?? 0, places };
}

/** Puts the inputs of an operator in their order from left to right, where that is a plain swap of equally wide parts. */
function untangle(boxes: Box[], places: Map<string, Placed>): void {
  const by = new Map(boxes.map((each) => [each.id, each]));
  for (const box of boxes) {
    const [one, other] = box.inputs;
    const left = one === undefined ? undefined : places.get(one);
    const right = other === undefined ? undefined : places.get(other);
    if (box.inputs.length !== 2 || !left || !right || left.x <= right.x) continue;
    const parts = [one!, other!].map((id) => collect(id, by));
    if ([...parts[0]!].some((id) => parts[1]!.has(id)) || feedsOthers(boxes, parts, box.id)) continue;
    const moved = new Map(places);
    const shift = left.x - right.x;
    parts.forEach((part, at) => {
      for (const id of part) {
        const place = places.get(id)!;
        moved.set(id, { x: place.x + (at ? shift : -shift), y: place.y });
      }
    });
    if (!overlaps(boxes, moved)) for (const [id, place] of moved) places.set(id, place);
  }
}

function collect(id: string, by: Map<string, Box>, found = new Set<string>()): Set<string> {
  if (!found.has(id)) {
    found.add(id);
    for (const input of by.get(id)?.inputs ?? []) collect(input, by, found);
  }
  return found;
}

function feedsOthers(boxes: Box[], parts: Set<string>[], end: string): boolean {
  const inside = new Set(parts.flatMap((each) => [...each]));
  return boxes.some((each) => each.id !== end && !inside.has(each.id) && each.inputs.some((input) => inside.has(input)));
}

export function overlaps(boxes: Box[], places: Map<string, Placed>): boolean {
  return boxes.some((one, at) => {
    const a = places.get(one.id)!;
    return boxes.slice(at + 1).some((other) => {
      const b = places.get(other.id)!;
      return a.x < b.x + other.width && b.x < a.x + one.width && a.y < b.y + other.height && b.y < a.y + one.height;
    });
  });
}

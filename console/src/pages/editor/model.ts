/** The graph under the editor's hands: what is drawn, where it stands, and every step back and forth. */
import type { Column, Drawing, DrawnNode, Problem, Stream } from "../../api/types";

export type Kind = DrawnNode["kind"];

export interface Operator extends Omit<DrawnNode, "inputs"> {
  /** By place; a join may have its right input before its left one. */
  inputs: (string | null)[];
  x: number;
  y: number;
}

export interface Sketch {
  nodes: Operator[];
  united: boolean;
  ending: string;
}

export const EMPTY: Sketch = { nodes: [], united: false, ending: "" };

export const PLACES: Record<Kind, number> = { source: 0, select: 1, project: 1, aggregate: 1, join: 2, union: Infinity };

export const TITLES: Record<Kind, { sign: string; title: string }> = {
  source: { sign: "◍", title: "Stream" },
  select: { sign: "σ", title: "Select" },
  project: { sign: "π", title: "Project" },
  aggregate: { sign: "Σ", title: "Aggregate" },
  join: { sign: "⋈", title: "Join" },
  union: { sign: "∪", title: "Union" },
};

export function toDrawing(sketch: Sketch): Drawing {
  const nodes = sketch.nodes.map(({ x: _x, y: _y, inputs, ...rest }) => ({ ...rest, inputs: inputs.filter((each) => each !== null) }));
  return { nodes, united: sketch.united, ending: sketch.ending };
}

export function makeOperator(kind: Kind, id: string, x: number, y: number, stream?: Stream): Operator {
  const base = { id, kind, inputs: [], x, y };
  switch (kind) {
    case "source":
      return { ...base, stream: stream?.name ?? "", alias: "" };
    case "select":
      return { ...base, predicate: "" };
    case "project":
      return { ...base, items: [], alias: "" };
    case "aggregate":
      return { ...base, calls: [{ function: "COUNT", argument: "*" }], group_by: [], window: { size: "10 minutes", step: "", rows: false } };
    case "join":
      return { ...base, inputs: [null, null], predicate: "", windows: [null, null] };
    case "union":
      return base;
  }
}

export function nextId(sketch: Sketch): string {
  let at = sketch.nodes.length + 1;
  while (sketch.nodes.some((each) => each.id === `n${at}`)) at += 1;
  return `n${at}`;
}

export function change(sketch: Sketch, id: string, part: Partial<Operator>): Sketch {
  return { ...sketch, nodes: sketch.nodes.map((each) => (each.id === id ? { ...each, ...part } : each)) };
}

/** Without some operators; whatever they fed has an input less. */
export function remove(sketch: Sketch, ids: Set<string>): Sketch {
  const nodes = sketch.nodes
    .filter((each) => !ids.has(each.id))
    .map((each) => ({ ...each, inputs: compact(each.kind, each.inputs.map((input) => (input && ids.has(input) ? null : input))) }));
  return { ...sketch, nodes };
}

export function disconnect(sketch: Sketch, id: string, place: number): Sketch {
  const node = sketch.nodes.find((each) => each.id === id);
  if (!node) return sketch;
  return change(sketch, id, { inputs: compact(node.kind, node.inputs.map((input, at) => (at === place ? null : input))) });
}

function compact(kind: Kind, inputs: (string | null)[]): (string | null)[] {
  return kind === "join" ? [inputs[0] ?? null, inputs[1] ?? null] : inputs.filter((each) => each !== null);
}

/** With an edge from one operator into a place of another; null where there is no such place or a circle would close. */
export function connect(sketch: Sketch, from: string, to: string, place: number | null): Sketch | null {
  const node = sketch.nodes.find((each) => each.id === to);
  if (!node || from === to || PLACES[node.kind] === 0 || reaches(sketch, to, from)) return null;
  const inputs = [...node.inputs];
  if (node.kind === "union") inputs.push(from);
  else if (node.kind === "join") {
    const free = place ?? inputs.indexOf(null);
    if (free < 0) return null;
    inputs[free] = from;
  } else inputs[0] = from;
  return change(sketch, to, { inputs });
}

/** Whether rows of one operator come to another. */
export function reaches(sketch: Sketch, from: string, to: string): boolean {
  const seen = new Set<string>();
  const ahead = [to];
  while (ahead.length) {
    const id = ahead.pop()!;
    if (id === from) return true;
    if (seen.has(id)) continue;
    seen.add(id);
    for (const input of sketch.nodes.find((each) => each.id === id)?.inputs ?? []) if (input) ahead.push(input);
  }
  return false;
}

const UNFINISHED = new Set(["drawing-inputs", "drawing-root", "no-output", "no-aggregate", "no-window", "join-window"]);

/** What an edge would make wrong: all that is new, save what is only not filled in yet. */
export function findHindrance(before: Problem[], after: Problem[], to: string): Problem | null {
  const known = new Set(before.map((each) => `${each.node}|${each.field}|${each.code}`));
  const fresh = after.filter(
    (each) => !UNFINISHED.has(each.code) && !/ is missing$/.test(each.message) && !known.has(`${each.node}|${each.field}|${each.code}`),
  );
  return fresh.find((each) => each.node === to) ?? fresh[0] ?? null;
}

export function listInputs(node: Operator, fields: Record<string, Column[]>): Column[] {
  return node.inputs.flatMap((each) => (each ? (fields[each] ?? []) : []));
}

export interface History {
  past: Sketch[];
  now: Sketch;
  future: Sketch[];
}

const MOST_STEPS = 200;

export function step(history: History, now: Sketch): History {
  if (now === history.now) return history;
  return { past: [...history.past, history.now].slice(-MOST_STEPS), now, future: [] };
}

export function undo({ past, now, future }: History): History {
  const last = past.at(-1);
  return last ? { past: past.slice(0, -1), now: last, future: [now, ...future] } : { past, now, future };
}

export function redo({ past, now, future }: History): History {
  const [next, ...rest] = future;
  return next ? { past: [...past, now], now: next, future: rest } : { past, now, future };
}

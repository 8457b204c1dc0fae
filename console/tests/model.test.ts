import { expect, test } from "vitest";
import type { Problem } from "../src/api/types";
import { connect, disconnect, EMPTY, findHindrance, makeOperator, redo, remove, step, toDrawing, undo, type Sketch } from "../src/pages/editor/model";

function sketch(): Sketch {
  const nodes = [makeOperator("source", "a", 0, 0), makeOperator("source", "b", 0, 0), makeOperator("join", "j", 0, 0), makeOperator("select", "s", 0, 0)];
  return { ...EMPTY, nodes };
}

const problem = (part: Partial<Problem>): Problem => ({ code: "x", message: "m", help: null, severity: "error", start: null, end: null, node: "", field: "", ...part });

test("a join keeps its inputs in their places", () => {
  const right = connect(sketch(), "b", "j", 1)!;
  expect(right.nodes[2]!.inputs).toEqual([null, "b"]);
  const both = connect(right, "a", "j", 0)!;
  expect(toDrawing(both).nodes[2]!.inputs).toEqual(["a", "b"]);
  expect(connect(both, "s", "j", null)).toBeNull();
  expect(disconnect(both, "j", 0).nodes[2]!.inputs).toEqual([null, "b"]);
});

test("nothing feeds itself, and a stream is fed by nothing", () => {
  const made = connect(connect(sketch(), "a", "j", 0)!, "j", "s", null)!;
  expect(connect(made, "s", "j", 1)).toBeNull();
  expect(connect(made, "s", "s", null)).toBeNull();
  expect(connect(made, "s", "b", null)).toBeNull();
});

test("an operator takes its edges with it", () => {
  const made = connect(connect(sketch(), "a", "j", 0)!, "j", "s", null)!;
  const left = remove(made, new Set(["j"]));
  expect(left.nodes.map((each) => each.inputs)).toEqual([[], [], []]);
});

test("steps go back and forth", () => {
  const first = sketch();
  const second = connect(first, "a", "s", null)!;
  const made = step({ past: [], now: first, future: [] }, second);
  expect(undo(made).now).toBe(first);
  expect(redo(undo(made)).now).toBe(second);
  expect(undo(undo(made)).now).toBe(first);
});

test("what is not filled in yet hinders no edge, what is wrong does", () => {
  const missing = [problem({ node: "s", field: "predicate", message: "a condition is missing" }), problem({ code: "join-window", node: "j" })];
  expect(findHindrance([], missing, "s")).toBeNull();
  const wrong = problem({ code: "union-mismatch", node: "u", field: "inputs" });
  expect(findHindrance([], [...missing, wrong], "u")).toBe(wrong);
  expect(findHindrance([wrong], [wrong], "u")).toBeNull();
});

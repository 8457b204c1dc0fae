import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Drawing } from "../src/api/types";
import { fromDrawing, measure, WIDTH } from "../src/pages/editor/arrange";
import { overlaps } from "../src/ui/layout";

const path = process.env.DRAWINGS;

test.skipIf(!path)("no operator of the corpus covers another, and a join's inputs stand in their order", () => {
  const drawings = JSON.parse(readFileSync(path!, "utf8")) as Drawing[];
  expect(drawings.length).toBeGreaterThan(100);
  let crossed = 0;
  for (const drawing of drawings) {
    const { nodes } = fromDrawing(drawing);
    const boxes = nodes.map((each) => ({ id: each.id, width: WIDTH, height: measure(each), inputs: [] }));
    const places = new Map(nodes.map((each) => [each.id, { x: each.x, y: each.y }]));
    expect(overlaps(boxes, places)).toBe(false);
    for (const each of nodes) {
      for (const input of each.inputs) expect(places.get(input!)!.y).toBeLessThan(each.y);
      if (each.kind === "join" && places.get(each.inputs[0]!)!.x > places.get(each.inputs[1]!)!.x) crossed += 1;
    }
  }
  expect(crossed).toBe(0);
});

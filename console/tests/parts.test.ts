import { expect, test } from "vitest";
import { parseEvents, readEvent } from "../src/api/events";
import { Fleet, findRoles, glide } from "../src/map/fleet";
import { fit, mercatorX, mercatorY, Projection, toLat } from "../src/map/mercator";
import { around, circle, outlineAreas } from "../src/map/outline";
import { listStatements, splitStatements, writeEdit } from "../src/pages/policies/statements";
import { toUnits } from "../src/ui/format";

test("events are read however the bytes are cut", async () => {
  const text = 'id: c1\nevent: rows\ndata: [{"a":"é\\n"}]\n\n: \n\nevent: closed\ndata: {"version":1}\n\n';
  const bytes = new TextEncoder().encode(text);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const each of bytes) controller.enqueue(new Uint8Array([each]));
      controller.close();
    },
  });
  const found = [];
  for await (const each of parseEvents(body, () => undefined)) found.push(each);
  expect(found).toEqual([
    { name: "rows", id: "c1", data: [{ a: "é\n" }] },
    { name: "closed", id: null, data: { version: 1 } },
  ]);
  expect(readEvent(": heartbeat")).toBeNull();
});

test("places count characters, not units", () => {
  expect(toUnits("a🚢b", 2)).toBe(3);
});

test("statements end outside of quotes and comments", () => {
  const text = `CREATE GRANT "a;b" READ (x) ON S WHERE n = ';' TO r; -- no; end\nSET PUBLIC FACT port('S;G') = 1;\nCREATE POLICY 'p' AS '<x>;</x>';`;
  expect(splitStatements(text)).toHaveLength(3);
  const [grant, fact, policy] = listStatements(text);
  expect([grant?.kind, grant?.name, fact?.kind, policy?.kind]).toEqual(["GRANT", '"a;b"', "FACT", "POLICY"]);
  expect(writeEdit(grant!)).toMatch(/^CREATE OR REPLACE GRANT/);
});

test("ten thousand statements are listed in a moment", () => {
  const text = Array.from({ length: 10_000 }, (_, at) => `CREATE GRANT g${at} READ (SID, Long, Lat) ON AIS WHERE SID = ${at} AND Name <> 'it''s; ${at}' TO r${at % 50};`).join("\n");
  const began = performance.now();
  const found = listStatements(text);
  expect(found).toHaveLength(10_000);
  expect(found[9999]).toMatchObject({ kind: "GRANT", name: "g9999" });
  expect(performance.now() - began).toBeLessThan(2000);
});

test("the projection is undone by its inverse, and a fitted box is in sight", () => {
  expect(toLat(mercatorY(1.25))).toBeCloseTo(1.25, 9);
  const view = { ...fit({ west: 103, east: 105, south: 0.5, north: 2 }, 800, 600), width: 800, height: 600 };
  const projection = new Projection(view);
  for (const [long, lat] of [[103, 0.5], [105, 2]] as const) {
    expect(projection.x(mercatorX(long))).toBeGreaterThan(0);
    expect(projection.x(mercatorX(long))).toBeLessThan(800);
    expect(projection.y(mercatorY(lat))).toBeGreaterThan(0);
    expect(projection.y(mercatorY(lat))).toBeLessThan(600);
  }
});

test("ships take the latest report and glide to it", () => {
  const roles = findRoles(["SID", "Name", "Long", "Lat", "T"])!;
  expect(roles).toMatchObject({ key: "SID", long: "Long", lat: "Lat", course: null, time: "T" });
  expect(findRoles(["SID", "Pos"])).toBeNull();
  const fleet = new Fleet(roles);
  const report = (long: number, second: number): Record<string, unknown> => ({ SID: 1, Name: "a", Long: long, Lat: 1, T: `2026-01-01T10:00:0${second}` });
  fleet.take([report(100, 0), report(101, 2), report(99, 1)], 0);
  const ship = fleet.ships.get("1")!;
  expect(ship.long).toBe(101);
  expect(ship.course).toBeCloseTo(90, 3);
  expect(glide(ship, 0).x).toBeCloseTo(mercatorX(100));
  expect(glide(ship, 5000).x).toBeCloseTo(mercatorX(101));
  fleet.take([{ SID: 2, Long: 999, Lat: 1 }, { SID: 3, Long: null, Lat: 1 }], 0);
  expect(fleet.ships.size).toBe(1);
});

test("outlines keep their distance", () => {
  const ring = circle(0, 60, 60);
  expect(Math.max(...ring.map((each) => each[1]))).toBeCloseTo(61, 6);
  expect(Math.max(...ring.map((each) => each[0]))).toBeCloseTo(2, 1);
  const square = [[[[0, 0], [1, 0], [1, 1], [0, 1]]]];
  expect(Math.min(...around(square, 60).map((each) => each[0]))).toBeCloseTo(-1, 2);
  const areas = [{ grant: "g", miles: 0, polygon: square }, { grant: "h", miles: 0, polygon: square }, { grant: "i", miles: 10, follow: { stream: "S", on: "SID", value: 7 } }];
  expect(outlineAreas(areas, () => null)).toHaveLength(1);
  expect(outlineAreas(areas, () => [3, 4])).toHaveLength(2);
});

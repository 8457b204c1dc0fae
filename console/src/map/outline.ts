/** Outlines of where grants hold: a public area, or all within so many miles of it. */
import type { Area } from "../api/types";

export type Ring = [number, number][];

export interface Outline {
  label: string;
  kind: "area" | "radius";
  rings: Ring[];
}

const NM_PER_DEGREE = 60;

/** A circle of miles around a place. */
export function circle(long: number, lat: number, miles: number, steps = 72): Ring {
  const dy = miles / NM_PER_DEGREE;
  const dx = dy / Math.max(0.05, Math.cos((lat * Math.PI) / 180));
  return Array.from({ length: steps + 1 }, (_, at) => {
    const turn = (at / steps) * 2 * Math.PI;
    return [long + dx * Math.sin(turn), lat + dy * Math.cos(turn)];
  });
}

/** All within miles of an area: the hull of circles about its corners, which is exact where the area is convex. */
export function around(polygon: number[][][][], miles: number): Ring {
  const corners = polygon.flatMap((part) => part[0] ?? []);
  return hull(corners.flatMap(([long = 0, lat = 0]) => circle(long, lat, miles, 48)));
}

function hull(points: Ring): Ring {
  const sorted = [...points].sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  const half = (list: Ring): Ring => {
    const made: Ring = [];
    for (const each of list) {
      while (made.length > 1 && cross(made.at(-2)!, made.at(-1)!, each) <= 0) made.pop();
      made.push(each);
    }
    made.pop();
    return made;
  };
  const ring = [...half(sorted), ...half(sorted.reverse())];
  return ring.length ? [...ring, ring[0]!] : [];
}

function cross(a: [number, number], b: [number, number], c: [number, number]): number {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/** What can be drawn of areas; `find` gives the place of a ship that an area moves with. */
export function outlineAreas(areas: Area[], find: (on: string, value: unknown) => [number, number] | null): Outline[] {
  const found: Outline[] = [];
  const seen = new Set<string>();
  for (const area of areas) {
    const mark = JSON.stringify([area.miles, area.point, area.polygon, area.follow]);
    if (seen.has(mark)) continue;
    seen.add(mark);
    const label = area.miles ? `${area.miles} nm` : "";
    if (area.polygon) {
      const rings = area.polygon.map((part) => close((part[0] ?? []) as Ring));
      if (!found.some((each) => each.kind === "area" && JSON.stringify(each.rings) === JSON.stringify(rings))) {
        found.push({ label: "", kind: "area", rings });
      }
      if (area.miles) found.push({ label, kind: "radius", rings: [around(area.polygon, area.miles)] });
    } else {
      const centre = area.point ?? (area.follow ? find(area.follow.on, area.follow.value) : null);
      if (centre && area.miles) found.push({ label, kind: "radius", rings: [circle(centre[0], centre[1], area.miles)] });
    }
  }
  return found;
}

function close(ring: Ring): Ring {
  return ring.length ? [...ring, ring[0]!] : ring;
}

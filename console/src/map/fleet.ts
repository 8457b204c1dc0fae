/** Whatever moves: the last place of each, its course, and where it came from. */
import type { Row } from "../api/types";
import { toMillis } from "../ui/format";
import { mercatorX, mercatorY } from "./mercator";

export const TRAIL = 16;
const GLIDE_MS = 900;
const SILENT_MS = 600_000;

export interface Roles {
  long: string;
  lat: string;
  key: string;
  course: string | null;
  name: string | null;
  kind: string | null;
  time: string | null;
}

export interface Ship {
  key: string;
  row: Row;
  long: number;
  lat: number;
  /** Where it is in the world, where it was shown when it last reported, and when that was. */
  x: number;
  y: number;
  fromX: number;
  fromY: number;
  since: number;
  course: number | null;
  kind: string;
  at: number;
  trail: number[];
}

const LIKE: Record<keyof Roles, RegExp> = {
  long: /^(long?|lng|longitude|x)$/i,
  lat: /^(lat|latitude|y)$/i,
  key: /^(sid|mmsi|imo|id|ship|vessel)$/i,
  course: /^(cog|course|heading|hdg)$/i,
  name: /^(name|ship_?name|vessel_?name)$/i,
  kind: /^(type|ship_?type|kind)$/i,
  time: /^(t|ts|time|timestamp)$/i,
};

/** Which columns tell a place, by their names; null where there is none. */
export function findRoles(columns: string[]): Roles | null {
  const find = (role: keyof Roles): string | null =>
    columns.find((each) => LIKE[role].test(each.includes(".") ? each.slice(each.lastIndexOf(".") + 1) : each)) ?? null;
  const long = find("long");
  const lat = find("lat");
  if (!long || !lat) return null;
  const name = find("name");
  const key = find("key") ?? name ?? "";
  return { long, lat, key, course: find("course"), name, kind: find("kind"), time: find("time") };
}

export class Fleet {
  readonly ships = new Map<string, Ship>();
  private count = 0;

  constructor(readonly roles: Roles) {}

  take(rows: Row[], now: number): void {
    for (const row of rows) this.report(row, now);
  }

  clear(): void {
    this.ships.clear();
  }

  /** Those that were silent for long are no longer drawn. */
  forget(now: number): void {
    for (const [key, ship] of this.ships) if (now - ship.since > SILENT_MS) this.ships.delete(key);
  }

  private report(row: Row, now: number): void {
    const long = row[this.roles.long];
    const lat = row[this.roles.lat];
    if (typeof long !== "number" || typeof lat !== "number" || Math.abs(long) > 180 || Math.abs(lat) > 90) return;
    const key = this.roles.key ? String(row[this.roles.key] ?? "") : `#${this.count++}`;
    const at = (this.roles.time && toMillis(row[this.roles.time])) || 0;
    const known = this.ships.get(key);
    if (known && at && known.at > at) return;
    const x = mercatorX(long);
    const y = mercatorY(lat);
    const given = this.roles.course ? row[this.roles.course] : null;
    const kind = this.roles.kind ? String(row[this.roles.kind] ?? "") : "";
    if (!known) {
      const course = typeof given === "number" ? given : null;
      this.ships.set(key, { key, row, long, lat, x, y, fromX: x, fromY: y, since: now, course, kind, at, trail: [x, y] });
      return;
    }
    const shown = glide(known, now);
    const moved = Math.hypot(x - known.x, known.y - y) > 1e-9;
    const course = typeof given === "number" ? given : moved ? (Math.atan2(x - known.x, known.y - y) * 180) / Math.PI : known.course;
    if (moved) {
      known.trail.push(x, y);
      if (known.trail.length > TRAIL * 2) known.trail.splice(0, 2);
    }
    Object.assign(known, { row, long, lat, x, y, fromX: shown.x, fromY: shown.y, since: now, course, kind, at });
  }
}

/** Where a ship is shown at a moment: it glides to its latest report. */
export function glide(ship: Ship, now: number): { x: number; y: number } {
  const part = Math.min(1, (now - ship.since) / GLIDE_MS);
  return { x: ship.fromX + (ship.x - ship.fromX) * part, y: ship.fromY + (ship.y - ship.fromY) * part };
}

export function isGliding(ship: Ship, now: number): boolean {
  return now - ship.since < GLIDE_MS;
}

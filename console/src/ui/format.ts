/** Values and times for people. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Math.round(value * 1e6) / 1e6);
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

/** A time of the gateway, which is UTC, in the reader's own zone. */
export function showTime(text: string): string {
  const at = new Date(/Z$|[+-]\d\d:\d\d$/.test(text) ? text : `${text.replace(" ", "T")}Z`);
  if (Number.isNaN(at.getTime())) return text;
  return at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Places in a text as the gateway counts them, by characters, as JavaScript counts them. */
export function toUnits(text: string, at: number): number {
  let units = 0;
  let count = 0;
  for (const each of text) {
    if (count++ >= at) break;
    units += each.length;
  }
  return units;
}

export function toMillis(value: unknown): number | null {
  if (typeof value !== "string") return null;
  const at = Date.parse(/Z$|[+-]\d\d:\d\d$/.test(value) ? value : `${value}Z`);
  return Number.isNaN(at) ? null : at;
}

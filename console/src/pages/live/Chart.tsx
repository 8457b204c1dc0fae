/** Windowed aggregates over time: a line for each value of each group, drawn as SVG. */
import { useMemo, useState } from "react";
import type { Row } from "../../api/types";
import { show, toMillis } from "../../ui/format";

const WIDTH = 900;
const HEIGHT = 320;
const PAD = { left: 56, right: 16, top: 14, bottom: 30 };
const COLOURS = ["#1f8a9e", "#c2571b", "#7a3aa8", "#2b8a3e", "#b02a5b", "#8a6d00", "#3b5bdb", "#6b7280"];
const MOST_POINTS = 400;

interface Line {
  name: string;
  points: { x: number; y: number }[];
}

/** The column that is the time of a row, if there is one. */
export function findTime(columns: string[], rows: Row[]): string | null {
  if (columns.includes("window_end")) return "window_end";
  const last = rows.at(-1);
  return columns.find((each) => toMillis(last?.[each]) !== null) ?? null;
}

export function findNumbers(columns: string[], rows: Row[]): string[] {
  const last = rows.slice(-20);
  return columns.filter((each) => last.some((row) => typeof row[each] === "number"));
}

export function Chart({ columns, rows }: { columns: string[]; rows: Row[] }) {
  const time = findTime(columns, rows);
  const numbers = findNumbers(columns, rows);
  const [chosen, setChosen] = useState<string | null>(null);
  const value = chosen && numbers.includes(chosen) ? chosen : (numbers.at(-1) ?? null);
  const lines = useMemo(
    () => (time && value ? makeLines(rows, time, value, groupColumns(columns, numbers)) : []),
    // `rows` is another array after each change
    [rows, time, value],
  );
  if (!time || !value || !lines.length) {
    return <div className="empty">Results with a time and a number are drawn here.</div>;
  }
  return (
    <div className="stack tight body">
      {numbers.length > 1 && (
        <div className="row">
          <label htmlFor="chart-value" className="small muted">
            Value
          </label>
          <select id="chart-value" className="narrow" value={value} onChange={(event) => setChosen(event.target.value)}>
            {numbers.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </div>
      )}
      <Drawing lines={lines} label={`${value} over time`} />
      <div className="row legend">
        {lines.map((each, at) => (
          <span key={each.name} className="small">
            <svg width="12" height="12" aria-hidden="true">
              <rect width="12" height="12" rx="3" fill={COLOURS[at % COLOURS.length]} />
            </svg>
            {each.name || value}: {show(each.points.at(-1)?.y)}
          </span>
        ))}
      </div>
    </div>
  );
}

function groupColumns(columns: string[], numbers: string[]): string[] {
  return columns.filter((each) => !numbers.includes(each) && !each.startsWith("window_"));
}

function makeLines(rows: Row[], time: string, value: string, groups: string[]): Line[] {
  const found = new Map<string, Line>();
  for (const row of rows) {
    const x = toMillis(row[time]);
    const y = row[value];
    if (x === null || typeof y !== "number") continue;
    const name = groups.filter((each) => toMillis(row[each]) === null).map((each) => show(row[each])).join(" · ");
    const line = found.get(name) ?? { name, points: [] };
    line.points.push({ x, y });
    found.set(name, line);
  }
  const lines = [...found.values()].sort((one, other) => other.points.length - one.points.length).slice(0, COLOURS.length);
  for (const each of lines) each.points = each.points.sort((one, other) => one.x - other.x).slice(-MOST_POINTS);
  return lines.sort((one, other) => one.name.localeCompare(other.name));
}

function Drawing({ lines, label }: { lines: Line[]; label: string }) {
  const points = lines.flatMap((each) => each.points);
  const xs = points.map((each) => each.x);
  const ys = points.map((each) => each.y);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const ticks = makeTicks(Math.min(0, ...ys), Math.max(...ys));
  const [y0, y1] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  const px = (x: number): number => PAD.left + ((x - x0) / (x1 - x0 || 1)) * (WIDTH - PAD.left - PAD.right);
  const py = (y: number): number => HEIGHT - PAD.bottom - ((y - y0) / (y1 - y0 || 1)) * (HEIGHT - PAD.top - PAD.bottom);
  const times = [0, 0.25, 0.5, 0.75, 1].map((each) => x0 + each * (x1 - x0));
  return (
    <svg className="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${label}; the table has the same values`}>
      {ticks.map((each) => (
        <g key={each}>
          <line x1={PAD.left} x2={WIDTH - PAD.right} y1={py(each)} y2={py(each)} className="grid" />
          <text x={PAD.left - 8} y={py(each) + 4} textAnchor="end">
            {show(each)}
          </text>
        </g>
      ))}
      {(x1 > x0 ? times : [x0]).map((each, at) => (
        <text key={each} x={px(each)} y={HEIGHT - 8} textAnchor={at === 0 ? "start" : at === 4 ? "end" : "middle"}>
          {new Date(each).toLocaleTimeString()}
        </text>
      ))}
      {lines.map((each, at) => (
        <g key={each.name} stroke={COLOURS[at % COLOURS.length]} fill={COLOURS[at % COLOURS.length]}>
          <polyline fill="none" strokeWidth="2" points={each.points.map((one) => `${px(one.x).toFixed(1)},${py(one.y).toFixed(1)}`).join(" ")} />
          {each.points.length < 80 && each.points.map((one) => <circle key={one.x} cx={px(one.x)} cy={py(one.y)} r="2.5" stroke="none" />)}
        </g>
      ))}
    </svg>
  );
}

function makeTicks(low: number, high: number): number[] {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * power >= rough) ?? 10) * power;
  const first = Math.floor(low / step) * step;
  const count = Math.ceil((high - first) / step) + 1;
  return Array.from({ length: Math.max(2, count) }, (_, at) => Math.round((first + at * step) * 1e6) / 1e6);
}

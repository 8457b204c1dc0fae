/** An area drawn on the map: a click adds a corner, a drag moves one; the corners are a text too, for the keyboard. */
import { useEffect, useRef, useState } from "react";
import { useTheme } from "../ui/theme";
import { makeBase, type Base } from "./base";
import { DARK, LIGHT } from "./draw";
import { fit, mercatorX, mercatorY, Projection, toLat } from "./mercator";
import "./map.css";

type Ring = [number, number][];

interface Props {
  ring: Ring;
  name: string;
  save: (name: string, ring: Ring) => void;
}

const NEAR = 12;

function round(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}

function readRing(text: string): Ring | null {
  const points = text.split(/[,\n]/).map((each) => each.trim()).filter(Boolean).map((each) => each.split(/\s+/).map(Number));
  const isGood = points.every((each) => each.length === 2 && each.every(Number.isFinite) && Math.abs(each[0]!) <= 180 && Math.abs(each[1]!) <= 90);
  return isGood ? (points as Ring) : null;
}

export default function AreaEditor({ ring: first, name: firstName, save }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const base = useRef<Base | null>(null);
  const [theme] = useTheme();
  const [name, setName] = useState(firstName);
  const [ring, setRing] = useState<Ring>(first);
  const [text, setText] = useState(writeRing(first));
  const [turn, setTurn] = useState(0);
  const down = useRef<{ x: number; y: number } | null>(null);

  useEffect(() => {
    const target = place.current;
    if (!target) return;
    let isClosed = false;
    void makeBase(target, document.documentElement.dataset.theme === "dark", () => setTurn((each) => each + 1)).then((made) => {
      if (isClosed) return made.close();
      base.current = made;
      const view = made.view();
      const longs = first.map((each) => each[0]);
      const lats = first.map((each) => each[1]);
      const box = first.length
        ? { west: Math.min(...longs) - 0.3, east: Math.max(...longs) + 0.3, south: Math.min(...lats) - 0.3, north: Math.max(...lats) + 0.3 }
        : { west: 102.5, east: 105.5, south: 0.2, north: 2.2 };
      const found = fit(box, view.width, view.height);
      made.show(found.long, found.lat, found.zoom);
      setTurn((each) => each + 1);
      return undefined;
    });
    return () => {
      isClosed = true;
      base.current?.close();
    };
    // the map is made once for an area
  }, []);

  useEffect(() => base.current?.setDark(theme === "dark"), [theme]);
  useEffect(() => {
    if (base.current && canvas.current) paint(canvas.current, base.current, ring, theme === "dark");
  }, [ring, turn, theme]);

  const put = (next: Ring): void => {
    setRing(next);
    setText(writeRing(next));
  };
  const click = (clientX: number, clientY: number): void => {
    if (!base.current || !place.current) return;
    const box = place.current.getBoundingClientRect();
    const projection = new Projection(base.current.view());
    const [x, y] = [clientX - box.left, clientY - box.top];
    const near = ring.findIndex(([long, lat]) => Math.hypot(projection.x(mercatorX(long)) - x, projection.y(mercatorY(lat)) - y) < NEAR);
    if (near >= 0) {
      put(ring.filter((_, at) => at !== near));
      return;
    }
    const long = ((x - projection.dx) / projection.scale) * 360 - 180;
    put([...ring, [round(long), round(toLat((y - projection.dy) / projection.scale))]]);
  };
  const wrong = readRing(text) === null;
  return (
    <div className="area-editor">
      <div
        className="map"
        onPointerDownCapture={(event) => (down.current = { x: event.clientX, y: event.clientY })}
        onClick={(event) => {
          const from = down.current;
          if (from && Math.hypot(event.clientX - from.x, event.clientY - from.y) < 5) click(event.clientX, event.clientY);
        }}
      >
        <div className="map-base" ref={place} />
        <canvas className="map-ships" ref={canvas} aria-hidden="true" />
        <span className="map-credit">Natural Earth</span>
      </div>
      <div className="body stack tight">
        <p className="muted small">Click the map to add a corner, click a corner to remove it.</p>
        <div className="field">
          <label htmlFor="area-name">Fact</label>
          <input id="area-name" className="mono" value={name} onChange={(event) => setName(event.target.value)} />
        </div>
        <div className="field">
          <label htmlFor="area-corners">Corners (longitude latitude, …)</label>
          <textarea
            id="area-corners"
            rows={3}
            value={text}
            aria-invalid={wrong || undefined}
            onChange={(event) => {
              setText(event.target.value);
              const found = readRing(event.target.value);
              if (found) setRing(found);
            }}
          />
          {wrong && <span className="wrong">A corner is two numbers: longitude and latitude.</span>}
        </div>
        <div className="row">
          <button className="mini" disabled={!ring.length} onClick={() => put(ring.slice(0, -1))}>
            Remove the last corner
          </button>
          <button className="mini" disabled={!ring.length} onClick={() => put([])}>
            Clear
          </button>
          <button className="mini primary" disabled={ring.length < 3 || wrong || !name.trim()} onClick={() => save(name.trim(), ring)}>
            Write the statement
          </button>
        </div>
      </div>
    </div>
  );
}

function writeRing(ring: Ring): string {
  return ring.map(([long, lat]) => `${long} ${lat}`).join(", ");
}

function paint(canvas: HTMLCanvasElement, base: Base, ring: Ring, dark: boolean): void {
  const view = base.view();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = view.width * ratio;
  canvas.height = view.height * ratio;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(ratio, ratio);
  base.paint?.(context);
  const projection = new Projection(view);
  const colours = dark ? DARK : LIGHT;
  const points = ring.map(([long, lat]) => [projection.x(mercatorX(long)), projection.y(mercatorY(lat))] as const);
  context.beginPath();
  points.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
  context.globalAlpha = 0.18;
  context.fillStyle = colours.area;
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = colours.area;
  context.lineWidth = 2;
  context.stroke();
  for (const [x, y] of points) {
    context.beginPath();
    context.arc(x, y, 5, 0, 2 * Math.PI);
    context.fillStyle = colours.area;
    context.fill();
  }
}

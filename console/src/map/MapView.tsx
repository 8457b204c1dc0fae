/** Ships on a map: the coastline below, everything that moves on a canvas above it. */
import { useEffect, useMemo, useRef, useState } from "react";
import type { Area, Row } from "../api/types";
import { show, showTime, toMillis } from "../ui/format";
import { useTheme } from "../ui/theme";
import { makeBase, type Base } from "./base";
import { makeCanvasBase } from "./canvasBase";
import { DARK, LIGHT, Painter } from "./draw";
import { Fleet, glide, isGliding, type Roles } from "./fleet";
import { fit, Projection, type Box } from "./mercator";
import { outlineAreas, type Outline } from "./outline";
import "./map.css";

interface Source {
  take(taker: (rows: Row[]) => void, clear: () => void): () => void;
}

export interface Props {
  source: Source;
  roles: Roles;
  areas: Area[];
}

export default function MapView({ source, roles, areas }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const under = useRef<HTMLCanvasElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [theme] = useTheme();
  const [chosen, setChosen] = useState<string | null>(null);
  const [failed, setFailed] = useState(false);
  const [seen, setSeen] = useState({ count: 0, kinds: [] as [string, number][] });
  const fleet = useMemo(() => new Fleet(roles), [roles]);
  const scene = useRef<Scene | null>(null);

  useEffect(() => {
    if (!place.current || !under.current || !canvas.current) return;
    const made = new Scene(place.current, new Painter(under.current, canvas.current, fleet), fleet);
    scene.current = made;
    made.onSeen = (count, kinds) => setSeen({ count, kinds });
    made.start(document.documentElement.dataset.theme === "dark").catch(() => setFailed(true));
    const stop = source.take(
      (rows) => made.take(rows),
      () => made.clear(),
    );
    return () => {
      stop();
      made.close();
      scene.current = null;
    };
  }, [fleet, source]);

  useEffect(() => scene.current?.setDark(theme === "dark"), [theme]);
  useEffect(() => scene.current?.setAreas(areas), [areas, fleet, source]);
  useEffect(() => {
    if (scene.current) scene.current.chosen = chosen;
    scene.current?.wake();
  }, [chosen]);

  const colours = theme === "dark" ? DARK : LIGHT;
  const ship = chosen ? fleet.ships.get(chosen) : undefined;
  return (
    <div className="map" onClick={(event) => setChosen(scene.current?.find(event.clientX, event.clientY) ?? null)}>
      <div className="map-base" ref={place} />
      <canvas className="map-under" ref={under} aria-hidden="true" />
      <canvas className="map-ships" ref={canvas} data-count={seen.count} aria-hidden="true" />
      <p className="hidden-label" role="status">
        A map with {seen.count} objects; the table has the same rows.
      </p>
      <div className="map-controls">
        <button aria-label="Closer" onClick={(event) => (event.stopPropagation(), scene.current?.zoomBy(1))}>
          +
        </button>
        <button aria-label="Farther" onClick={(event) => (event.stopPropagation(), scene.current?.zoomBy(-1))}>
          −
        </button>
        <button aria-label="Show everything" onClick={(event) => (event.stopPropagation(), scene.current?.fitAll())}>
          ⤢
        </button>
      </div>
      {seen.kinds.length > 0 && (
        <ul className="map-legend" aria-label="Kinds">
          {seen.kinds.map(([kind, at]) => (
            <li key={kind}>
              <svg width="10" height="10" aria-hidden="true">
                <circle cx="5" cy="5" r="5" fill={colours.ships[at]} />
              </svg>
              {kind}
            </li>
          ))}
        </ul>
      )}
      {ship && (
        <div className="map-card card" role="dialog" aria-label="The chosen object" onClick={(event) => event.stopPropagation()}>
          <header>
            <strong>{show(roles.name ? ship.row[roles.name] : ship.key)}</strong>
            <button className="quiet mini push" aria-label="Close" onClick={() => setChosen(null)}>
              ✕
            </button>
          </header>
          <dl>
            {Object.entries(ship.row).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{toMillis(value) === null ? show(value) : showTime(String(value))}</dd>
              </div>
            ))}
          </dl>
        </div>
      )}
      {failed && <div className="note bad map-failed">The coastline could not be loaded.</div>}
      <span className="map-credit">Natural Earth</span>
    </div>
  );
}

const SLOW_FRAME_MS = 60;
const PAUSE_MS = 1500;
const JUDGED_MS = 3000;

/** The moving part, outside React: a frame is drawn when something moves, and none otherwise. */
class Scene {
  chosen: string | null = null;
  onSeen: (count: number, kinds: [string, number][]) => void = () => undefined;
  private base: Base | null = null;
  private frame = 0;
  private isClosed = false;
  private isFitted = false;
  private dark = false;
  private told = 0;
  private lastFrame = 0;
  private slowness = 0;
  private watched = 0;
  private areas: Area[] = [];
  private outlines: Outline[] = [];

  constructor(
    private readonly place: HTMLElement,
    private readonly painter: Painter,
    private readonly fleet: Fleet,
  ) {}

  async start(dark: boolean): Promise<void> {
    this.dark = dark;
    const changed = (): void => this.wake();
    const base = await makeBase(this.place, dark, changed);
    if (this.isClosed) {
      base.close();
      return;
    }
    this.base = base;
    this.fitAll();
    this.wake();
  }

  close(): void {
    this.isClosed = true;
    cancelAnimationFrame(this.frame);
    this.base?.close();
  }

  take(rows: Row[]): void {
    this.fleet.take(rows, performance.now());
    if (!this.isFitted) this.fitAll();
    this.wake();
  }

  clear(): void {
    this.fleet.clear();
    this.told = 0;
    this.wake();
  }

  setAreas(areas: Area[]): void {
    this.areas = areas;
    this.told = 0;
    if (!this.isFitted) this.fitAll();
    this.wake();
  }

  setDark(dark: boolean): void {
    this.dark = dark;
    this.base?.setDark(dark);
    this.wake();
  }

  zoomBy(levels: number): void {
    this.base?.zoomBy(levels);
  }

  wake(): void {
    if (!this.frame && !this.isClosed) this.frame = requestAnimationFrame(() => this.draw());
  }

  /** The ship nearest to a point of the page, if one is near. */
  find(clientX: number, clientY: number): string | null {
    if (!this.base) return null;
    const box = this.place.getBoundingClientRect();
    const projection = new Projection(this.base.view());
    const now = performance.now();
    let best: string | null = null;
    let near = 14;
    for (const ship of this.fleet.ships.values()) {
      const at = glide(ship, now);
      const distance = Math.hypot(projection.x(at.x) - (clientX - box.left), projection.y(at.y) - (clientY - box.top));
      if (distance < near) [near, best] = [distance, ship.key];
    }
    return best;
  }

  fitAll(): void {
    if (!this.base) return;
    const box: Box = { west: 180, south: 90, east: -180, north: -90 };
    const add = (long: number, lat: number): void => {
      box.west = Math.min(box.west, long);
      box.east = Math.max(box.east, long);
      box.south = Math.min(box.south, lat);
      box.north = Math.max(box.north, lat);
    };
    for (const ship of this.fleet.ships.values()) add(ship.long, ship.lat);
    const hasShips = this.fleet.ships.size > 0;
    for (const each of this.outline()) if (!hasShips || each.kind === "area") for (const ring of each.rings) for (const [long, lat] of ring) add(long, lat);
    if (box.east < box.west) return;
    this.isFitted = hasShips;
    const pad = 0.03;
    const view = this.base.view();
    const found = fit({ west: box.west - pad, east: box.east + pad, south: box.south - pad, north: box.north + pad }, view.width, view.height);
    this.base.show(found.long, found.lat, found.zoom);
  }

  private outline(): Outline[] {
    return outlineAreas(this.areas, (on, value) => {
      for (const ship of this.fleet.ships.values()) {
        if (String(ship.row[on]) === String(value)) return [ship.long, ship.lat];
      }
      return null;
    });
  }

  private draw(): void {
    this.frame = 0;
    if (!this.base || this.isClosed) return;
    const now = performance.now();
    if (now - this.told > 400) {
      this.told = now;
      this.fleet.forget(now);
      this.outlines = this.outline();
      this.onSeen(this.fleet.ships.size, this.painter.listKinds());
    }
    const base = this.base;
    this.watchPace(now);
    const under = base.paint ? (context: CanvasRenderingContext2D) => base.paint?.(context) : undefined;
    this.painter.paint(base.view(), now, this.dark ? DARK : LIGHT, this.outlines, this.chosen, under);
    if (this.isMoving(now)) this.wake();
    else window.setTimeout(() => this.wake(), 500);
  }

  /** Where WebGL is only emulated it takes the time that the ships need: then the coast is drawn on a canvas instead. */
  private watchPace(now: number): void {
    const since = now - this.lastFrame;
    this.lastFrame = now;
    if (!this.base || this.base.paint || since > PAUSE_MS) return;
    this.slowness = this.slowness * 0.8 + since * 0.2;
    this.watched += since;
    if (this.watched < JUDGED_MS || this.slowness < SLOW_FRAME_MS) return;
    const view = this.base.view();
    this.base.close();
    this.base = null;
    this.place.replaceChildren();
    void makeCanvasBase(this.place, this.dark, () => this.wake()).then((made) => {
      if (this.isClosed) return made.close();
      this.base = made;
      made.show(view.long, view.lat, view.zoom);
      return undefined;
    });
  }

  private isMoving(now: number): boolean {
    for (const ship of this.fleet.ships.values()) if (isGliding(ship, now)) return true;
    return false;
  }
}

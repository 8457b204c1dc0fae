/** Ships, trails and outlines on canvases that lie over the map. */
import { glide, type Fleet } from "./fleet";
import { mercatorX, mercatorY, Projection, type View } from "./mercator";
import type { Outline } from "./outline";
import { PixelBuffer, Sprites, toWord } from "./sprites";

export interface Colours {
  ships: string[];
  trail: string;
  area: string;
  text: string;
  chosen: string;
}

export const LIGHT: Colours = {
  ships: ["#0b6475", "#b3480f", "#7a3aa8", "#2b7a3e", "#a3244f", "#7a6000", "#3249b8", "#4b5563"],
  trail: "rgb(11 60 80 / 35%)",
  area: "#7a3aa8",
  text: "#3b2150",
  chosen: "#111827",
};

export const DARK: Colours = {
  ships: ["#5fd0e2", "#ff9f66", "#d3a6f3", "#7ddb98", "#ff8fb3", "#e5cc62", "#9db0ff", "#b6c0ca"],
  trail: "rgb(160 220 235 / 35%)",
  area: "#d3a6f3",
  text: "#ecdcfa",
  chosen: "#ffffff",
};

const FEW = 1500;
const SLOW_MS = 500;

/** Two canvases: what changes slowly below, ships above, which are drawn for each frame. */
export class Painter {
  private readonly kinds = new Map<string, number>();
  private readonly sprites = new Map<number, Sprites>();
  private buffer: PixelBuffer | null = null;
  private underFor = "";
  private underAt = 0;

  constructor(
    private readonly under: HTMLCanvasElement,
    private readonly ships: HTMLCanvasElement,
    private readonly fleet: Fleet,
  ) {}

  paint(view: View, now: number, colours: Colours, outlines: Outline[], chosen: string | null, base?: (context: CanvasRenderingContext2D) => void): void {
    const projection = new Projection(view);
    const mark = `${view.long},${view.lat},${view.zoom},${view.width},${view.height},${colours.trail}`;
    if (mark !== this.underFor || now - this.underAt > SLOW_MS) {
      this.underFor = mark;
      this.underAt = now;
      this.paintUnder(view, projection, colours, outlines, base);
    }
    this.paintShips(view, projection, now, colours, chosen);
  }

  /** The number of a kind's colour, in the order in which kinds were first seen. */
  colourOf(kind: string): number {
    let found = this.kinds.get(kind);
    if (found === undefined) {
      found = this.kinds.size % LIGHT.ships.length;
      this.kinds.set(kind, found);
    }
    return found;
  }

  listKinds(): [string, number][] {
    return [...this.kinds].filter(([kind]) => kind);
  }

  private paintUnder(view: View, projection: Projection, colours: Colours, outlines: Outline[], base?: (context: CanvasRenderingContext2D) => void): void {
    const context = prepare(this.under, view);
    if (!context) return;
    base?.(context);
    drawOutlines(context, projection, outlines, colours);
    this.drawTrails(context, view, projection, colours);
  }

  private drawTrails(context: CanvasRenderingContext2D, view: View, projection: Projection, colours: Colours): void {
    const most = this.fleet.ships.size > FEW ? 4 : Infinity;
    context.beginPath();
    for (const { trail } of this.fleet.ships.values()) {
      const last = trail.length - 2;
      const x = projection.x(trail[last]!);
      const y = projection.y(trail[last + 1]!);
      if (last < 2 || x < -50 || y < -50 || x > view.width + 50 || y > view.height + 50) continue;
      const first = Math.max(0, last - most);
      context.moveTo(projection.x(trail[first]!), projection.y(trail[first + 1]!));
      for (let at = first + 2; at <= last; at += 2) context.lineTo(projection.x(trail[at]!), projection.y(trail[at + 1]!));
    }
    context.strokeStyle = colours.trail;
    context.lineWidth = 1.5;
    context.stroke();
  }

  private paintShips(view: View, projection: Projection, now: number, colours: Colours, chosen: string | null): void {
    const ratio = window.devicePixelRatio || 1;
    const context = prepare(this.ships, view);
    if (!context) return;
    const { width, height } = this.ships;
    if (this.buffer?.width !== width || this.buffer.height !== height) this.buffer = new PixelBuffer(width, height);
    const buffer = this.buffer;
    const size = (this.fleet.ships.size > FEW ? 5 : 7) * ratio;
    const sprites = this.findSprites(size);
    const words = colours.ships.map(toWord);
    let marked: { x: number; y: number } | null = null;
    buffer.clear();
    for (const ship of this.fleet.ships.values()) {
      const at = glide(ship, now);
      const x = projection.x(at.x);
      const y = projection.y(at.y);
      if (x < -size || y < -size || x > view.width + size || y > view.height + size) continue;
      if (ship.key === chosen) marked = { x, y };
      buffer.stamp(sprites.find(ship.course), x * ratio, y * ratio, words[this.colourOf(ship.kind)]!);
    }
    buffer.show(context);
    if (marked) drawMark(context, marked.x, marked.y, colours.chosen);
  }

  private findSprites(size: number): Sprites {
    let found = this.sprites.get(size);
    if (!found) {
      found = new Sprites(size);
      this.sprites.set(size, found);
    }
    return found;
  }
}

function drawMark(context: CanvasRenderingContext2D, x: number, y: number, colour: string): void {
  context.beginPath();
  context.arc(x, y, 13, 0, 2 * Math.PI);
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.stroke();
}

/** The canvas at the size of the view, empty. By the processor: its emulation of a graphics card is far slower. */
function prepare(canvas: HTMLCanvasElement, view: View): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.max(1, Math.round(view.width * ratio)), Math.max(1, Math.round(view.height * ratio))];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, view.width, view.height);
  return context;
}

function drawOutlines(context: CanvasRenderingContext2D, projection: Projection, outlines: Outline[], colours: Colours): void {
  context.font = "600 12px system-ui, sans-serif";
  for (const each of outlines) {
    context.beginPath();
    let top: [number, number] | null = null;
    for (const ring of each.rings) {
      ring.forEach(([long, lat], at) => {
        const x = projection.x(mercatorX(long));
        const y = projection.y(mercatorY(lat));
        if (at) context.lineTo(x, y);
        else context.moveTo(x, y);
        if (!top || y < top[1]) top = [x, y];
      });
    }
    context.strokeStyle = colours.area;
    context.lineWidth = each.kind === "area" ? 2 : 1.5;
    context.setLineDash(each.kind === "area" ? [] : [6, 5]);
    context.stroke();
    context.setLineDash([]);
    if (top && each.label) {
      context.fillStyle = colours.text;
      context.textAlign = "center";
      context.fillText(each.label, top[0], top[1] - 6);
    }
  }
}

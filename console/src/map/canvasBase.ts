/** The coastline on a plain canvas, for browsers without WebGL. */
import type { Base, MakeBase } from "./base";
import { loadLand, type Land } from "./coast";
import { mercatorX, mercatorY, Projection, toLat, worldSize, type View } from "./mercator";

interface Ring {
  points: Float64Array;
  west: number;
  north: number;
  east: number;
  south: number;
}

function listRings(land: Land): Ring[] {
  const rings: Ring[] = [];
  for (const each of land.features) {
    const polygons = each.geometry.type === "Polygon" ? [each.geometry.coordinates] : each.geometry.coordinates;
    for (const polygon of polygons) for (const ring of polygon) rings.push(makeRing(ring));
  }
  return rings;
}

function makeRing(ring: number[][]): Ring {
  const points = new Float64Array(ring.length * 2);
  const box = { west: Infinity, north: Infinity, east: -Infinity, south: -Infinity };
  ring.forEach(([long = 0, lat = 0], at) => {
    const x = mercatorX(long);
    const y = mercatorY(lat);
    points[at * 2] = x;
    points[at * 2 + 1] = y;
    box.west = Math.min(box.west, x);
    box.east = Math.max(box.east, x);
    box.north = Math.min(box.north, y);
    box.south = Math.max(box.south, y);
  });
  return { points, ...box };
}

export const makeCanvasBase: MakeBase = async (place, isDark, changed) => {
  const rings = listRings(await loadLand());
  const view: View = { long: 0, lat: 20, zoom: 1, width: place.clientWidth, height: place.clientHeight };
  let dark = isDark;
  const move = (dx: number, dy: number): void => {
    const scale = worldSize(view.zoom);
    view.long = Math.max(-180, Math.min(180, view.long - (dx / scale) * 360));
    view.lat = toLat(mercatorY(view.lat) - dy / scale);
    changed();
  };
  const zoomBy = (levels: number): void => {
    view.zoom = Math.max(0, Math.min(15, view.zoom + levels));
    changed();
  };
  const stop = listen(place, move, zoomBy);
  const sizes = new ResizeObserver(() => {
    view.width = place.clientWidth;
    view.height = place.clientHeight;
    changed();
  });
  sizes.observe(place);
  const base: Base = {
    view: () => ({ ...view }),
    show: (long, lat, zoom) => {
      Object.assign(view, { long, lat, zoom });
      changed();
    },
    zoomBy,
    setDark: (now) => {
      dark = now;
      changed();
    },
    paint: (context) => paint(context, view, rings, dark),
    close: () => {
      stop();
      sizes.disconnect();
    },
  };
  return base;
};

function paint(context: CanvasRenderingContext2D, view: View, rings: Ring[], dark: boolean): void {
  const projection = new Projection(view);
  context.fillStyle = dark ? "#0f2430" : "#dbe9f1";
  context.fillRect(0, 0, view.width, view.height);
  context.beginPath();
  for (const ring of rings) {
    if (projection.x(ring.east) < 0 || projection.x(ring.west) > view.width) continue;
    if (projection.y(ring.south) < 0 || projection.y(ring.north) > view.height) continue;
    trace(context, ring.points, projection);
  }
  context.fillStyle = dark ? "#23302f" : "#f0ede4";
  context.fill("evenodd");
  context.strokeStyle = dark ? "#4d5f5a" : "#a9b5a4";
  context.lineWidth = 1;
  context.stroke();
}

/** Points that lie closer together than a pixel are left out. */
function trace(context: CanvasRenderingContext2D, points: Float64Array, projection: Projection): void {
  let lastX = Infinity;
  let lastY = Infinity;
  for (let at = 0; at < points.length; at += 2) {
    const x = projection.x(points[at]!);
    const y = projection.y(points[at + 1]!);
    if (at === 0) context.moveTo(x, y);
    else if (Math.abs(x - lastX) + Math.abs(y - lastY) > 1) context.lineTo(x, y);
    else continue;
    lastX = x;
    lastY = y;
  }
  context.closePath();
}

function listen(place: HTMLElement, move: (dx: number, dy: number) => void, zoomBy: (levels: number) => void): () => void {
  place.tabIndex = 0;
  place.setAttribute("role", "application");
  place.setAttribute("aria-label", "Coastline; drag to move, arrow keys and plus and minus work too");
  let from: PointerEvent | null = null;
  const stop = new AbortController();
  const options = { signal: stop.signal };
  place.addEventListener("pointerdown", (event) => {
    from = event;
    place.setPointerCapture(event.pointerId);
  }, options);
  place.addEventListener("pointermove", (event) => {
    if (!from) return;
    move(event.clientX - from.clientX, event.clientY - from.clientY);
    from = event;
  }, options);
  place.addEventListener("pointerup", () => (from = null), options);
  place.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomBy(-event.deltaY / 300);
  }, { ...options, passive: false });
  place.addEventListener("keydown", (event) => {
    const steps: Record<string, [number, number]> = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] };
    const step = steps[event.key];
    if (step) move(...step);
    else if (event.key === "+" || event.key === "=") zoomBy(1);
    else if (event.key === "-") zoomBy(-1);
    else return;
    event.preventDefault();
  }, options);
  return () => stop.abort();
}

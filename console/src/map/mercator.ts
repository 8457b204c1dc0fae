/** The web's usual projection, so that what we draw lies on what MapLibre draws. */
export interface View {
  long: number;
  lat: number;
  zoom: number;
  width: number;
  height: number;
}

const TILE = 512;
const EDGE = 85.0511;

export function mercatorX(long: number): number {
  return (long + 180) / 360;
}

export function mercatorY(lat: number): number {
  const bounded = Math.max(-EDGE, Math.min(EDGE, lat));
  const angle = (bounded * Math.PI) / 180;
  return (1 - Math.log(Math.tan(angle) + 1 / Math.cos(angle)) / Math.PI) / 2;
}

export function toLat(y: number): number {
  return (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;
}

export function worldSize(zoom: number): number {
  return TILE * 2 ** zoom;
}

/** From places of the world between 0 and 1 to points of the view. */
export class Projection {
  readonly scale: number;
  readonly dx: number;
  readonly dy: number;

  constructor(view: View) {
    this.scale = worldSize(view.zoom);
    this.dx = view.width / 2 - mercatorX(view.long) * this.scale;
    this.dy = view.height / 2 - mercatorY(view.lat) * this.scale;
  }

  x(mercator: number): number {
    return mercator * this.scale + this.dx;
  }

  y(mercator: number): number {
    return mercator * this.scale + this.dy;
  }
}

export interface Box {
  west: number;
  south: number;
  east: number;
  north: number;
}

export function fit(box: Box, width: number, height: number): { long: number; lat: number; zoom: number } {
  const spanX = Math.max(1e-6, mercatorX(box.east) - mercatorX(box.west));
  const spanY = Math.max(1e-6, mercatorY(box.south) - mercatorY(box.north));
  const zoom = Math.log2(Math.min((width * 0.84) / spanX, (height * 0.84) / spanY) / TILE);
  return {
    long: (box.west + box.east) / 2,
    lat: toLat((mercatorY(box.south) + mercatorY(box.north)) / 2),
    zoom: Math.max(0, Math.min(13, zoom)),
  };
}

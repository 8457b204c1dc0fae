/** What lies under the ships, and how one moves about on it. */
import { makeCanvasBase } from "./canvasBase";
import type { View } from "./mercator";

export interface Base {
  /** The view as it is now. */
  view(): View;
  show(long: number, lat: number, zoom: number): void;
  zoomBy(levels: number): void;
  setDark(dark: boolean): void;
  /** Draws what lies below on the canvas of the ships, where there is no layer of its own for it. */
  paint?(context: CanvasRenderingContext2D): void;
  close(): void;
}

export type MakeBase = (place: HTMLElement, dark: boolean, changed: () => void) => Promise<Base>;

function hasWebGL(): boolean {
  try {
    const canvas = document.createElement("canvas");
    return Boolean(canvas.getContext("webgl2"));
  } catch {
    return false;
  }
}

/** MapLibre where the browser can, else a plain canvas. */
export const makeBase: MakeBase = async (place, dark, changed) => {
  if (hasWebGL()) {
    try {
      return await (await import("./glBase")).makeGlBase(place, dark, changed);
    } catch {
      place.replaceChildren();
    }
  }
  return makeCanvasBase(place, dark, changed);
};

/** The coastline by MapLibre. Its worker is a file of our own, as the content security policy wants. */
import { Map as GlMap, setWorkerUrl, type StyleSpecification } from "maplibre-gl";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url";
import "maplibre-gl/dist/maplibre-gl.css";
import type { Base, MakeBase } from "./base";
import { loadLand, type Land } from "./coast";

setWorkerUrl(workerUrl);

const COLOURS = {
  light: { sea: "#dbe9f1", land: "#f0ede4", coast: "#a9b5a4" },
  dark: { sea: "#0f2430", land: "#23302f", coast: "#4d5f5a" },
};

function makeStyle(land: Land, dark: boolean): StyleSpecification {
  const found = dark ? COLOURS.dark : COLOURS.light;
  return {
    version: 8,
    sources: { land: { type: "geojson", data: land, tolerance: 0.2, attribution: "Natural Earth" } },
    layers: [
      { id: "sea", type: "background", paint: { "background-color": found.sea } },
      { id: "land", type: "fill", source: "land", paint: { "fill-color": found.land } },
      { id: "coast", type: "line", source: "land", paint: { "line-color": found.coast, "line-width": 1 } },
    ],
  };
}

export const makeGlBase: MakeBase = async (place, dark, changed) => {
  const land = await loadLand();
  const map = new GlMap({
    container: place,
    style: makeStyle(land, dark),
    center: [0, 20],
    zoom: 1,
    maxZoom: 15,
    maxPitch: 0,
    dragRotate: false,
    pitchWithRotate: false,
    touchPitch: false,
    renderWorldCopies: false,
    attributionControl: false,
    fadeDuration: 0,
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.on("move", changed);
  map.on("resize", changed);
  const canvas = map.getCanvas();
  canvas.setAttribute("aria-label", "Coastline; drag to move, arrow keys and plus and minus work too");
  const base: Base = {
    view: () => {
      const centre = map.getCenter();
      return { long: centre.lng, lat: centre.lat, zoom: map.getZoom(), width: place.clientWidth, height: place.clientHeight };
    },
    show: (long, lat, zoom) => map.jumpTo({ center: [long, lat], zoom }),
    zoomBy: (levels) => map.zoomTo(map.getZoom() + levels, { duration: 150 }),
    setDark: (now) => {
      const found = now ? COLOURS.dark : COLOURS.light;
      if (!map.getLayer("sea")) return;
      map.setPaintProperty("sea", "background-color", found.sea);
      map.setPaintProperty("land", "fill-color", found.land);
      map.setPaintProperty("coast", "line-color", found.coast);
    },
    close: () => map.remove(),
  };
  return base;
};

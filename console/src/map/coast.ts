/** The coastline: Natural Earth 1:10m, from the package `world-atlas`, fetched from the gateway when a map is first shown. */
import landUrl from "world-atlas/land-10m.json?url";
import { feature } from "topojson-client";
import type { Topology } from "topojson-specification";
import type { FeatureCollection, MultiPolygon, Polygon } from "geojson";

export type Land = FeatureCollection<Polygon | MultiPolygon>;

let loading: Promise<Land> | null = null;

export function loadLand(): Promise<Land> {
  loading ??= fetch(landUrl)
    .then((answer) => answer.json() as Promise<Topology>)
    .then((topology) => feature(topology, topology.objects.land!) as unknown as Land);
  loading.catch(() => (loading = null));
  return loading;
}

/** Places in the console, after the `#`: the gateway serves one page for all of them. */
import { useSyncExternalStore } from "react";

export interface Place {
  page: string;
  rest: string[];
  params: URLSearchParams;
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("hashchange", listener);
  return () => window.removeEventListener("hashchange", listener);
}

/** A part of the address; one that is badly written names no page. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "unknown";
  }
}

export function usePlace(): Place {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/").map(decode);
  return { page, rest, params: new URLSearchParams(query) };
}

export function go(page: string, ...rest: string[]): void {
  window.location.hash = `#/${[page, ...rest].map(encodeURIComponent).join("/")}`;
}

export function link(page: string, ...rest: string[]): string {
  return `#/${[page, ...rest].map(encodeURIComponent).join("/")}`;
}

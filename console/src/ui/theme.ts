/** Dark or light: as the system says, or as was chosen in this browser. */
import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark";

const KEY = "sluicegate.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function read(): Theme {
  const chosen = localStorage.getItem(KEY);
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
}

function show(): void {
  document.documentElement.dataset.theme = read();
  for (const each of listeners) each();
}

system.addEventListener("change", show);
show();

export function useTheme(): [Theme, () => void] {
  const theme = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    read,
  );
  const toggle = (): void => {
    localStorage.setItem(KEY, theme === "dark" ? "light" : "dark");
    show();
  };
  return [theme, toggle];
}

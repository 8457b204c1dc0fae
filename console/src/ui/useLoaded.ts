/** Something asked of the gateway, asked again on demand, and every so often while the page is seen. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { Loaded } from "./States";

export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[], everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; error: unknown }>({ value: null, error: null });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const reload = useCallback(() => setTurn((each) => each + 1), []);

  useEffect(() => {
    const stop = new AbortController();
    const ask = (): void => {
      latest.current(stop.signal).then(
        (value) => !stop.signal.aborted && setState({ value, error: null }),
        (error: unknown) =>
          !stop.signal.aborted && setState((before) => ({ value: everyMs ? before.value : null, error })),
      );
    };
    ask();
    const timer = everyMs ? window.setInterval(() => document.hidden || ask(), everyMs) : 0;
    return () => {
      stop.abort();
      window.clearInterval(timer);
    };
    // what is asked for is told by `deps`
  }, [...deps, turn, everyMs]);

  return { ...state, reload };
}

/** The session of this tab.
 *
 * The token lives in sessionStorage: it survives a reload of the tab, so that no row is lost by one, it is gone with the
 * tab, and unlike a cookie no other site can make the browser send it. What reads it is our own script alone: the content
 * security policy lets no other run.
 */
const KEY = "sluicegate.session";

export interface Session {
  token: string;
  user: string;
  expires: string;
}

type State = { session: Session | null; ended: string | null };

let state: State = { session: read(), ended: null };
const listeners = new Set<() => void>();

function read(): Session | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Session | null;
    return found && typeof found.token === "string" ? found : null;
  } catch {
    return null;
  }
}

function set(next: State): void {
  state = next;
  for (const each of listeners) each();
}

export function getState(): State {
  return state;
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function begin(session: Session): void {
  sessionStorage.setItem(KEY, JSON.stringify(session));
  set({ session, ended: null });
}

/** The session is over; `reason` is shown on the sign-in page, null where one signed out. */
export function end(reason: string | null): void {
  if (state.session === null) return;
  sessionStorage.clear();
  set({ session: null, ended: reason });
}

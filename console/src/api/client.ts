/** Calls of the gateway: JSON in, JSON out, and its errors as something that can be read. */
import { end, getState } from "./session";

export interface Place {
  code: string;
  message: string;
  start: number;
  end: number;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly help: string | null = null,
    readonly places: Place[] = [],
    readonly request = "",
    readonly more: { code: string; message: string }[] = [],
  ) {
    super(message);
  }
}

const SESSION_OVER: Record<string, string> = {
  "token-expired": "Your session has expired.",
  "token-revoked": "Your session was ended.",
  "user-disabled": "This account was disabled.",
  "role-lost": "You lost a role that this session had.",
};

export function tellOver(code: string): string {
  return SESSION_OVER[code] ?? "Your session is over.";
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const { session } = getState();
  const headers = new Headers(init.headers);
  if (session) headers.set("authorization", `Bearer ${session.token}`);
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "gateway-unreachable", "the gateway cannot be reached", "check the connection and try again");
  }
  if (answer.ok) return answer;
  const trouble = await readTrouble(answer);
  if (answer.status === 401 && session && path !== "/v1/sign-in") end(tellOver(trouble.code));
  throw trouble;
}

async function readTrouble(answer: Response): Promise<ApiError> {
  try {
    const { error } = (await answer.json()) as {
      error: { code: string; message: string; help: string | null; places: Place[]; request: string; more: [] };
    };
    return new ApiError(answer.status, error.code, error.message, error.help, error.places, error.request, error.more);
  } catch {
    return new ApiError(answer.status, "unreadable", `the gateway answered ${answer.status}`);
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await request(path, { signal })).json()) as T;
}

export async function send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method, signal };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  return (await (await request(path, init)).json()) as T;
}

export function post<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return send<T>("POST", path, body, signal);
}

/** An error for people: a sentence, with what helps. */
export function tell(error: unknown): string {
  if (!(error instanceof ApiError)) return "Something went wrong in this page. Reload it and try again.";
  const first = error.message.charAt(0).toUpperCase() + error.message.slice(1);
  return error.help ? `${first} — ${error.help}.` : `${first}.`;
}

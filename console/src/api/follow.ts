/** Following a result: server-sent events over fetch, since EventSource cannot send an Authorization header. */
import { ApiError, request, tellOver } from "./client";
import { parseEvents, type ServerEvent } from "./events";
import { end } from "./session";
import type { Row } from "./types";

export type Link = "connecting" | "live" | "reconnecting" | "ended";

export interface Told {
  version: number;
  decision: string;
  notices: string[];
}

export interface Listener {
  /** `before` is the cursor in front of these rows, null for the beginning. */
  onRows(rows: Row[], before: string | null): void;
  onNotice(told: Told, again: boolean): void;
  onGap(): void;
  onLink(link: Link): void;
  onEnd(kind: string, reason: string): void;
}

const QUIET_MS = 45_000;
const WAITS = [300, 600, 1200, 2500, 5000];

export class Follower {
  private cursor: string | null;
  private readonly stop = new AbortController();
  private tries = 0;
  private wake: (() => void) | null = null;

  constructor(
    private readonly handle: string,
    cursor: string | null,
    private readonly listener: Listener,
  ) {
    this.cursor = cursor;
  }

  start(): void {
    window.addEventListener("online", this.hurry);
    void this.run();
  }

  close(): void {
    window.removeEventListener("online", this.hurry);
    this.stop.abort();
    this.wake?.();
  }

  private readonly hurry = (): void => this.wake?.();

  private async run(): Promise<void> {
    this.listener.onLink("connecting");
    while (!this.stop.signal.aborted) {
      try {
        if (await this.read()) return;
      } catch (error) {
        if (this.stop.signal.aborted || this.isOver(error)) return;
      }
      if (this.stop.signal.aborted) return;
      this.listener.onLink("reconnecting");
      await this.rest();
    }
  }

  private isOver(error: unknown): boolean {
    if (!(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500) return false;
    if (error.status === 401) return true;
    if (error.code.startsWith("gate-cursor") && this.cursor !== null) {
      this.cursor = null;
      return false;
    }
    this.listener.onLink("ended");
    this.listener.onEnd(error.code === "query-unknown" ? "gone" : "error", error.message);
    return true;
  }

  private rest(): Promise<void> {
    const wait = WAITS[Math.min(this.tries++, WAITS.length - 1)] ?? 5000;
    return new Promise((resolve) => {
      const timer = window.setTimeout(resolve, wait * (0.8 + Math.random() * 0.4));
      this.wake = () => {
        window.clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Reads one connection to its end; true when the query or the session is over. */
  private async read(): Promise<boolean> {
    const once = new AbortController();
    const abort = (): void => once.abort();
    this.stop.signal.addEventListener("abort", abort);
    const query = this.cursor === null ? "" : `?cursor=${encodeURIComponent(this.cursor)}`;
    try {
      const answer = await request(`/v1/queries/${encodeURIComponent(this.handle)}/results${query}`, {
        headers: { accept: "text/event-stream" },
        signal: once.signal,
      });
      if (!answer.body) return false;
      this.listener.onLink("live");
      this.tries = 0;
      return await this.drain(answer.body, abort);
    } finally {
      this.stop.signal.removeEventListener("abort", abort);
    }
  }

  private async drain(body: ReadableStream<Uint8Array>, abort: () => void): Promise<boolean> {
    let timer = window.setTimeout(abort, QUIET_MS);
    let notices = 0;
    try {
      for await (const event of parseEvents(body, () => {
        window.clearTimeout(timer);
        timer = window.setTimeout(abort, QUIET_MS);
      })) {
        if (event.name === "notice") this.listener.onNotice(event.data as Told, notices++ > 0);
        else if (this.take(event)) return true;
      }
    } finally {
      window.clearTimeout(timer);
    }
    return false;
  }

  private take(event: ServerEvent): boolean {
    switch (event.name) {
      case "rows":
        this.listener.onRows(event.data as Row[], this.cursor);
        this.cursor = event.id ?? this.cursor;
        return false;
      case "gap":
        this.cursor = event.id ?? this.cursor;
        this.listener.onGap();
        return false;
      case "withdrawn":
      case "closed":
      case "revoked": {
        const reason = String((event.data as { reason?: string }).reason ?? "");
        this.listener.onLink("ended");
        this.listener.onEnd(event.name, reason);
        if (event.name === "revoked") end(tellOver(reason));
        return true;
      }
      default:
        return false;
    }
  }
}

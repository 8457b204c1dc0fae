/** Rows of a followed result, as far back as this page keeps them.
 *
 * The gateway keeps rows for longer. Where a reload begins to read again is the cursor in front of the oldest row that is
 * still shown, so that nothing that was on the page is missing after it; rows are not acknowledged, for another reader of
 * the same query may not have them yet.
 */
import { Follower, type Link, type Told } from "../../api/follow";
import type { Row } from "../../api/types";

const MOST_ROWS = 20_000;

interface Chunk {
  before: string | null;
  rows: Row[];
}

export interface Ended {
  kind: string;
  reason: string;
}

export interface Snapshot {
  turn: number;
  link: Link;
  told: Told | null;
  ended: Ended | null;
  gaps: number;
  received: number;
  changes: number;
}

export class Results {
  readonly columns: string[] = [];
  rows: Row[] = [];
  private chunks: Chunk[] = [];
  private snapshot: Snapshot = { turn: 0, link: "connecting", told: null, ended: null, gaps: 0, received: 0, changes: 0 };
  private readonly listeners = new Set<() => void>();
  private readonly takers = new Set<{ take: (rows: Row[]) => void; clear: () => void }>();
  private frame = 0;
  private readonly follower: Follower;
  private readonly key: string;

  constructor(handle: string) {
    this.key = `sluicegate.cursor.${handle}`;
    this.follower = new Follower(handle, sessionStorage.getItem(this.key), {
      onRows: (rows, before) => this.add(rows, before),
      onNotice: (told, again) => this.tell(told, again),
      onGap: () => this.set({ gaps: this.snapshot.gaps + 1 }),
      onLink: (link) => this.set({ link }),
      onEnd: (kind, reason) => this.finish(kind, reason),
    });
  }

  start(): void {
    this.follower.start();
  }

  close(): void {
    this.follower.close();
    cancelAnimationFrame(this.frame);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly getSnapshot = (): Snapshot => this.snapshot;

  /** Every row from now on; those that are kept already come at once. */
  take(take: (rows: Row[]) => void, clear: () => void): () => void {
    const taker = { take, clear };
    this.takers.add(taker);
    if (this.rows.length) take(this.rows);
    return () => this.takers.delete(taker);
  }

  private add(rows: Row[], before: string | null): void {
    this.chunks.push({ before, rows });
    for (const name of Object.keys(rows[0] ?? {})) if (!this.columns.includes(name)) this.columns.push(name);
    this.rows = this.rows.concat(rows);
    while (this.rows.length > MOST_ROWS && this.chunks.length > 1) {
      const oldest = this.chunks.shift();
      this.rows = this.rows.slice(oldest?.rows.length ?? 0);
    }
    const first = this.chunks[0]?.before;
    if (first) sessionStorage.setItem(this.key, first);
    for (const each of this.takers) each.take(rows);
    this.set({ received: this.snapshot.received + rows.length });
  }

  /** What the query may have; after a change of it, rows of before are no longer shown. */
  private tell(told: Told, again: boolean): void {
    const before = this.snapshot.told;
    const same = before && before.decision === told.decision && before.notices.join() === told.notices.join();
    if (again || (before && !same)) {
      this.clear();
      this.set({ changes: this.snapshot.changes + 1 });
    }
    this.set({ told });
  }

  private finish(kind: string, reason: string): void {
    this.clear();
    sessionStorage.removeItem(this.key);
    this.set({ ended: { kind, reason } });
  }

  private clear(): void {
    this.chunks = [];
    this.rows = [];
    for (const each of this.takers) each.clear();
  }

  private set(part: Partial<Snapshot>): void {
    this.snapshot = { ...this.snapshot, ...part, turn: this.snapshot.turn + 1 };
    // many events of one moment are one look at the page; a hidden page has no frames and needs none
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        for (const each of this.listeners) each();
      });
    }
  }
}

/** Rows of a followed result, as far back as this page keeps them.
 *
 * A page that is opened begins with the latest results that there are, however many came before them.
 * The gateway keeps rows for longer. Where a reload begins to read again is the cursor in front of the oldest row that is
 * still shown, so that nothing that was on the page is missing after it; rows are not acknowledged, for another reader of
 * the same query may not have them yet.
 */
import { get } from "../../api/client";
import { Follower, type Link, type Told } from "../../api/follow";
import type { Row } from "../../api/types";

const MOST_ROWS = 20_000;
const TICKS_BACK = 60;

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
  private chunks: Chunk[] = [];
  private count = 0;
  private flat: Row[] | null = [];
  private snapshot: Snapshot = { turn: 0, link: "connecting", told: null, ended: null, gaps: 0, received: 0, changes: 0 };
  private readonly listeners = new Set<() => void>();
  private readonly takers = new Set<{ take: (rows: Row[]) => void; clear: () => void }>();
  private frame = 0;
  private follower: Follower | null = null;
  private isClosed = false;
  private readonly key: string;

  constructor(private readonly handle: string) {
    this.key = `sluicegate.cursor.${handle}`;
  }

  /** All that are kept; another array after each change. */
  get rows(): Row[] {
    this.flat ??= this.chunks.flatMap((each) => each.rows);
    return this.flat;
  }

  /** The last few, which cost nothing to look at. */
  get recent(): Row[] {
    return this.chunks.at(-1)?.rows.slice(-20) ?? [];
  }

  start(): void {
    void this.findStart().then((cursor) => {
      if (this.isClosed) return;
      this.follower = new Follower(this.handle, cursor, {
        onRows: (rows, before) => this.add(rows, before),
        onNotice: (told, again) => this.tell(told, again),
        onGap: () => this.set({ gaps: this.snapshot.gaps + 1 }),
        onLink: (link) => this.set({ link }),
        onEnd: (kind, reason) => this.finish(kind, reason),
      });
      this.follower.start();
    });
  }

  private async findStart(): Promise<string | null> {
    const kept = sessionStorage.getItem(this.key);
    if (kept) return kept;
    // where that is not told, the follower finds out why
    const found = await get<{ cursor: string }>(`/v1/queries/${encodeURIComponent(this.handle)}/cursor?ticks=${TICKS_BACK}`).catch(() => null);
    return found?.cursor ?? null;
  }

  close(): void {
    this.isClosed = true;
    this.follower?.close();
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
    if (this.count) take(this.rows);
    return () => this.takers.delete(taker);
  }

  private add(rows: Row[], before: string | null): void {
    this.chunks.push({ before, rows });
    for (const name of Object.keys(rows[0] ?? {})) if (!this.columns.includes(name)) this.columns.push(name);
    this.count += rows.length;
    this.flat = null;
    while (this.count > MOST_ROWS && this.chunks.length > 1) this.count -= this.chunks.shift()?.rows.length ?? 0;
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

  private remember(): void {
    const first = this.chunks[0]?.before;
    if (first && !this.snapshot.ended) sessionStorage.setItem(this.key, first);
  }

  private clear(): void {
    this.chunks = [];
    this.flat = [];
    this.count = 0;
    for (const each of this.takers) each.clear();
  }

  private set(part: Partial<Snapshot>): void {
    this.snapshot = { ...this.snapshot, ...part, turn: this.snapshot.turn + 1 };
    // many events of one moment are one look at the page; a hidden page has no frames and needs none
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.remember();
        for (const each of this.listeners) each();
      });
    }
  }
}

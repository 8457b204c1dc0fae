"""Switches under load: a thousand flips a second in the streams, every reader's rows judged, the others' latency measured.

Punctuations stand between the tuples of two streams, in both in the same order. What each
reader must have is worked out here from what was sent, without any code of the engine.

`python -m sluicegate.testing.flips --seconds 300`
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from sluicegate.language.load import read_catalog
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.gate.events import Rows
from sluicegate.testing.tick_run import make_rows

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

SECOND = 1_000_000
BASE = 1_767_225_600 * SECOND
WINDOW, NEAR = 10, 5
ROWS = 100
"""Tuples of each stream in a batch; ten batches a second."""
# numbers of our own, in the text of our own language
QUERIES = {
    "chosen": "SELECT v FROM A WHERE k < 5",
    "sums": f"SELECT COUNT(*) AS n, SUM(v) AS s FROM A [RANGE {WINDOW} SECOND]",  # noqa: S608
    "pairs": f"SELECT A.v AS a, B.v AS b FROM A [RANGE {NEAR} SECOND], B [RANGE {NEAR} SECOND] WHERE A.k = B.k",  # noqa: S608
}
Tuple: TypeAlias = tuple[int, int, int]
"""Event time in seconds, `k`, and a number of its own."""
Element: TypeAlias = Tuple | QueryPunctuation


@dataclass
class Report:
    """What was seen."""

    flips: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    quiet: list[float] = field(default_factory=list)
    flipping: list[float] = field(default_factory=list)
    """Seconds from a tuple's push to its delivery, to a reader without switches."""
    plans: int = 0
    failures: int = 0

    @property
    def ratio(self) -> float:
        return median(self.flipping) / median(self.quiet)


def make_catalog(users: Sequence[str]) -> str:
    people = "\n".join(f"CREATE USER {each} ROLES (Reader);" for each in (*users, "steady"))
    return f"""
CREATE STREAM A (ts TIMESTAMP, k INT, v BIGINT) TIMESTAMP BY ts;
CREATE STREAM B (ts TIMESTAMP, k INT, v BIGINT) TIMESTAMP BY ts;
CREATE ROLE Reader;
{people}
CREATE GRANT a READ (ts, k, v) ON A TO Reader;
CREATE GRANT b READ (ts, k, v) ON B TO Reader;
"""


class _Sender:
    """Makes the input, and keeps all of it."""

    def __init__(self, engine: Engine, users: Sequence[str], seed: int) -> None:
        self.engine, self.users = engine, users
        self.rng = Random(seed)  # noqa: S311 — repeatable
        self.sent: dict[str, list[Element]] = {"A": [], "B": []}
        self.pushed: dict[int, tuple[float, list[float]]] = {}
        self._second, self._number, self._ts = 0, 0, 0
        self.flips = 0

    def flip(self) -> QueryPunctuation:
        self._ts += 1
        users = frozenset(self.rng.sample(self.users, 1))
        self.flips += 1
        return QueryPunctuation(self.rng.choice(sorted(QUERIES)), users, self.rng.random() < 0.5, self._ts)

    def send(self, flips: int, latencies: list[float]) -> None:
        """A batch for each stream, with the same flips in it, each at a place of its own."""
        said = [self.flip() for _ in range(flips)]
        for stream in ("A", "B"):
            places = sorted(self.rng.randint(0, ROWS) for _ in said)
            rows = [(self._second + at, self.rng.randint(0, 9), self._number + at) for at in range(ROWS)]
            self._keep(stream, rows, list(zip(places, said, strict=True)))
            log = self.engine.feeds.logs[stream]
            table = make_rows(log.stream, [{"ts": BASE + ts * SECOND, "k": k, "v": v} for ts, k, v in rows])
            if stream == "A":
                self.pushed[rows[-1][2]] = (time.monotonic(), latencies)
            append_table(log, table, said=list(zip(places, said, strict=True)))
            self._number += ROWS
        self._second += ROWS
        self.engine.wake()

    def _keep(self, stream: str, rows: Sequence[Tuple], said: list[tuple[int, QueryPunctuation]]) -> None:
        for at in range(len(rows) + 1):
            while said and said[0][0] <= at:
                self.sent[stream].append(said.pop(0)[1])
            self.sent[stream] += rows[at : at + 1]


def run_flips(
    spark: Session, folder: Path, seconds: float = 20.0, rate: int = 1000, readers: int = 100, seed: int = 1
) -> Report:
    """Blocks with flips and without follow each other; at the end every reader's rows are compared."""
    users = [f"u{at}" for at in range(readers)]
    engine = Engine(spark, read_catalog(make_catalog(users)), folder, push=True)
    report = Report()
    try:
        handles = {
            (query, user): engine.register(user, text, switch=query)
            for query, text in QUERIES.items()
            for user in users
        }
        steady = {query: engine.register("steady", text) for query, text in QUERIES.items()}
        watched = engine.register("steady", "SELECT v FROM A WHERE k >= 0")
        sender = _Sender(engine, users, seed)
        engine.start()
        watch = _Watch(engine, watched, sender)
        warm: list[float] = []
        while len(warm) < 20:
            sender.send(0, warm)
            time.sleep(0.1)
        plans = engine.network.shapes
        for block in _blocks(seconds):
            begun = time.monotonic()
            while time.monotonic() - begun < block[1]:
                due = time.monotonic() + 0.1
                sender.send(rate // 10 if block[0] else 0, report.flipping if block[0] else report.quiet)
                time.sleep(max(due - time.monotonic(), 0))
        _settle(engine)
        watch.stop()
        report.flips, report.plans = sender.flips, engine.network.shapes - plans
        report.failures = int(engine.failure is not None)
        for (query, user), handle in handles.items():
            _judge(report, engine, handle, (query, user), sender.sent)
        for query, handle in steady.items():
            _judge(report, engine, handle, (query, None), sender.sent)
    finally:
        engine.stop()
    return report


def _blocks(seconds: float) -> Iterator[tuple[bool, float]]:
    """A third of the time without flips, in between."""
    length = min(seconds / 2, 10.0)
    left = seconds
    while left > 0.1:
        yield False, length / 2
        yield True, min(length, left)
        left -= length
    yield False, length / 2


class _Watch:
    """Reads what a reader without switches gets, as it comes."""

    def __init__(self, engine: Engine, handle: str, sender: _Sender) -> None:
        self._engine, self._handle, self._sender = engine, handle, sender
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        cursor = None
        while not self._ended.is_set():
            events, cursor = self._engine.gate.read(self._handle, cursor, 10_000, wait=0.2)
            now = time.monotonic()
            for event in events:
                for row in event.rows if isinstance(event, Rows) else ():
                    seen = self._sender.pushed.pop(row["v"], None)  # type: ignore[arg-type]  # a number
                    if seen is not None:
                        seen[1].append(now - seen[0])

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()


def _settle(engine: Engine, patience: float = 300.0) -> None:
    """Until every query stands at the end of its logs."""
    for log in engine.feeds.logs.values():
        log.finish()
    engine.wake()
    end = time.monotonic() + patience
    while time.monotonic() < end and not engine.ended:
        time.sleep(0.1)


def _judge(
    report: Report, engine: Engine, handle: str, who: tuple[str, str | None], sent: dict[str, list[Element]]
) -> None:
    got: Counter[tuple[object, ...]] = Counter()
    cursor = None
    while True:
        events, after = engine.gate.read(handle, cursor, 1_000_000)
        for event in events:
            if isinstance(event, Rows):
                got.update(tuple(row[name] for name in _COLUMNS[who[0]]) for row in event.rows)
        if after == cursor or not events:
            break
        cursor = after
    wanted = Counter(find_wanted(*who, sent))
    report.rows[f"{who[0]} {'steady' if who[1] is None else 'switched'}"] += sum(wanted.values())
    if got != wanted:
        missing, extra = list((wanted - got).elements()), list((got - wanted).elements())
        report.differences.append(
            f"{who}: {len(missing)} missing {missing[:3]}, {len(extra)} not expected {extra[:3]}"
        )


_COLUMNS = {"chosen": ("v",), "sums": ("n", "s"), "pairs": ("a", "b")}


def find_wanted(query: str, user: str | None, sent: dict[str, list[Element]]) -> Iterator[tuple[object, ...]]:
    """The rows that a reader must have; all where it has no switches."""
    open_a = find_stretches(sent["A"], query, user)
    match query:
        case "chosen":
            yield from ((v,) for each in open_a.values() for _, k, v in each.rows if k < NEAR)
        case "sums":
            for each in open_a.values():
                yield from _sums(each)
        case "pairs":
            open_b = find_stretches(sent["B"], query, user)
            for opened in open_a.keys() & open_b.keys():
                yield from _pairs(open_a[opened].rows, open_b[opened].rows)
        case _:
            raise ValueError(f"unknown query `{query}`")


@dataclass
class Stretch:
    """The tuples between an opening and the next closing, and the greatest time before each."""

    rows: list[Tuple]
    since: int | None
    passed: int | None = None
    ended: bool = False


def find_stretches(elements: Sequence[Element], query: str, user: str | None) -> dict[int, Stretch]:
    """By the opening's ts."""
    found: dict[int, Stretch] = {}
    current = Stretch([], None) if user is None else None
    if current is not None:
        found[-1] = current
    greatest: int | None = None
    for each in elements:
        if isinstance(each, QueryPunctuation):
            if user is None or each.query != query or user not in (each.users or ()):
                continue
            if each.positive and current is None:
                current = found[each.ts] = Stretch([], greatest)
            elif not each.positive and current is not None:
                current.passed, current.ended, current = greatest, True, None
            continue
        if current is not None:
            current.rows.append(each)
        greatest = each[0]
    return found


def _sums(stretch: Stretch) -> Iterator[tuple[object, ...]]:
    windows: dict[int, list[int]] = {}
    for ts, _, v in stretch.rows:
        windows.setdefault(ts // WINDOW, []).append(v)
    for at, values in windows.items():
        whole = stretch.since is None or at * WINDOW > stretch.since
        # a window's row has its last instant, which the watermark must have passed
        done = not stretch.ended or (stretch.passed is not None and (at + 1) * WINDOW <= stretch.passed)
        if whole and done:
            yield len(values), sum(values)


def _pairs(left: Sequence[Tuple], right: Sequence[Tuple]) -> Iterator[tuple[object, ...]]:
    near: dict[int, list[Tuple]] = {}
    for each in right:
        near.setdefault(each[0], []).append(each)
    for ts, k, v in left:
        for other in range(ts - NEAR + 1, ts + NEAR):
            yield from ((v, each[2]) for each in near.get(other, ()) if each[1] == k)


def main() -> int:
    from sluicegate.runtime.session import make_session

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--readers", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = run_flips(make_session(), Path(folder), args.seconds, args.rate, args.readers, args.seed)
    print(
        f"{report.flips} flips, {dict(report.rows)} rows, {report.plans} new plans, {report.failures} failures"
    )
    for each in report.differences[:5]:
        print(each)
    print(
        f"latency {median(report.quiet):.3f} s without, {median(report.flipping):.3f} s with: {report.ratio:.2f}"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    raise SystemExit(main())

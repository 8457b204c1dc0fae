"""Queries that come and go: registered and dropped all the time, by users with every set of roles (bypass 19).

Each role shows other rows of the stream. Whoever holds a set of roles must see the rows of these, every one of them from its
registration on, and nobody else's, whichever queries of others share its operators at the time.

`python -m sluicegate.testing.churn --seconds 600`
"""

from __future__ import annotations

import argparse
import gc
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from sluicegate.language.load import read_catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.gate.events import Rows
from sluicegate.testing.tick_run import make_rows

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

SECOND = 1_000_000
BASE = 1_767_225_600 * SECOND
ROLES = ("r0", "r1", "r2")
KINDS = len(ROLES)
"""Rows of kind n are those that the role at n shows."""
WINDOW = 10
QUERIES = {
    "rows": "SELECT v, k FROM A",
    "few": "SELECT v, k FROM A WHERE v >= 0 AND k <= 2",
    "sums": f"SELECT COUNT(*) AS n, MIN(v) AS least, MAX(v) AS most FROM A [RANGE {WINDOW} SECOND]",  # noqa: S608
    "pairs": "SELECT A.v AS v, A.k AS k, B.v AS w FROM A [RANGE 2 SECOND], B [RANGE 2 SECOND] WHERE A.v = B.v",
}
ROWS = 60
FEWEST_TICKS, PATIENCE = 6, 120.0
EVERY = 5.0
"""Seconds between looks at the memory: all of it is collected for that, with everybody waiting."""


@dataclass
class Report:
    """What was seen; memory in MiB, of what is in use after it was collected, every few seconds."""

    registered: int = 0
    dropped: int = 0
    ticks: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    shapes: list[int] = field(default_factory=list)
    python: list[float] = field(default_factory=list)
    java: list[float] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)
    """Those that the gate knows, also of queries that ended."""


@dataclass(frozen=True)
class _Running:
    query: str
    user: str
    kinds: frozenset[int]
    handle: str
    first: int
    """The number of the first row that was pushed after it was registered."""


def make_catalog() -> tuple[str, dict[str, frozenset[int]]]:
    """The catalog, and the kinds of rows that each user may see."""
    users = {
        "u" + "".join(map(str, held)): frozenset(held)
        for count in range(1, KINDS + 1)
        for held in combinations(range(KINDS), count)
    }
    people = "\n".join(
        f"CREATE USER {name} ROLES ({', '.join(ROLES[at] for at in sorted(held))});"
        for name, held in users.items()
    )
    grants = "\n".join(
        f"CREATE GRANT {stream.lower()}{at} READ (ts, k, v) ON {stream} WHERE k = {at} TO {role};"
        for at, role in enumerate(ROLES)
        for stream in ("A", "B")
    )
    roles = " ".join(f"CREATE ROLE {each};" for each in ROLES)
    streams = "\n".join(
        f"CREATE STREAM {name} (ts TIMESTAMP, k INT, v BIGINT) TIMESTAMP BY ts;" for name in ("A", "B")
    )
    return f"{streams}\n{roles}\n{people}\n{grants}\n", users


class Churn:
    """The engine, the input, and the queries of now."""

    def __init__(self, spark: Session, folder: Path, seed: int) -> None:
        text, self.users = make_catalog()
        self.engine = Engine(spark, read_catalog(text), folder, push=True)
        self.rng = Random(seed)  # noqa: S311 — repeatable
        self.report, self.running = Report(), list[_Running]()
        self.pushed = 0
        self._tick, self._steps = -1, 0

    def push(self) -> None:
        """Rows of each kind in turn, the same in both streams; one a second of event time."""
        numbers = range(self.pushed, self.pushed + ROWS)
        rows = [{"ts": BASE + each * SECOND, "k": each % KINDS, "v": each} for each in numbers]
        for stream in ("A", "B"):
            log = self.engine.feeds.logs.get(stream)
            if log is not None:
                self.engine.push(stream, make_rows(log.stream, rows))
        self.pushed += ROWS

    def is_behind(self, most: int) -> bool:
        """Whether so many came or went since the last tick: if more of them went, none would last until it is read for."""
        last = self.engine.gate.last()
        tick = -1 if last is None else last[0]
        if tick != self._tick:
            self._tick, self._steps = tick, 0
            self.report.ticks += 1
        return self._steps >= most

    def step(self, most: int) -> None:
        """A query comes, or, the more there are the likelier, one goes."""
        self._steps += 1
        if self.rng.random() < len(self.running) / most:
            self.drop(self.running.pop(self.rng.randrange(len(self.running))))
            return
        self.running.append(self.register())

    def register(self) -> _Running:
        user = self.rng.choice(sorted(self.users))
        query = self.rng.choice(sorted(QUERIES))
        handle = self.engine.register(user, QUERIES[query])
        self.report.registered += 1
        return _Running(query, user, self.users[user], handle, self.pushed)

    def drop(self, running: _Running) -> None:
        """Judge what it gave, and end it."""
        got = list(self._read(running.handle))
        wrong = find_wrong(running.query, running.kinds, running.first, got)
        if wrong is not None:
            self.report.differences.append(f"{running.query} of {running.user}: {wrong}")
        self.report.rows[running.query] += len(got)
        self.engine.remove(running.handle)
        self.report.dropped += 1

    def _read(self, handle: str) -> Iterator[dict[str, Any]]:
        cursor = None
        while True:
            events, after = self.engine.gate.read(handle, cursor, 1_000_000)
            for event in events:
                yield from event.rows if isinstance(event, Rows) else ()
            if after == cursor or not events:
                return
            cursor = after


def find_wrong(query: str, kinds: frozenset[int], first: int, got: Sequence[dict[str, Any]]) -> str | None:
    """What a reader should not have, or lacks up to the last row that it has."""
    if query == "sums":
        return _find_wrong_sums(kinds, first, got)
    numbers = [row["v"] for row in got]
    if query == "pairs" and any(row["v"] != row["w"] for row in got):
        return "a pair of rows that are not equal"
    others = [each for each in numbers if each % KINDS not in kinds or each < first]
    if others:
        return f"rows of others, or from before: {others[:3]}"
    last = max(numbers, default=first - 1)
    wanted = [each for each in range(first, last + 1) if each % KINDS in kinds]
    return None if sorted(numbers) == wanted else f"{len(wanted)} rows wanted, {len(numbers)} there"


def _find_wrong_sums(kinds: frozenset[int], first: int, got: Sequence[dict[str, Any]]) -> str | None:
    for row in got:
        begin = row["least"] // WINDOW * WINDOW
        own = [each for each in range(begin, begin + WINDOW) if each % KINDS in kinds]
        if begin < first - WINDOW or (row["n"], row["least"], row["most"]) != (len(own), own[0], own[-1]):
            return f"the window {row} is not that of {own}"
    starts = [row["least"] // WINDOW for row in got]
    whole = list(range(min(starts, default=0), max(starts, default=-1) + 1))
    return None if sorted(starts) == whole else "a window is missing, or there twice"


def run_churn(spark: Session, folder: Path, seconds: float = 10.0, most: int = 40, seed: int = 1) -> Report:
    """Come and go for so long, at most about so many at a time; longer where there were hardly any ticks."""
    churn = Churn(spark, folder, seed)
    try:
        churn.engine.start()
        for stream in ("A", "B"):
            churn.engine.register("u012", f"SELECT v FROM {stream}")  # noqa: S608 — so that both are open
        end, noted = time.monotonic() + seconds, 0.0
        while time.monotonic() < end + (PATIENCE if churn.report.ticks < FEWEST_TICKS else 0.0):
            if churn.is_behind(most):
                # the others wait for their rows; this one does not
                churn.drop(churn.register())
            else:
                churn.push()
                for _ in range(3):
                    churn.step(most)
            if time.monotonic() - noted > EVERY:
                noted = time.monotonic()
                _note(churn, spark)
            time.sleep(0.05)
        for each in churn.running:
            churn.drop(each)
    finally:
        churn.engine.stop()
    return churn.report


def _note(churn: Churn, spark: Session) -> None:
    churn.report.shapes.append(churn.engine.network.shapes)
    churn.report.handles.append(len(churn.engine.gate.known()))
    churn.report.python.append(_find_python())
    churn.report.java.append(_find_java(spark))


def _find_python() -> float:
    """What this process has of the machine's memory; where only its most so far is told, that."""
    gc.collect()
    told = Path("/proc/self/statm")
    if told.exists():
        return int(told.read_text(encoding="ascii").split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _find_java(spark: Session) -> float:
    """What the heap held right after everything was collected: ticks go on, and what they are at is in it."""
    context: Any = spark.sparkContext
    context._jvm.java.lang.System.gc()
    pools = context._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    left = [each.getCollectionUsage() for each in pools]
    return float(sum(each.getUsed() for each in left if each is not None)) / 2**20


def main() -> int:
    from sluicegate.runtime.session import make_session

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = run_churn(make_session(), Path(folder), args.seconds, args.most, args.seed)
    print(
        f"{report.registered} registered, {report.dropped} dropped, {report.ticks} ticks, rows {dict(report.rows)}"
    )
    print(
        f"at most {max(report.shapes)} shapes, {max(report.handles)} handles; "
        f"Python's memory {_thirds(report.python)}, Java's {_thirds(report.java)} MiB"
    )
    for each in report.differences[:5]:
        print(each)
    return 1 if report.differences else 0


def _thirds(values: Sequence[float]) -> str:
    """The least and the median of each third: what stays in use, and what is with ticks under way."""
    third = max(len(values) // 3, 1)
    return ", ".join(
        f"{min(part):.0f} ({median(part):.0f})"
        for at in (0, third, 2 * third)
        if (part := values[at : at + third])
    )


if __name__ == "__main__":
    raise SystemExit(main())

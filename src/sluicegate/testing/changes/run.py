"""`python -m sluicegate.testing.changes.run --count 10000 --seed 1`: changes under load, each row checked.

Rows come in all the time, each registered query is read by a thread, and one thread changes policies as fast as it can.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from sluicegate.runtime.engine import Engine
from sluicegate.runtime.frames import make_table
from sluicegate.runtime.gate.events import Closed, Gap, Rows, Withdrawn
from sluicegate.runtime.network.places import find_place
from sluicegate.runtime.session import make_session
from sluicegate.testing.changes.judge import Judge
from sluicegate.testing.changes.policies import (
    GRANTED,
    MOVED,
    STEADY,
    Change,
    change_fact,
    choose_change,
    make_catalog,
)
from sluicegate.testing.changes.world import SHAPES, Input, Settings, Story

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

SETTINGS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"}
_ROWS = 40
_SETTLED = 300.0
_TURN = 50
"""Changes of one user before another's turn: whose policy changes in every tick is given nothing that could be judged."""
_PAUSES = (0.0, 0.5, 0.0, 2.0)
"""Seconds between the looks of readers: with slow ones rows lie unread when a version comes."""


@dataclass(slots=True)
class Report:
    """What was done, and what was wrong. `seconds` are those of each change."""

    changes: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    gaps: int = 0
    queries: int = 0
    batches: int = 0
    violations: list[str] = field(default_factory=list)


class Follower:
    """A registered query with its reader: a thread of its own, until the query ends."""

    def __init__(self, run: Run, user: str, shape: str, handle: str, pause: float) -> None:
        self.user, self.shape, self.handle, self._pause = user, shape, handle, pause
        self._run, self.removed = run, False
        self.judge = Judge(user, shape, run.story, run.input)
        self.gaps, self.ended = 0, ""
        self.fault: BaseException | None = None
        self.is_drained = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"reader of {handle}", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            self._read()
        except BaseException as error:  # noqa: BLE001 — told by the run
            self.fault = error

    def _read(self) -> None:
        gate, cursor, story = self._run.engine.gate, None, self._run.story
        while not self.ended and not self._run.over.is_set():
            caught_up, first, removed = self._run.caught_up.is_set(), story.done, self.removed
            events, cursor = gate.read(self.handle, cursor, most_rows=200, wait=0.2)
            last = story.begun
            for event in events:
                match event:
                    case Rows():
                        self.judge.check(event.rows, first, last, removed)
                    case Gap():
                        self.gaps += 1
                    case Withdrawn() | Closed():
                        self.ended = type(event).__name__
            if events and not self.ended:
                gate.ack(self.handle, cursor)
            if caught_up and not events:
                self.is_drained.set()
            if not caught_up:
                self._run.over.wait(self._pause)

    def join(self) -> None:
        self._thread.join(60)


class Run:
    """One run; everything random comes out of the seed, the moments excepted."""

    def __init__(self, spark: Session, folder: Path, seed: int) -> None:
        self._rng = Random(seed)  # noqa: S311 — repeatable
        self.catalog, settings = make_catalog()
        self.engine = Engine(spark, self.catalog, folder, push=True, keep=10_000_000)
        self.input, self.story, self.report = Input(seed), Story(), Report()
        self.over, self.caught_up, self._filled = threading.Event(), threading.Event(), threading.Event()
        self.story.begin(settings, self.input.greatest)
        self.story.end(self.story.begun, self.input.made)
        self._live: dict[str, Follower] = {}
        self._past: list[Follower] = []
        for user in (*STEADY, *MOVED, *GRANTED):
            self._register(user)

    def _register(self, user: str) -> None:
        for shape, query in SHAPES.items():
            self._start(user, shape, query)

    def _start(self, user: str, shape: str, query: str) -> None:
        handle = self.engine.register(user, query)
        self._live[handle] = Follower(self, user, shape, handle, _PAUSES[self.report.queries % len(_PAUSES)])
        self.report.queries += 1

    def run(self, count: int, seconds: float, interval: float) -> Report:
        """So many changes, or as many as the seconds allow."""
        self.engine.start()
        feeder = threading.Thread(target=self._feed, args=(interval,), daemon=True)
        feeder.start()
        until = time.monotonic() + seconds
        while len(self.report.seconds) < count and time.monotonic() < until and not self.report.violations:
            if len(self.report.seconds) % _TURN == 0:
                user = self._rng.choice((*MOVED, *GRANTED))
                self._change(change_fact(self._rng, self.catalog, self._now()))
            elif self._rng.random() < 0.05:
                self._remove(user)
            else:
                self._change(choose_change(self._rng, self.catalog, self._now(), user))
        self._filled.set()
        feeder.join()
        self._finish()
        return self.report

    def _feed(self, interval: float) -> None:
        streams = self.catalog.streams
        while not self._filled.wait(interval):
            batch = self.input.make_batch(_ROWS)
            for name, rows in batch.items():
                table = make_table(streams[name], rows, list(range(len(rows)))).drop_columns(["_offset"])
                self.engine.feeds.push(name, table)
            self.input.note_pushed(batch)
            self.report.batches += 1

    def _now(self) -> dict[str, Settings]:
        return {user: self.story.now(user) for user in (*MOVED, *GRANTED)}

    def _change(self, change: Change) -> None:
        now, before = self._now(), self._versions()
        lost = {user for user, each in change.settings.items() if each.kind is None and now[user].kind}
        version = self.story.begin(change.settings, self.input.greatest)
        started = time.perf_counter()
        withdrawn = self.engine.apply(change.catalog)
        self.report.seconds.append(time.perf_counter() - started)
        self.story.end(version, self.input.made)
        self.catalog = change.catalog
        self.report.changes[change.what] += 1
        self._check_touched(before, change.settings, now, withdrawn, lost)
        for user, settings in change.settings.items():
            if now[user].kind is None and settings.kind is not None:
                self._register(user)

    def _check_touched(
        self,
        before: dict[str, int],
        settings: Mapping[str, Settings],
        now: dict[str, Settings],
        withdrawn: dict[str, str],
        lost: set[str],
    ) -> None:
        """Versions of the queries whose graph changed, and of no others; withdrawn are those that lost their grants, and no others."""
        after = self._versions()
        moved = {user for user, each in settings.items() if each != now[user]}
        for handle, version in before.items():
            user = self._live[handle].user
            wanted = None if user in lost else version + (user in moved)
            if after.get(handle) != wanted or (handle in withdrawn) != (user in lost):
                text = f"{user} {handle}: version {version} became {after.get(handle)}, not {wanted}"
                self.report.violations.append(text)
        for handle in withdrawn:
            self._past.append(self._live.pop(handle))

    def _versions(self) -> dict[str, int]:
        return {each.handle: each.version for each in self.engine.running}

    def _remove(self, user: str) -> None:
        found = [each for each in self._live.values() if each.user == user]
        if not found:
            return
        old = self._rng.choice(found)
        started = time.perf_counter()
        self.engine.remove(old.handle)
        self.report.seconds.append(time.perf_counter() - started)
        old.removed = True
        self.report.changes["removal"] += 1
        self._past.append(self._live.pop(old.handle))
        self._start(old.user, old.shape, SHAPES[old.shape])

    def _finish(self) -> None:
        """Wait until the queries and their readers have all; then what nobody touched must be whole."""
        until = time.monotonic() + _SETTLED
        while not self._is_settled() and time.monotonic() < until:
            time.sleep(0.1)
        if not self._is_settled():
            self.report.violations.append(f"the engine does not come to the end: {self.engine.failure}")
        self.caught_up.set()
        for each in self._live.values():
            each.is_drained.wait(60)
        watermark = self.engine.feeds.logs["S"].watermark or 0
        versions = self._versions()
        self.over.set()
        for each in (*self._live.values(), *self._past):
            each.join()
            self._sum_up(each, watermark, versions)
        self.engine.stop()

    def _is_settled(self) -> bool:
        logs = self.engine.feeds.logs
        return all(each.place == find_place(logs, each.allowed.streams) for each in self.engine.running)

    def _sum_up(self, each: Follower, watermark: int, versions: dict[str, int]) -> None:
        report = self.report
        group = "steady" if each.user in STEADY else "changed"
        report.rows += Counter({f"{group} {shape}": count for shape, count in each.judge.counts.items()})
        report.violations += each.judge.violations
        report.gaps += each.gaps
        if each.fault is not None:
            report.violations.append(f"the reader of {each.user} {each.shape} failed: {each.fault!r}")
        if each.user in STEADY:
            missing = each.judge.find_missing(watermark)
            if missing or each.gaps or versions[each.handle] != 1:
                text = f"{each.user} {each.shape}: {len(missing)} differ: {missing[:3]}, {each.gaps} gaps"
                report.violations.append(text)
        if each.handle not in versions and not each.ended:
            report.violations.append(f"the reader of {each.user} {each.shape} was not told the end")


def run_changes(
    spark: Session, folder: Path, *, count: int, seconds: float, seed: int, interval: float = 0.25
) -> Report:
    """See `Run`."""
    return Run(spark, folder, seed).run(count, seconds, interval)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sluicegate.testing.changes.run", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many changes (default 10000)")
    parser.add_argument("--seconds", type=float, default=36_000.0, help="begin none after so long")
    parser.add_argument("--seed", type=int, default=1, help="of rows and changes (default 1)")
    options = parser.parse_args(argv)
    started = time.monotonic()
    spark = make_session(shuffle_partitions=1, extra=SETTINGS)
    with tempfile.TemporaryDirectory(prefix="sluicegate-changes-") as folder:
        report = run_changes(
            spark, Path(folder), count=options.count, seconds=options.seconds, seed=options.seed
        )
    spark.stop()
    taken = sorted(report.seconds)
    sys.stdout.write(
        f"seed {options.seed}: {len(taken)} changes {dict(report.changes)}, {report.queries} queries, "
        f"{report.batches} batches, rows checked {dict(report.rows)}, {report.gaps} gaps, "
        f"change p50 {taken[len(taken) // 2] * 1000:.0f} ms, p99 {taken[len(taken) * 99 // 100] * 1000:.0f} ms, "
        f"{len(report.violations)} violations, {time.monotonic() - started:.0f} s\n"
    )
    for each in report.violations[:20]:
        sys.stdout.write(f"{each}\n")
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m sluicegate.testing.load.run --seconds 600 --seed 1`: readers over HTTP while a policy changes every second.

A gateway in a process of its own serves 50 queries to 200 readers, three in four of whom follow their query and one asks again
and again. Rows come in all the time, over HTTP too. Every row is judged by the versions that were in force while it was handed
over: a change is over when its call has returned and what had arrived by then was taken from every connection.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sluicegate.testing.changes.policies import Change, People, write_catalog
from sluicegate.testing.changes.world import SHAPES
from sluicegate.testing.load.control import CATALOG, FEEDER, Control
from sluicegate.testing.load.readers import Follower, Poller, Reader, Reading
from sluicegate.testing.load.server import LIGHT, SERIOUS, Memory, Server
from sluicegate.testing.load.wire import take_all
from sluicegate.testing.load.world import World

_SETTLED, _TOLD = 120.0, 10.0
_FIRST = 6
"""Batches before the first change."""
_PAUSES = (0.0, 0.3, 0.0, 1.5)
_FLAT_SECONDS, _FLAT_SHARE = 300.0, 0.1
"""Memory is judged in runs of at least so long: growth over the second half of it, as a share of what there is."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many users there are of each kind, queries, readers of each, and seconds between batches and between changes."""

    steady: int = 4
    moved: int = 7
    granted: int = 6
    queries: int = 50
    readers: int = 4
    batches: float = 1.0
    changes: float = 1.0

    def name_people(self) -> People:
        return People(
            tuple(f"c{at}" for at in range(self.steady)),
            tuple(f"m{at}" for at in range(self.moved)),
            tuple(f"g{at}" for at in range(self.granted)),
        )


@dataclass(slots=True)
class Report:
    """What was done, and what was wrong. `seconds` are those of each change."""

    memory: Memory
    changes: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    queries: int = 0
    readers: int = 0
    batches: int = 0
    whole: int = 0
    """Rows that had to come, and did."""
    touched: int = 0
    """Users for whom a change was one, summed over the changes."""
    violations: list[str] = field(default_factory=list)


class Run:
    """One run; everything random comes out of the seed, the moments excepted."""

    def __init__(self, server: Server, control: Control, seed: int, size: Size) -> None:
        self._control, self._size = control, size
        self.world = World(seed, size.name_people())
        self.report = Report(Memory(server.process.pid))
        self._live: dict[tuple[str, str], list[Reader]] = {}
        self._past: list[Reader] = []
        self._tasks: dict[Reader, asyncio.Task[None]] = {}

    async def run(self, seconds: float) -> Report:
        wanted = [(user, shape) for user in self.world.people.everybody for shape in SHAPES][
            : self._size.queries
        ]
        self._shapes = {user: [shape for each, shape in wanted if each == user] for user, _ in wanted}
        for user in self._shapes:
            await self._register(user)
        self.report.queries = len(self._live)
        self.report.readers = len(self._tasks)
        try:
            await self._warm_up()
            until = time.monotonic() + seconds
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._feed(until))
                tasks.create_task(self._change_all(until))
                tasks.create_task(self._measure(until))
            await self._finish()
            self.report.batches = self.world.batches
        finally:
            for reader, task in self._tasks.items():
                task.cancel()
                reader.close()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            await take_all()
        return self.report

    async def _register(self, user: str) -> None:
        for shape in self._shapes[user]:
            handle = await self._control.register(user, SHAPES[shape])
            self._live[user, shape] = []
            for at in range(self._size.readers):
                self._start(at, self.world.make_reading(user, shape, handle, self._control.token(user)))

    def _start(self, at: int, reading: Reading) -> None:
        """The last of a query's readers asks again and again, with pauses; the others follow."""
        address = self._control.address
        reader: Reader
        if at == self._size.readers - 1:
            reader = Poller(reading, address, _PAUSES[len(self._live) % len(_PAUSES)])
        else:
            reader = Follower(reading, address)
        self._live[reading.user, reading.shape].append(reader)
        self._tasks[reader] = asyncio.create_task(reader.run())

    async def _warm_up(self) -> None:
        """Until everybody has what came in first: the time begins when Java knows the queries."""
        for _ in range(_FIRST):
            await self._push()
            await self._wait_all()

    async def _feed(self, until: float) -> None:
        due = time.monotonic()
        while time.monotonic() < until and not self._find_violations():
            await self._push()
            due += self._size.batches
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _push(self) -> None:
        batch = self.world.make_batch()
        for name, rows in batch.items():
            await self._control.push(name, rows)
        self.world.input.note_pushed(batch)

    async def _change_all(self, until: float) -> None:
        due = time.monotonic()
        while time.monotonic() < until and not self._find_violations():
            due += self._size.changes
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self._change(self.world.choose_change())

    async def _change(self, change: Change) -> None:
        world, now = self.world, self.world.now()
        lost = {user for user, each in change.settings.items() if each.kind is None and now[user].kind}
        found = {user for user, each in change.settings.items() if each.kind and now[user].kind is None}
        version = world.story.begin(change.settings, world.input.greatest)
        started = time.perf_counter()
        told = await self._control.change(change.text)
        self.report.seconds.append(time.perf_counter() - started)
        await take_all()
        world.story.end(version, world.input.made)
        world.catalog = change.catalog
        self.report.changes[change.what] += 1
        self.report.touched += sum(each != now[user] for user, each in change.settings.items())
        if told != version:
            self.report.violations.append(f"version {told} was made, not {version}")
        for user in lost:
            await self._check_told(user)
        for user in found:
            await self._register(user)

    async def _check_told(self, user: str) -> None:
        """Whoever has nothing left is told, and its connection ends (R12)."""
        gone = [each for shape in self._shapes[user] for each in self._live.pop((user, shape), [])]
        self._past += gone
        if gone:
            await asyncio.wait([self._tasks[each] for each in gone], timeout=_TOLD)
        for each in gone:
            if not self._tasks[each].done():
                each.reading.complain(f"it was not told the end within {_TOLD:g} s")
                each.close()

    async def _measure(self, until: float) -> None:
        while time.monotonic() < until and not self._find_violations():
            self.report.memory.sample()
            await asyncio.sleep(0.5)

    def _find_violations(self) -> bool:
        readers = [each for there in self._live.values() for each in there]
        return bool(self.report.violations) or any(each.reading.judge.violations for each in readers)

    async def _finish(self) -> None:
        await self._wait_all()
        live = [each for there in self._live.values() for each in there]
        for each in live:
            self.world.settle(each.reading)
        for each in (*self._past, *live):
            self._sum_up(each)

    async def _wait_all(self) -> None:
        """Wait until everybody has all that there is."""
        until = time.monotonic() + _SETTLED
        while time.monotonic() < until and not self._find_violations() and not self._is_settled():
            await asyncio.sleep(0.2)

    def _is_settled(self) -> bool:
        return all(self.world.has_all(each.reading) for there in self._live.values() for each in there)

    def _sum_up(self, reader: Reader) -> None:
        reading, report = reader.reading, self.report
        group = "steady" if reading.user in self.world.people.steady else "changed"
        report.rows[f"{group} {reading.shape}"] += reading.judge.counts.total()
        report.whole += reading.whole.checked
        report.events += reading.counts
        report.violations += reading.judge.violations
        task = self._tasks[reader]
        error = task.exception() if task.done() and not task.cancelled() else None
        if error is not None:
            report.violations.append(f"the reader of {reading.user} {reading.shape} failed: {error!r}")


async def _run(server: Server, seconds: float, seed: int, size: Size) -> Report:
    control = Control(server.wait_address())
    try:
        run = Run(server, control, seed, size)
        await control.sign_in(server, [*run.world.people.everybody, FEEDER])
        return await run.run(seconds)
    finally:
        await control.close()


def run_load(
    folder: Path, *, seconds: float, seed: int, size: Size | None = None, light: bool = False
) -> Report:
    """See `Run`; `light` for a run of less than a minute."""
    size = size or Size()
    server = Server(folder, write_catalog(size.name_people())[0] + CATALOG, LIGHT if light else SERIOUS)
    try:
        report = asyncio.run(_run(server, seconds, seed, size))
    finally:
        status, said = server.stop()
    errors = [line for line in said.splitlines() if '"level": "error"' in line]
    if status != 0 or errors:
        report.violations.append(f"the gateway ended with {status}, and said {errors[:3]}")
    report.violations += _check_memory(report.memory, seconds)
    return report


def _check_memory(memory: Memory, seconds: float) -> list[str]:
    if seconds < _FLAT_SECONDS:
        return []
    found = []
    for name, values in (("Python", memory.python), ("Java", memory.java)):
        growth = memory.find_slope(values) * seconds / 2 / 60
        if growth > _FLAT_SHARE * max(values):
            found.append(f"the memory of {name} grew by {growth:.0f} MiB in the second half of the run")
    return found


def _describe(memory: Memory) -> str:
    python, java = memory.python, memory.java
    return (
        f"memory of Python {python[0]:.0f} to {python[-1]:.0f} MiB, in the end {memory.find_slope(python):+.1f} a minute, "
        f"of Java {java[0]:.0f} to {java[-1]:.0f} MiB, in the end {memory.find_slope(java):+.1f} a minute"
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sluicegate.testing.load.run", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (default 600)")
    parser.add_argument("--seed", type=int, default=1, help="of rows and changes (default 1)")
    options = parser.parse_args(argv)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sluicegate-load-") as folder:
        report = run_load(Path(folder), seconds=options.seconds, seed=options.seed)
    taken = sorted(report.seconds)
    sys.stdout.write(
        f"seed {options.seed}: {report.readers} readers of {report.queries} queries, {report.batches} batches, "
        f"{len(taken)} changes {dict(report.changes)}, for {report.touched} users in all, "
        f"change p50 {taken[len(taken) // 2] * 1000:.0f} ms, p99 {taken[len(taken) * 99 // 100] * 1000:.0f} ms, "
        f"rows checked {dict(report.rows)}, {report.whole} that had to come, events {dict(report.events)}, "
        f"{_describe(report.memory)}, {len(report.violations)} violations, {time.monotonic() - started:.0f} s\n"
    )
    for each in report.violations[:20]:
        sys.stdout.write(f"{each}\n")
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m sluicegate.testing.recovery.gateway_kills --count 50 --seed 1`: a gateway killed during registrations, pushes and changes.

An episode is one folder: gateways run over it one after the other, each killed at a point or after a time, and the last one is
let go on. After each kill what was acknowledged is asked for: statements, handles, tokens, tuples. Every row that a reader gets, over
all lives, is judged by the versions in force, and in the end nothing is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO

from sluicegate.service.store import open_store
from sluicegate.testing.changes.policies import People, write_catalog
from sluicegate.testing.load import control as controls
from sluicegate.testing.load.control import FEEDER, Control
from sluicegate.testing.load.server import LIGHT, Server
from sluicegate.testing.load.world import World
from sluicegate.testing.recovery import gateway_kept
from sluicegate.testing.recovery.gateway_kept import WITNESS
from sluicegate.testing.recovery.gateway_life import AWAY, Lives
from sluicegate.testing.recovery.points import SIDES

PEOPLE = People(("c0",), ("m0",), ("g0",))
_POINT = "sluicegate.testing.recovery.gateway_child"
_MOST_KILLS = 6


@dataclass(slots=True)
class Report:
    """What was done, and what was wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    episodes: int = 0
    acknowledged: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    problems: list[str] = field(default_factory=list)


class Episode:
    """One folder, and the gateways over it."""

    def __init__(self, folder: Path, seed: int, report: Report, seconds: float) -> None:
        self._folder, self._report, self._seconds = folder, report, seconds
        self._rng = Random(seed)  # noqa: S311 — repeatable
        text = write_catalog(PEOPLE)[0] + controls.CATALOG + gateway_kept.CATALOG
        self._catalog: str | None = text
        self._control = Control("")
        self._lives = Lives(self._control, World(seed, PEOPLE))
        self._is_begun = False

    async def run(self, kills: int) -> None:
        try:
            for _ in range(kills):
                await self._live(self._choose())
            await self._live(None)
        finally:
            await self._control.close()
        self._judge_store()
        self._report.acknowledged += self._lives.acknowledged
        self._report.checked += self._lives.kept.checked
        self._report.episodes += 1

    def _choose(self) -> tuple[str, ...]:
        """Three times in four a point, else a moment; the first life is not cut off before it has begun."""
        from sluicegate.testing.recovery.gateway_child import GATEWAY_POINTS

        if not self._is_begun or self._rng.random() < 0.25:
            return ()
        name = self._rng.choice(sorted(GATEWAY_POINTS))
        return name, self._rng.choice(SIDES), str(self._rng.randint(1, GATEWAY_POINTS[name].calls))

    async def _live(self, fate: tuple[str, ...] | None) -> None:
        if self._lives.problems or self._report.problems:
            return
        server = Server(self._folder, self._catalog, (_POINT, *fate) if fate else LIGHT)
        self._catalog = None
        is_away = False
        try:
            is_away = await self._serve(server, fate)
        except AWAY:
            is_away = True
        finally:
            status, said = server.stop() if fate is None and not is_away else server.kill()
        self._report.problems += self._lives.problems
        if fate is not None:
            point = f"{fate[1]} `{fate[0]}`" if fate and is_away else "after a time"
            self._report.kills[point] += 1
        if (fate is None and (status, is_away) != (0, False)) or status not in (0, -signal.SIGKILL):
            self._report.problems.append(f"a gateway ended with {status}: {said[-2000:]}")

    async def _serve(self, server: Server, fate: tuple[str, ...] | None) -> bool:
        self._control.move(server.wait_address())
        lives = self._lives
        if not self._is_begun:
            await self._control.sign_in(server, [*PEOPLE.everybody, FEEDER, WITNESS])
            await lives.begin()
            self._is_begun = True
        else:
            await lives.resume()
        seconds = 2.0 if fate is None else self._seconds * self._rng.uniform(0.4, 1.0)
        is_away = await lives.run(seconds, cut=fate is not None)
        if fate is None and not is_away:
            self._report.rows += await lives.finish()
        return is_away

    def _judge_store(self) -> None:
        with open_store(str(self._folder / "store.db")) as store:
            if not store.verify().is_sound:
                self._report.problems.append(f"the store is not sound: {store.verify().broken[:3]}")


def run_kills(
    folder: Path, count: int, seed: int, seconds: float = 12.0, say: IO[str] | None = None
) -> Report:
    """Episodes until so many gateways were killed, or something is wrong."""
    report = Report()
    while report.kills.total() < count and not report.problems:
        state = folder / f"episode-{report.episodes}"
        state.mkdir()
        left = min(_MOST_KILLS, count - report.kills.total())
        asyncio.run(Episode(state, seed + report.episodes, report, seconds).run(left))
        if say is not None:
            say.write(f"{report.episodes} episodes, {report.kills.total()} kills, {report.rows} rows\n")
            say.flush()
        if not report.problems:
            shutil.rmtree(state)
    return report


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m sluicegate.testing.recovery.gateway_kills", description=__doc__
    )
    parser.add_argument("--count", type=int, default=50, help="how many kills (default 50)")
    parser.add_argument("--seed", type=int, default=1, help="of input, points and moments (default 1)")
    parser.add_argument(
        "--folder", type=Path, help="where state and results are left when something is wrong"
    )
    options = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="sluicegate-kills-", dir=options.folder))
    started = time.monotonic()
    report = run_kills(folder, options.count, options.seed, say=sys.stderr)
    for name, times in sorted(report.kills.items()):
        sys.stdout.write(f"{times:4} {name}\n")
    sys.stdout.write(
        f"seed {options.seed}: {report.kills.total()} kills in {report.episodes} episodes, {report.acknowledged} calls "
        f"acknowledged, asked for again {dict(report.checked)}, {report.rows} rows judged, "
        f"{len(report.problems)} problems, {time.monotonic() - started:.0f} s\n"
    )
    for each in report.problems[:20]:
        sys.stdout.write(f"{each}\n{folder}\n")
    if not report.problems:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())

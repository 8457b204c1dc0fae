"""`python -m sluicegate.testing.recovery.kills --count 100 --seed 1`: an engine killed at random points, against one that is not.

An episode is one state folder: processes run over it one after the other, each killed at a point or after a time, until one
comes to the end of the input. Every other episode changes the policy once while no process runs (bypass 26).
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO

from sluicegate.testing.recovery.check import check_changed, check_same, count_rows
from sluicegate.testing.recovery.child import CATALOG, TAKEN
from sluicegate.testing.recovery.points import choose_point
from sluicegate.testing.recovery.world import CHANGED, POLICY, World, make_world

_PATIENCE = 1800.0


@dataclass(slots=True)
class Report:
    """What was done, and what was wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    episodes: int = 0
    changed: int = 0
    rows: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fate:
    """When a process dies: at a call of a point's function, before or after it, or after so many seconds; neither: not."""

    point: tuple[str, str, int] | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        return "after a time" if self.point is None else f"{self.point[1]} `{self.point[0]}`"


class Process:
    """A child that makes Spark ready before it is told what to do, so that the next one starts while this one runs."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "sluicegate.testing.recovery.child"]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 — as long as the process
        self._child = subprocess.Popen(  # noqa: S603 — our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )

    def run(self, folder: Path, run: int, fate: Fate) -> int:
        """Its exit status; a kill is −9."""
        stdin, stdout = _open(self._child.stdin), _open(self._child.stdout)
        stdout.readline()
        stdin.write(json.dumps({"folder": str(folder), "run": run, "point": fate.point}) + "\n")
        stdin.flush()
        with stdin, stdout:
            try:
                return self._child.wait(_PATIENCE if fate.seconds is None else fate.seconds)
            except subprocess.TimeoutExpired:
                self.end()
                return 124 if fate.seconds is None else self._child.returncode

    def read_errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-4000:]

    def end(self) -> None:
        self._child.kill()
        self._child.wait()


def _open(file: IO[str] | None) -> IO[str]:
    assert file is not None
    return file


class Episodes:
    """Runs episodes over one input, each compared with an undisturbed run, or with the model where there was none."""

    def __init__(self, folder: Path, seed: int, batches: int = 8) -> None:
        self._folder, self._rng = folder, Random(seed)  # noqa: S311 — repeatable
        self.world: World = make_world(folder / "input", seed, batches)
        self.report = Report()
        self._next = Process()
        self._baseline: Path | None = None
        self._duration = 0.0

    def run_undisturbed(self) -> None:
        """What episodes are compared with, in place of the model, with which it is compared itself."""
        self._state = self._begin("undisturbed")
        started = time.monotonic()
        self._run(0, Fate())
        self._duration = time.monotonic() - started
        self._baseline = self._state / TAKEN
        self.report.problems += check_same(self.world, self._baseline, None)

    def close(self) -> None:
        self._next.end()

    def _begin(self, name: str) -> Path:
        state = self._folder / name
        state.mkdir()
        self._write_policy(state, POLICY)
        return state

    def _write_policy(self, state: Path, policy: str) -> None:
        (state / CATALOG).write_text(self.world.catalog_text(policy), encoding="utf-8")

    def _run(self, run: int, fate: Fate) -> int:
        process, self._next = self._next, Process()
        try:
            status = process.run(self._state, run, fate)
        finally:
            process.end()
        if status not in (0, -signal.SIGKILL):
            self.report.problems.append(f"a process ended with {status}: {process.read_errors()}")
        return status

    def run_episode(self, most_kills: int, *, changes: bool) -> None:
        """Processes until one comes to the end; after `most_kills` of them it is let go on. `changes`: after the first or second."""
        self._state = self._begin(f"episode-{self.report.episodes}")
        change_at = self._rng.randint(1, min(2, most_kills)) if changes else None
        run, killed = 0, 0
        while not self.report.problems:
            if run == change_at:
                self._write_policy(self._state, CHANGED)
            fate = self._choose(run) if killed < most_kills else Fate()
            ended = self._run(run, fate) == 0
            run += 1
            if ended:
                break
            killed += 1
            self.report.kills[str(fate)] += 1
        self._judge(change_at if change_at is not None and run > change_at else None)

    def _judge(self, change_at: int | None) -> None:
        report, taken = self.report, self._state / TAKEN
        report.episodes += 1
        report.changed += change_at is not None
        if report.problems:
            return
        if change_at is None:
            report.problems += check_same(self.world, taken, self._baseline)
        else:
            report.problems += check_changed(self.world, taken, change_at)
        report.rows += count_rows(taken)
        if not report.problems:
            shutil.rmtree(self._state)

    def _choose(self, run: int) -> Fate:
        """Three times in four a point, else a moment of what an undisturbed run takes."""
        if self._rng.random() < 0.75 or not self._duration:
            return Fate(point=choose_point(self._rng, run))
        return Fate(seconds=self._rng.uniform(0.05, 0.6) * self._duration)


def run_kills(folder: Path, count: int, seed: int, say: IO[str] | None = None) -> Report:
    """Episodes until so many processes were killed, or something is wrong."""
    episodes = Episodes(folder, seed)
    report = episodes.report
    try:
        episodes.run_undisturbed()
        while report.kills.total() < count and not report.problems:
            most = min(8, count - report.kills.total())
            episodes.run_episode(most, changes=report.episodes % 2 == 1)
            if say is not None:
                say.write(f"{report.episodes} episodes, {report.kills.total()} kills, {report.rows} rows\n")
                say.flush()
    finally:
        episodes.close()
    return report


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sluicegate.testing.recovery.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="how many kills (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="of input, points and moments (default 1)")
    parser.add_argument(
        "--folder", type=Path, help="where state and results are left when something is wrong"
    )
    options = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="sluicegate-kills-", dir=options.folder))
    started = time.monotonic()
    report = run_kills(folder, options.count, options.seed, sys.stderr)
    for name, times in sorted(report.kills.items()):
        sys.stdout.write(f"{times:4} {name}\n")
    sys.stdout.write(
        f"seed {options.seed}: {report.kills.total()} kills in {report.episodes} episodes, {report.changed} of them with "
        f"a policy changed while down, {report.rows} rows, {len(report.problems)} problems, "
        f"{time.monotonic() - started:.0f} s\n"
    )
    for each in report.problems:
        sys.stdout.write(f"{each}\n{folder}\n")
    if not report.problems:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m sluicegate.testing.fuzz`: any number of random cases from a seed, each judged by the reference model."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from random import Random

from sluicegate.errors import InvariantError
from sluicegate.testing.cases import describe, random_case
from sluicegate.testing.differential import Outcome, compare_case


@dataclass(frozen=True)
class Report:
    """What a run found; `failures` are the seeds of cases that differ."""

    cases: int
    with_rows: int
    rows: int
    failures: tuple[int, ...]
    seconds: float


def fuzz(count: int, seed: int, duckdb: bool = True, progress: int = 0, stop_at: int = 10) -> Report:
    """Run `count` cases; case k of a run with seed s is `random_case(Random(s·10⁹ + k))`."""
    started = time.perf_counter()
    with_rows = rows = 0
    failures: list[int] = []
    done = 0
    for done in range(1, count + 1):
        number = seed * 1_000_000_000 + done - 1
        outcome = _judge(number, duckdb)
        with_rows += outcome.rows > 0
        rows += outcome.rows
        if outcome.difference is not None:
            failures.append(number)
            _say(f"case {number}: {outcome.difference}\n{describe(random_case(Random(number)))}")  # noqa: S311
            if len(failures) >= stop_at:
                break
        if progress and done % progress == 0:
            _say(f"{done} cases, {with_rows} with rows, {len(failures)} differ")
    return Report(done, with_rows, rows, tuple(failures), time.perf_counter() - started)


def _judge(number: int, duckdb: bool) -> Outcome:
    """A plan that the verifier refuses lets nothing through, but it loses rows: that counts as a difference too."""
    case = random_case(Random(number))  # noqa: S311 (a test generator)
    try:
        return compare_case(case, duckdb)
    except InvariantError as error:
        return Outcome(0, f"refused: {error}")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sluicegate.testing.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many cases (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="where they begin (default 1)")
    parser.add_argument("--no-duckdb", action="store_true", help="only the graph interpreter: faster")
    parser.add_argument("--progress", type=int, default=10_000, help="say so every N cases (default 10000)")
    options = parser.parse_args(argv)
    report = fuzz(options.count, options.seed, not options.no_duckdb, options.progress)
    sys.stdout.write(
        f"seed {options.seed}: {report.cases} cases, {report.with_rows} with rows, {report.rows} rows, "
        f"{len(report.failures)} differ, {report.seconds:.0f} s\n"
    )
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())

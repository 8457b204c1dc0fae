"""`python -m sluicegate.testing.fuzz_spark`: random cases as (shape, constants, rows) on Spark, judged by the model."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from sluicegate.runtime.network.lift import lift_joins
from sluicegate.runtime.session import make_session
from sluicegate.testing.case_variants import vary, vary_constants
from sluicegate.testing.cases import Case, describe, random_case
from sluicegate.testing.shape_run import Asked, Difference, ask, compare_group, group_by_shape

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

SETTINGS = {
    # tiny data: compiling and adapting whole plans costs more than it saves
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    # tiny data must not be computed while the plan is made either: what is tested is what runs on much data
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
}


@dataclass(slots=True)
class Report:
    """What a run found."""

    graphs: int = 0
    cases: int = 0
    with_rows: int = 0
    shapes: int = 0
    lifted: int = 0
    differences: list[Difference] = field(default_factory=list)


def random_variants(number: int, count: int) -> list[Case]:
    """Variants of the random case of that number: of an even one with rows of their own, of an odd one with shared rows."""
    rng = Random(number)  # noqa: S311 (a test generator)
    case = random_case(rng)
    if number % 2 == 0:
        return [vary(case, rng) for _ in range(count)]
    shared = vary(case, rng).data
    return [replace(vary_constants(case, rng), data=shared) for _ in range(count)]


def ask_graphs(seed: int, count: int, wanted: Callable[[list[Asked]], bool] = bool) -> Iterator[list[Asked]]:
    """For each random graph under a seed its authorized variants, where they are as `wanted`."""
    number = seed * 1_000_000_000
    while True:
        asked = [each for each in map(ask, random_variants(number, count)) if each is not None]
        if wanted(asked):
            yield asked
        number += 1


def compare_graph(spark: Session, asked: list[Asked], report: Report) -> None:
    """Every other case with its joins lifted above the subscriptions, where that makes a difference."""
    report.graphs += 1
    for group in group_by_shape(asked):
        report.shapes += 1
        report.with_rows += sum(bool(each.model) for each in group)
        for part, lifted in _part(group):
            report.cases += len(part)
            report.lifted += len(part) if lifted else 0
            report.differences += compare_group(spark, part, lifted)


def _part(group: list[Asked]) -> list[tuple[list[Asked], bool]]:
    shape = group[0].shaped.shape
    if len(group) == 1 or lift_joins(shape) == shape:
        return [(group, False)]
    return [(group[::2], False), (group[1::2], True)]


def fuzz_spark(
    spark: Session, graphs: int, count: int, seed: int, seconds: float = math.inf, stop_at: int = 10
) -> Report:
    """Run `count` variants of each of `graphs` graphs; graph k of seed s is `random_variants(s·10⁹ + k)`.

    After `seconds` no other graph is begun.
    """
    report, end = Report(), time.monotonic() + seconds
    for asked in ask_graphs(seed, count):
        known = len(report.differences)
        try:
            compare_graph(spark, asked, report)
        except Exception:
            _say(describe(asked[0].case))
            raise
        for each in report.differences[known : known + 1]:
            _say(f"lifted: {each.lifted}\nmissing: {each.missing}\nnot expected: {each.unexpected}")
            _say(describe(each.case))
        if report.graphs % 20 == 0:
            _say(f"{report.graphs} graphs, {report.cases} cases, {len(report.differences)} differ")
        if report.graphs == graphs or len(report.differences) >= stop_at or time.monotonic() >= end:
            break
    return report


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sluicegate.testing.fuzz_spark", description=__doc__)
    parser.add_argument("--graphs", type=int, default=20, help="how many query graphs (default 20)")
    parser.add_argument("--variants", type=int, default=250, help="constants and rows of each (default 250)")
    parser.add_argument("--seed", type=int, default=1, help="where they begin (default 1)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no graph after so long")
    options = parser.parse_args(argv)
    started = time.perf_counter()
    spark = make_session(shuffle_partitions=1, extra=SETTINGS)
    try:
        report = fuzz_spark(spark, options.graphs, options.variants, options.seed, options.seconds)
    finally:
        spark.stop()
    sys.stdout.write(
        f"seed {options.seed}: {report.graphs} graphs, {report.cases} cases, {report.with_rows} with rows, "
        f"{report.shapes} shapes, {report.lifted} cases with lifted joins, {len(report.differences)} differ, "
        f"{time.perf_counter() - started:.0f} s\n"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())

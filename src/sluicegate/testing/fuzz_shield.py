"""`python -m sluicegate.testing.fuzz_shield`: random element sequences through the shield on Spark, judged by the model.

A lot of sequences is one stream: they come interleaved, in batches cut anywhere, with restarts, and kills before a batch is
complete, in between. What the feed's shield leaves in the log is then asked for by several principals in one live job.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.authorize import authorize
from sluicegate.runtime.network.evaluate import Evaluator
from sluicegate.runtime.network.places import Mark, find_place
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.units import find_units
from sluicegate.runtime.session import make_session
from sluicegate.runtime.shield.append import append_elements, append_end
from sluicegate.runtime.shield.bounded import add_origin
from sluicegate.runtime.shield.shield import Shield
from sluicegate.testing.element_tables import make_elements
from sluicegate.testing.fuzz_spark import SETTINGS
from sluicegate.testing.random_elements import NAME
from sluicegate.testing.shield_lots import (
    PRINCIPALS,
    Lot,
    Told,
    Wanted,
    ask_model,
    cut_rows,
    describe_tuple,
    make_lot,
)

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

_LOTS = 1_000_000
"""Lot k of seed s has the number s·10⁶ + k."""
_MOST_CUTS = 5


@dataclass(slots=True)
class Report:
    """What a run found."""

    sequences: int = 0
    elements: int = 0
    lots: int = 0
    batches: int = 0
    kills: int = 0
    released: int = 0
    denied: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    """Of all principals together."""
    differences: list[str] = field(default_factory=list)


class _Feed:
    """A log and its shield, opened anew whenever the process is thought to have died."""

    def __init__(self, folder: Path, lot: Lot, report: Report) -> None:
        self.folder, self.lot, self.report = folder, lot, report
        self.open()

    def open(self) -> None:
        self.log = SourceLog(self.folder, self.lot.stream)
        self.shield = Shield(self.log, lambda: self.lot.catalog)

    def take_all(self, rng: Random) -> None:
        for rows in cut_rows(rng, self.lot.rows, _MOST_CUTS):
            table = add_origin(self.lot.stream, make_elements(self.lot.stream, rows))
            self.report.batches += 1
            fate = rng.random()
            if fate < 0.15:
                # all is on disk but the commit
                self.shield.keep(self.log.end, self.shield.take(table, self.log.end, None))
                self.report.kills += 1
                self.open()
            append_elements(self.log, self.shield, table, self.log.end, None)
            if fate > 0.85:
                self.report.kills += 1
                self.open()
        append_end(self.log, self.shield)


def compare_lot(spark: Session, lot: Lot, folder: Path, report: Report) -> None:
    """Feed it, ask for it, and compare with the model."""
    feed = _Feed(folder, lot, report)
    feed.take_all(Random(lot.number))  # noqa: S311 — repeatable
    wanted, found = ask_model(lot), ask_spark(spark, lot, feed.log)
    report.lots += 1
    report.sequences += len(lot.sequences)
    report.elements += len(lot.rows)
    report.released += wanted.released
    report.denied.update(wanted.denied)
    report.rows += sum(each.total() for each in wanted.rows.values())
    report.differences += _compare(lot, wanted, found, feed.shield)


def ask_spark(spark: Session, lot: Lot, log: SourceLog) -> dict[str, Told]:
    """The lot's query for every principal, as queries of one shape are run: in one job, with one table of verdicts."""
    import pyarrow.compute as pc

    allowed = {user: authorize(lot.catalog, user, lot.question.text) for user in PRINCIPALS}
    shaped = {each.shaped.key: each.shaped for each in allowed.values()}
    if len(shaped) != 1:
        raise AssertionError("principals have plans of their own")
    (shape,) = shaped.values()
    (unit,) = find_units(shape.shape)
    queries = [Subscription(at, allowed[user].shaped.constants) for at, user in enumerate(PRINCIPALS)]
    places = ((NAME, Mark(0, None)),), find_place({NAME: log}, [NAME])
    table, _ = Evaluator(spark, {NAME: log}).run(unit, shape.types, queries, places, Carried())
    rows: dict[str, Told] = {user: Counter() for user in PRINCIPALS}
    if table is not None:
        for at, user in enumerate(PRINCIPALS):
            own = allowed[user].layout.make_rows(table.filter(pc.equal(table["q"], at)))
            rows[user].update(tuple(row.get(name) for name in lot.question.told) for row in own)  # type: ignore[misc]
    return rows


def _compare(lot: Lot, wanted: Wanted, found: dict[str, Told], shield: Shield) -> list[str]:
    told = []
    if dict(shield.denied) != wanted.denied:
        told.append(f"lot {lot.number}: denied {dict(shield.denied)}, the model denies {wanted.denied}")
    for user in PRINCIPALS:
        missing, extra = wanted.rows[user] - found[user], found[user] - wanted.rows[user]
        if missing or extra:
            one = next(iter((*missing, *extra)))
            text = (
                f"lot {lot.number}, {user}: {len(missing)} missing, {len(extra)} not expected, such as {one}"
            )
            number = one[-1] if one[-1] is not None else one[-2]
            told.append(f"{text}\n{describe_tuple(lot, -1 if number is None else number)}")
    return told


def fuzz_shield(
    spark: Session, count: int, seed: int, folder: Path, lot: int = 200, stop_at: int = 5, say: bool = False
) -> Report:
    """So many sequences, `lot` of them in one stream where they have partitions for it."""
    report = Report()
    number = seed * _LOTS
    while report.sequences < count and len(report.differences) < stop_at:
        made = make_lot(number, min(lot, count - report.sequences))
        compare_lot(spark, made, folder / str(number), report)
        number += 1
        if say and report.lots % 20 == 0:
            sys.stderr.write(f"{report.sequences} sequences, {len(report.differences)} differences\n")
    return report


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sluicegate.testing.fuzz_shield", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="how many sequences (default 500)")
    parser.add_argument("--seed", type=int, default=1, help="where they begin (default 1)")
    options = parser.parse_args(argv)
    started = time.perf_counter()
    spark = make_session(shuffle_partitions=1, extra=SETTINGS)
    try:
        with tempfile.TemporaryDirectory(prefix="sluicegate-shield-") as folder:
            report = fuzz_shield(spark, options.count, options.seed, Path(folder), say=True)
    finally:
        spark.stop()
    for each in report.differences:
        sys.stdout.write(each + "\n")
    sys.stdout.write(
        f"seed {options.seed}: {report.sequences} sequences, {report.elements} elements, {report.lots} jobs, "
        f"{report.batches} batches, {report.kills} kills, {report.released} tuples released, "
        f"{report.denied.total()} denied ({_list(report.denied)}), {report.rows} rows shown, "
        f"{len(report.differences)} differ, {time.perf_counter() - started:.0f} s\n"
    )
    return 1 if report.differences else 0


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {times}" for name, times in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())

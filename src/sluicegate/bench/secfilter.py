"""Rewriting against filtering afterwards (seed 000, 6.2): pairs that the join makes, processor time, memory.

Filtering afterwards (SecFilter): each tuple is labelled, before it enters the query, with who may have it; the query runs
over all tuples and carries the label, and what the user may not have is dropped from its result. Both run in the same
way, as units over source logs whose past fills the windows already, with the same kind of join (by sorting, chosen
beforehand: otherwise Spark takes another for smaller inputs); the rows that they let through are checked to be the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from sluicegate.bench.crowd import open_folder
from sluicegate.bench.jvm import Jvm, Used
from sluicegate.bench.rivals import check_same, order_tables
from sluicegate.bench.sample import Row, describe
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.authorize import authorize
from sluicegate.runtime.network.evaluate import Evaluator
from sluicegate.runtime.network.places import find_place
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.units import find_units
from sluicegate.testing.traffic import Spread, Traffic, make_positions, make_readings

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.frames import Session

SEED = 9
HALF = 0.5
JOIN_WINDOW = 2
"""Seconds, where the selectivity varies."""
_ROLE = "Doctor"
_CATALOG = """
CREATE STREAM Position (ts TIMESTAMP, SID STRING, Platoon STRING, Pos DOUBLE) TIMESTAMP BY ts WATERMARK '1 second';
CREATE STREAM Health (ts TIMESTAMP, SID STRING, Heart INT, BPressure INT, Label STRING)
  TIMESTAMP BY ts WATERMARK '1 second';
CREATE ROLE Doctor;
CREATE ROLE SecFilter;
CREATE USER reader ROLES (Doctor) SET (Most = {most});
CREATE USER filter ROLES (SecFilter);
CREATE GRANT health READ (SID, Heart) ON Health WHERE Heart <= self.Most TO Doctor;
CREATE GRANT position READ (SID, Pos) ON Position TO Doctor;
CREATE GRANT all_health READ (*) ON Health TO SecFilter;
CREATE GRANT all_position READ (*) ON Position TO SecFilter;
"""
_FROM = (
    "FROM Position [RANGE {window} SECONDS] JOIN Health [RANGE {window} SECONDS] ON Position.SID = Health.SID"
)
_REWRITTEN = "SELECT Health.SID, Heart, Pos " + _FROM
_LABELLED = "SELECT Health.SID, Heart, Pos, Label " + _FROM


@dataclass(frozen=True, slots=True)
class Data:
    """What was before and then batches of both streams, and the reading up to which the policy lets them pass."""

    spread: Spread
    past: tuple[pa.Table, pa.Table]
    batches: tuple[tuple[pa.Table, pa.Table], ...]
    most: int
    selectivity: float


def measure_secfilter(
    spark: Session, rows: int, windows: Sequence[int], selectivities: Sequence[float], rounds: int
) -> dict[str, list[Row]]:
    """The three parts of the figure, for uniform and for normal readings; `rows` of each stream a second."""
    joins: list[Row] = []
    costs: list[Row] = []
    warm_up = 2 if rounds > 1 else 0
    with _same_joins(spark):
        for spread in Spread:
            for selectivity in selectivities:
                data = make_data(spread, rows, JOIN_WINDOW, 1, selectivity)
                joins.append(_count_joins(spark, data, selectivity))
            data = make_data(spread, rows, max(windows), rounds + warm_up, HALF)
            costs += [_measure_costs(spark, data, window, warm_up) for window in windows]
    return {"joins": joins, "costs": costs}


@contextmanager
def _same_joins(spark: Session) -> Iterator[None]:
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.enabled": "false"}
    before = {name: spark.conf.get(name) or "" for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def make_data(spread: Spread, rows: int, past: int, batches: int, selectivity: float) -> Data:
    """A batch is a second, a report of each of `rows` soldiers; the threshold is the nearest that readings allow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    traffic = Traffic(objects=rows, steps=past + batches, spread=spread, seed=SEED)
    health = [each.drop_columns(["Platoon"]) for each in make_readings(traffic, rows)]
    counts = Counter(value for each in health for value in each["Heart"].to_pylist())
    total, seen, shares = sum(counts.values()), 0, {}
    for value in sorted(counts):
        seen += counts[value]
        shares[value] = seen / total
    most = min(shares, key=lambda value: abs(shares[value] - selectivity))
    labelled = [
        each.append_column("Label", pc.if_else(pc.less_equal(each["Heart"], most), _ROLE, ""))
        for each in health
    ]
    positions = list(make_positions(traffic, rows))
    pairs = tuple(zip(positions[past:], labelled[past:], strict=True))
    before = (pa.concat_tables(positions[:past]), pa.concat_tables(labelled[:past]))
    return Data(spread, before, pairs, most, shares[most])


def _count_joins(spark: Session, data: Data, asked: float) -> Row:
    rewritten, filtered = _run_both(spark, data, JOIN_WINDOW)
    return {
        "health": data.spread.value,
        "selectivity": asked,
        "selectivity_met": round(data.selectivity, 4),
        "pairs": rewritten.pairs,
        "pairs_filtered": filtered.pairs,
        "relative_joins": round(rewritten.pairs / filtered.pairs, 4),
    }


def _measure_costs(spark: Session, data: Data, window: int, warm_up: int) -> Row:
    rewritten, filtered = _run_both(spark, data, window)
    ours, theirs = rewritten.used[warm_up:], filtered.used[warm_up:]
    return {
        "health": data.spread.value,
        "window_s": window,
        "selectivity_met": round(data.selectivity, 4),
        "relative_cpu": round(median(a.cpu for a in ours) / max(median(b.cpu for b in theirs), 1e-9), 3),
        "relative_memory": round(
            median(a.memory for a in ours) / max(median(b.memory for b in theirs), 1), 3
        ),
        "relative_time": round(median(a.seconds for a in ours) / median(b.seconds for b in theirs), 3),
        "cpu_ms": round(median(a.cpu for a in ours) * 1000, 1),
        "cpu_filtered_ms": round(median(b.cpu for b in theirs) * 1000, 1),
        "memory_bytes": median(a.memory for a in ours),
        "memory_filtered_bytes": median(b.memory for b in theirs),
        **describe([a.seconds for a in ours]),
    }


@dataclass(frozen=True, slots=True)
class _Run:
    """What one side did: pairs that its join gave, and what each batch took."""

    pairs: int
    used: list[Used]


class _Side:
    """A query over its own logs."""

    def __init__(self, spark: Session, catalog: Catalog, folder: Path, user: str, query: str) -> None:
        self._logs = {
            name: SourceLog(log_folder(folder, stream), stream) for name, stream in catalog.streams.items()
        }
        self._shaped = authorize(catalog, user, query).shaped
        (self._unit,) = find_units(self._shaped.shape)
        self._evaluator = Evaluator(spark, self._logs)
        self._place = find_place(self._logs, self._logs)
        self.pairs = 0
        self.rows: list[pa.Table] = []
        self._found: pa.Table | None = None

    def push(self, batch: tuple[pa.Table, pa.Table]) -> None:
        for name, table in zip(("Position", "Health"), batch, strict=True):
            append_table(self._logs[name], table)

    def skip(self) -> None:
        """What came is the past: it is in the windows, and its own results are not asked for."""
        self._place = find_place(self._logs, self._logs)

    def step(self) -> None:
        """Evaluate what came, and drop what is labelled for others."""
        import pyarrow.compute as pc

        after = find_place(self._logs, self._logs)
        queries = [Subscription(1, self._shaped.constants)]
        table, _ = self._evaluator.run(
            self._unit, self._shaped.types, queries, (self._place, after), Carried()
        )
        self._place = after
        if table is None:
            return
        self.pairs += table.num_rows
        if "o3" in table.column_names:
            table = table.filter(pc.equal(table["o3"], _ROLE))
        self._found = table

    def keep(self) -> None:
        """The rows of the last step, for the comparison."""
        if self._found is not None:
            self.rows.append(self._found.select(["o0", "o1", "o2"]).rename_columns(["SID", "Heart", "Pos"]))
        self._found = None


def _run_both(spark: Session, data: Data, window: int) -> tuple[_Run, _Run]:
    catalog = read_catalog(_CATALOG.format(most=data.most))
    jvm = Jvm(spark)
    with open_folder() as folder:
        sides = [
            _Side(spark, catalog, folder / user, user, query.format(window=window))
            for user, query in (("reader", _REWRITTEN), ("filter", _LABELLED))
        ]
        used: list[list[Used]] = [[], []]
        for side in sides:
            side.push(data.past)
            side.skip()
        for batch in data.batches:
            for side, taken in zip(sides, used, strict=True):
                side.push(batch)
                taken.append(jvm.measure(side.step))
                side.keep()
        check_same("rewritten and filtered afterwards", *(order_tables(each.rows) for each in sides))
        return _Run(sides[0].pairs, used[0]), _Run(sides[1].pairs, used[1])

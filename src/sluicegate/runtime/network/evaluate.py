"""A unit's results between two places in the source logs, for all its queries in one Spark job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

from sluicegate.expr.types import Type
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.shape import find_shapes
from sluicegate.runtime.feed.log_batch import BATCH_SHIFT, LATE, LogBatch
from sluicegate.runtime.feed.log_files import log_schema
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.frames import make_frame
from sluicegate.runtime.network.bounds import find_sessions, share_bounds
from sluicegate.runtime.network.deltas import Rows, find_deltas, find_stream, name_rows
from sluicegate.runtime.network.estimate import Seen, choose_placement, sample_policies
from sluicegate.runtime.network.judging import Court, JudgedQueries
from sluicegate.runtime.network.placement import Placement, place_shields
from sluicegate.runtime.network.places import Place, find_time
from sluicegate.runtime.network.subscriptions import Bounds, Subscription, make_subscriptions
from sluicegate.runtime.network.switching import has_several, trim_bounds
from sluicegate.runtime.network.together import Member, join_tables, split_rows
from sluicegate.runtime.network.tuple_windows import PLACE, TIME, Carried, cut_windows, order_rows
from sluicegate.runtime.network.units import Reading, TupleCut, Unit
from sluicegate.runtime.table.in_force import read_parts, read_versions
from sluicegate.runtime.table.table_log import TableLog
from sluicegate.targets.duckdb_operators import ARRIVAL
from sluicegate.targets.spark_extents import find_held
from sluicegate.targets.spark_live import CASE, CUT, Tables, translate_live
from sluicegate.targets.spark_text import quote_name
from sluicegate.targets.spark_together import translate_together

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SHARE_FROM = 8
"""From so many queries on, a join that all may share runs once, before the subscriptions."""
MANY_ROWS = 50_000
"""Of new rows, from which on a join of whole sources is worth a shuffle."""
_BEGINNING = -(1 << 62)
_FRESH = f"NOT {quote_name(LATE)}"


class Evaluator:
    """Runs units over the logs. Several threads may use one."""

    def __init__(self, spark: SparkSession, logs: Mapping[str, SourceLog]) -> None:
        self._spark, self._logs = spark, logs
        self._court = Court(logs)
        self.placement: Placement | None = None
        """Where shields stand, whatever the estimate says; for measurements and tests."""
        self.share_from: int | None = None
        """Instead of `SHARE_FROM`; for measurements."""

    def run(
        self,
        unit: Unit,
        types: Sequence[Type],
        queries: Sequence[Subscription],
        places: tuple[Place, Place],
        carried: Carried,
    ) -> tuple[pa.Table | None, Carried]:
        """The rows due between the places, columns `q`, `o0`, …; None where there was nothing to do."""
        with ExitStack() as stack:
            for name in unit.streams:
                stack.enter_context(self._logs[name].reading())
            found = self._find(unit, types, queries, places)
            if unit.cut is None or found is None:
                return found, carried
            rows, carried = _cut(unit.cut, carried, found)
            if not rows.num_rows:
                return None, carried
            return self._run_above(unit.cut, types, queries, rows), carried

    def run_together(self, members: Sequence[Member], place: tuple[Place, Place]) -> list[pa.Table | None]:
        """The rows of each member between the places, in one job; the members are of one bundle (`together.find_bundle`)."""
        stream = members[0].flat.source.stream
        before, after = (dict(each)[stream].end for each in place)
        with self._logs[stream].reading():
            new = self._logs[stream].batches(before, after)
            if not new:
                return [None for _ in members]
            table, parameters = join_tables(members)
            given = {stream: self._read_between(stream, before, after), "": make_frame(self._spark, table)}
            with self._named(given) as names:
                text, outputs = translate_together(
                    [each.flat for each in members], parameters, names[stream], names[""]
                )
                asked = self._spark.sql(text)
            return list(split_rows(asked.toArrow(), outputs))

    def _find(
        self, unit: Unit, types: Sequence[Type], queries: Sequence[Subscription], places: tuple[Place, Place]
    ) -> pa.Table | None:
        shared = len(queries) >= (self.share_from or SHARE_FROM) and self.placement is None
        plan = unit.shared if unit.shared is not None and shared else unit.plan
        several = has_several(queries)
        if unit.by_time:
            span = self._find_span(unit, places)
            frames = {} if span is None else self._frames_by_time(unit.reading, span, places)
            plans = [plan]
        else:
            frames = self._frames_by_arrival(unit.reading, places)
            plans = [
                each for each in find_deltas(plan) if all(one.stream in frames for one in sources(each.root))
            ]
        if not frames or not plans:
            return None
        queries = self._bound(unit, unit.reading, places, queries)
        if not unit.by_time:
            common, (queries,) = share_bounds([(unit.timed, queries)])
            frames = self._narrow(frames, common)
        judged = self._court.judge(plans, types, queries)
        look = self._look(judged, places)
        plans = [place_shields(each, self.placement or choose_placement(each, look)) for each in plans]
        large = self._count_new(unit, places) >= MANY_ROWS
        ordered = unit.cut is not None or (several and not unit.by_time)
        found = self._ask(
            plans,
            frames,
            judged,
            by_time=unit.by_time,
            with_time=ordered or unit.by_time,
            with_order=ordered,
            large=large,
        )
        # what is counted is put in order there
        return found if unit.cut is not None else order_rows(found, _goes_by_arrival(unit))

    def _bound(
        self, unit: Unit, reading: Reading, places: tuple[Place, Place], queries: Sequence[Subscription]
    ) -> list[Subscription]:
        """With the times between which results are due, and of sessions only the bounds that something read is beyond, on
        streams whose tuples are results other than by a window."""
        if unit.by_time:
            since, until = (find_time(unit, place) for place in places)
            since = _BEGINNING if since is None else since
            queries = [replace(each, after=since, until=_find_until(unit, until, each)) for each in queries]
        if not any(each.periods for each in queries):
            return list(queries)
        before, after = (dict(place) for place in places)
        low: int | None = None
        if unit.by_time:
            low = (find_time(unit, places[0]) or _BEGINNING) - reading.reach
        elif unit.reading.joined and not unit.untimed:
            # of a stream and a table also tuples without a time meet
            low = self._find_low(reading, places)
        firsts = {name: before[name].end << BATCH_SHIFT if low is None else 0 for name in unit.timed}
        ends = {name: after[name].end << BATCH_SHIFT for name in unit.timed}
        held = find_held(unit.plan.root)
        ends = {name: end for name, end in ends.items() if name in held}
        return [trim_bounds(each, dict.fromkeys(unit.timed, low), firsts, ends) for each in queries]

    def _narrow(self, frames: Mapping[str, DataFrame], common: Mapping[str, Bounds]) -> dict[str, DataFrame]:
        """Of streams that all queries have the same bounds on, only what lies within them."""
        found = dict(frames)
        for name, frame in frames.items():
            if (bounds := common.get(stream := find_stream(name))) is not None:
                found[name] = frame.where(self._within(stream, bounds))
        return found

    def _within(self, stream: str, bounds: Bounds) -> str:
        time = f"unix_micros({quote_name(self._logs[stream].stream.event_time or '')})"
        arrival, parts = quote_name(ARRIVAL), []
        if bounds.since is not None:
            parts += [f"{time} > {_write_bound(bounds.since)}", f"{time} <= {TIMESTAMP_MAX}"]
        if bounds.first is not None:
            parts.append(f"{arrival} >= {_write_bound(bounds.first)}")
        if bounds.end is not None:
            parts.append(f"{arrival} < {_write_bound(bounds.end)}")
        return " AND ".join(parts)

    def _find_low(self, reading: Reading, places: tuple[Place, Place]) -> int:
        """The event time from which on new tuples can meet older ones."""
        before, after = (dict(place) for place in places)
        least = [
            each.least
            for name in reading.timed
            for each in self._logs[name].batches(before[name].end, after[name].end)
            if each.least is not None
        ]
        return min(least) - reading.reach if least else _BEGINNING

    def _find_span(self, unit: Unit, places: tuple[Place, Place]) -> tuple[int, int] | None:
        """The two times between which results may be due; None where none can be."""
        before, after = (find_time(unit, place) for place in places)
        after = _BEGINNING if after is None else after
        before = _BEGINNING if before is None else before
        return None if after <= before or unit.next_end(before) > after else (before, after)

    def _look(self, judged: JudgedQueries, places: tuple[Place, Place]) -> Callable[[str], Seen]:
        """What estimates ask for; each stream is looked at once in a tick, whoever reads it."""
        before, after = (dict(place) for place in places)

        @cache
        def look(stream: str) -> Seen:
            new = self._logs[stream].batches(before[stream].end, after[stream].end)
            return Seen(sample_policies([each.path for each in new]), judged.tables[stream])

        return lambda name: look(find_stream(name))

    def _count_new(self, unit: Unit | Reading, places: tuple[Place, Place]) -> int:
        before, after = (dict(place) for place in places)
        new = (
            each
            for name in unit.streams
            for each in self._logs[name].batches(before[name].end, after[name].end)
        )
        return sum(each.rows for each in new)

    def _frames_by_time(
        self, unit: Reading, span: tuple[int, int], places: tuple[Place, Place]
    ) -> dict[str, DataFrame]:
        """Tuples that results between the two times may be made of."""
        after = span[1]
        low = span[0] - unit.reach
        ends = {name: mark.end for name, mark in places[1]}
        frames = {}
        for name in unit.timed:
            found = [
                each
                for each in self._logs[name].reaching(low, 0, ends[name])
                if each.least is not None and each.least < after
            ]
            frames[name] = self._read_arrived(name, found, 0, ends[name]).where(
                self._between(name, low, after)
            )
        for name in unit.untimed:
            frames[name] = self._read_between(name, 0, ends[name])
        return frames

    def _between(self, stream: str, low: int, high: int) -> str:
        """Tuples that are not late, with an event time in [low, high)."""
        time = f"unix_micros({quote_name(self._logs[stream].stream.event_time or '')})"
        parts = [_FRESH]
        if low > TIMESTAMP_MIN:
            parts.append(f"{time} >= {_write_bound(low)}")
        if high < TIMESTAMP_MAX:
            parts.append(f"{time} < {_write_bound(high)}")
        return " AND ".join(parts)

    def _frames_by_arrival(self, unit: Reading, places: tuple[Place, Place]) -> dict[str, DataFrame]:
        """New tuples and, for joins, the older ones that they can still meet; only streams with something new are `new`."""
        before, after = (dict(place) for place in places)
        new = {name: self._logs[name].batches(before[name].end, after[name].end) for name in unit.streams}
        if not any(new.values()):
            return {}
        frames: dict[str, DataFrame] = {}
        joined = unit.joined
        low = self._find_low(unit, places)
        for name in unit.streams:
            if isinstance(table := self._logs[name], TableLog):
                marks = before[name].end, after[name].end
                frames |= read_parts(self._spark, table, self._read, marks, unit)
                continue
            begin, end = before[name].end, after[name].end
            if new[name]:
                frame = self._read_arrived(name, new[name], begin, end)
                frames[name_rows(name, Rows.NEW)] = frame.where(_FRESH) if joined else frame
            if joined:
                log, timed = self._logs[name], name in unit.timed
                since = low if timed else _BEGINNING
                old = log.reaching(since, 0, begin) if begin else ()
                kept = self._between(name, since, TIMESTAMP_MAX) if timed else _FRESH
                # what was put together may be both old and new
                every = tuple(dict.fromkeys((*old, *new[name])))
                frames[name_rows(name, Rows.OLD)] = self._read_arrived(name, old, 0, begin).where(kept)
                frames[name_rows(name, Rows.ALL)] = self._read_arrived(name, every, 0, end).where(kept)
        return frames

    def _read_between(self, stream: str, before: int, after: int) -> DataFrame:
        """The rows that came between the marks; of a table with a key those that are in force."""
        log = self._logs[stream]
        if isinstance(log, TableLog):
            return read_versions(self._spark, log, self._read, before, after)
        return self._read_arrived(stream, log.batches(before, after), before, after)

    def _read_arrived(self, stream: str, batches: Sequence[LogBatch], begin: int, end: int) -> DataFrame:
        """Of the batches, the rows with numbers in [begin, end): what was put together since a tick reaches beyond it."""
        frame, arrival = self._read(stream, batches), quote_name(ARRIVAL)
        if any(each.first < begin for each in batches):
            frame = frame.where(f"{arrival} >= {_write_bound(begin << BATCH_SHIFT)}")
        if any(each.last >= end for each in batches):
            frame = frame.where(f"{arrival} < {_write_bound(end << BATCH_SHIFT)}")
        return frame

    def _read(self, stream: str, batches: Sequence[LogBatch]) -> DataFrame:
        schema = log_schema(self._logs[stream].stream)
        if not batches:
            return make_frame(self._spark, schema.empty_table())
        reader = self._spark.read.schema(_spark_schema(schema))
        return reader.parquet(*(str(each.path) for each in batches))

    def _run_above(
        self, cut: TupleCut, types: Sequence[Type], queries: Sequence[Subscription], rows: pa.Table
    ) -> pa.Table:
        frames = {CUT: make_frame(self._spark, rows)}
        # each session's rows were counted by themselves: its bounds have been kept
        queries = [replace(each, periods=()) for each in queries]
        found = self._ask([cut.above], frames, JudgedQueries(types, queries), by_case=True, with_time=True)
        return order_rows(found, by_arrival=False)

    def _ask(
        self,
        plans: Sequence[AuthorizedPlan],
        frames: Mapping[str, DataFrame],
        judged: JudgedQueries,
        *,
        by_time: bool = False,
        with_time: bool = False,
        with_order: bool = False,
        by_case: bool = False,
        large: bool = False,
    ) -> pa.Table:
        bounded = sorted({name for each in judged.queries for name, _ in each.periods})
        subscriptions = make_subscriptions(judged.types, judged.queries, bounded)
        judged = judged.meet(subscriptions)
        tables = {"": subscriptions, **{f"?{name}": each for name, each in judged.tables.items()}}
        names = _make_names([*frames, *tables])
        verdicts = judged.name_tables({name: names[f"?{name}"] for name in judged.tables})
        sessions = find_sessions(judged.queries, bounded, frames)
        known = Tables(names, names[""], by_case, large, verdicts, sessions)
        text = " UNION ALL ".join(
            f"({translate_live(each, known, by_time=by_time, with_time=with_time, with_order=with_order)})"
            for each in plans
        )
        # verdicts that have met the subscriptions leave nobody who reads these
        made = {key: make_frame(self._spark, each) for key, each in tables.items() if names[key] in text}
        with self._called({names[key]: each for key, each in {**frames, **made}.items()}):
            asked = self._spark.sql(text)
        return _nullable(asked.toArrow())

    @contextmanager
    def _named(self, frames: Mapping[str, DataFrame]) -> Iterator[dict[str, str]]:
        """Names that nobody else has, while a query is analysed."""
        names = _make_names(frames)
        with self._called({names[key]: frame for key, frame in frames.items()}):
            yield names

    @contextmanager
    def _called(self, frames: Mapping[str, DataFrame]) -> Iterator[None]:
        """Frames under these names, while a query is analysed."""
        try:
            for name, frame in frames.items():
                frame.createOrReplaceTempView(name)
            yield
        finally:
            for name in frames:
                self._spark.catalog.dropTempView(name)


def _make_names(keys: Iterable[str]) -> dict[str, str]:
    mark = uuid4().hex
    return {key: f"v{mark}_{at}" for at, key in enumerate(keys)}


def _goes_by_arrival(unit: Unit) -> bool:
    """Whether the order of the unit's rows is that in which the tuples came, without their event times (D5)."""
    root = unit.plan.root
    return find_shapes(root)[id(root)].by_arrival


def _find_until(unit: Unit, until: int | None, query: Subscription) -> int | None:
    """Up to where results are due for a query; for a session that ended no further than they were final there."""
    if query.final is None or until is None:
        return until
    final = query.final // unit.cadence * unit.cadence if unit.cadence else query.final
    return min(until, final)


def _nullable(table: pa.Table) -> pa.Table:
    """What Spark knows of NULLs differs from unit to unit, and tables must fit together."""
    import pyarrow as pa

    schema = pa.schema([pa.field(each.name, each.type) for each in table.schema])
    return pa.Table.from_arrays(table.columns, schema=schema)


def _write_bound(moment: int) -> str:
    """A value that differs from tick to tick, so that Spark need not compile the query anew: only arrays stay out of the code."""
    return f"array({moment}L, {moment}L)[CAST({quote_name(LATE)} AS INT)]"


def _spark_schema(schema: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _cut(cut: TupleCut, carried: Carried, found: pa.Table) -> tuple[pa.Table, Carried]:
    """The rows of full windows as the source that `cut.above` reads."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = found.filter(pc.is_valid(found[TIME]))
    parts = [f"o{at}" for at in cut.partition]
    released, carried = cut_windows(carried, found, cut.window, parts, cut.by_arrival)
    columns = {f"x{at}": released[f"o{at}"] for at in range(len(cut.rows.outputs))}
    columns["time"] = released[TIME].cast(pa.timestamp("us", "UTC"))
    columns |= {"start": released["start"], ARRIVAL: released[PLACE], CASE: released["q"]}
    return pa.table(columns), carried

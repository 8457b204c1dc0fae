"""A network's results between two places in the source logs: its operators once, for all whom they serve, in one Spark job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from sluicegate.graph.operators import Aggregate, Join, Node
from sluicegate.rewrite.sharing.model import Network
from sluicegate.runtime.frames import make_frame
from sluicegate.runtime.network.bounds import find_sessions, share_bounds
from sluicegate.runtime.network.deltas import Rows, name_rows
from sluicegate.runtime.network.evaluate import MANY_ROWS, Evaluator
from sluicegate.runtime.network.places import Place
from sluicegate.runtime.network.shared import Guest, Member, Networks, find_reading, split_members
from sluicegate.runtime.network.subscriptions import Subscription, make_subscriptions
from sluicegate.runtime.network.switching import has_several
from sluicegate.runtime.network.together import split_rows
from sluicegate.runtime.network.tuple_windows import order_rows
from sluicegate.runtime.network.units import Reading
from sluicegate.targets.spark_network import NetworkQuery, NetworkTables, translate_network

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Keep = Callable[[Node, int], bool]


def keep_costly(node: Node, readers: int) -> bool:
    """Joins and windows that several read are worth keeping; a selection is made again in less time than it is kept in."""
    return readers > 1 and isinstance(node, Join | Aggregate)


class SharedEvaluator(Evaluator):
    """An evaluator that runs networks too."""

    keep: Keep = staticmethod(keep_costly)

    def run_network(
        self, members: Sequence[Member], network: Network, places: tuple[Place, Place]
    ) -> list[pa.Table | None]:
        """Each member's rows, columns `q`, `o0`, …; all of them by arrival, or all behind the watermark."""
        due = [each for each in members if self._is_due(each, places)]
        if not due:
            return [None for _ in members]
        reading = find_reading([each.guest.unit for each in due])
        with ExitStack() as stack:
            for name in reading.streams:
                stack.enter_context(self._logs[name].reading())
            frames = self._find_frames(due, reading, places)
            if not frames:
                return [None for _ in members]
            found = dict(
                zip(
                    (id(each) for each in due),
                    self._ask_network(due, network, frames, reading, places),
                    strict=True,
                )
            )
        return [found.get(id(each)) for each in members]

    def _is_due(self, member: Member, places: tuple[Place, Place]) -> bool:
        unit = member.guest.unit
        return not unit.by_time or self._find_span(unit, places) is not None

    def _find_frames(
        self, members: Sequence[Member], reading: Reading, places: tuple[Place, Place]
    ) -> dict[str, DataFrame]:
        unit = members[0].guest.unit
        if unit.by_time:
            spans = [self._find_span(each.guest.unit, places) for each in members]
            due = [each for each in spans if each is not None]
            span = (min(low for low, _ in due), max(high for _, high in due)) if due else None
            return {} if span is None else self._frames_by_time(reading, span, places)
        frames = self._frames_by_arrival(reading, places)
        if frames:
            for name in reading.streams:
                frames.setdefault(name_rows(name, Rows.NEW), self._read(name, ()))
        return frames

    def _ask_network(
        self,
        members: Sequence[Member],
        network: Network,
        frames: dict[str, DataFrame],
        reading: Reading,
        places: tuple[Place, Place],
    ) -> list[pa.Table]:
        by_time = members[0].guest.unit.by_time
        asked = [self._bound(each.guest.unit, reading, places, each.queries) for each in members]
        if not by_time:
            units = [each.guest.unit.timed for each in members]
            common, asked = share_bounds(list(zip(units, asked, strict=True)))
            frames = self._narrow(frames, common)
        bounded = sorted({name for each in asked for query in each for name, _ in query.periods})
        given = {**frames, "": make_frame(self._spark, _number(asked, bounded))}
        sessions = find_sessions([query for each in asked for query in each], bounded, frames)
        with_time = by_time or any(has_several(each) for each in asked)
        large = self._count_new(reading, places) >= MANY_ROWS
        mark = uuid4().hex
        with self._named(given) as names:
            tables = NetworkTables(names, names[""], lambda at: f"k{mark}_{at}", sessions, large)
            query = translate_network(
                [network.plan(each.name) for each in members],
                tables,
                by_time=by_time,
                with_time=with_time,
                keep=self.keep,
                name_rows=lambda stream, rows: name_rows(stream, Rows(rows)),
            )
            with self._kept(query):
                rows = self._spark.sql(query.text).toArrow()
        return split_rows(order_rows(rows, by_arrival=False), query.outputs)

    @contextmanager
    def _kept(self, query: NetworkQuery) -> Iterator[None]:
        """Results that several read stay where they are until all have read them."""
        frames = []
        try:
            for name, text in query.kept:
                frame = self._spark.sql(text).persist()
                frames.append((name, frame))
                frame.createOrReplaceTempView(name)
            yield
        finally:
            for name, frame in frames:
                self._spark.catalog.dropTempView(name)
                frame.unpersist()


class Sharer:
    """Runs guests in networks, and alone those that nothing is gained for."""

    def __init__(self, evaluator: SharedEvaluator, networks: Networks | None = None) -> None:
        self._evaluator, self._networks = evaluator, networks or Networks()

    def run(self, guests: Sequence[Guest], places: tuple[Place, Place]) -> Iterator[tuple[Member, pa.Table]]:
        """Each member's rows, where it has any."""
        kinds: dict[tuple[bool, int], list[Guest]] = {}
        for each in guests:
            kinds.setdefault((each.unit.by_time, each.unit.cadence), []).append(each)
        for group in kinds.values():
            members = self._networks.find_members(group)
            for part in split_members(self._networks.build(members), members):
                tables = self._evaluator.run_network(part, self._networks.build(part), places)
                for member, table in zip(part, tables, strict=True):
                    if table is not None and table.num_rows:
                        yield member, table


def _number(asked: Sequence[Sequence[Subscription]], bounded: Sequence[str]) -> pa.Table:
    """The subscriptions of all members, each with its member's number."""
    import pyarrow as pa

    table = make_subscriptions((), [query for each in asked for query in each], bounded)
    numbers = [at for at, each in enumerate(asked) for _ in each]
    return table.append_column("s", pa.array(numbers, pa.int32()))

"""A drawn network over logs of generated rows, ready to run on Spark: shared or not, with switches or without."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.bench.network_plans import ATTRIBUTES
from sluicegate.expr.evaluate import EMPTY
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.policy.model import Stream
from sluicegate.rewrite.sharing.model import Network, Operator
from sluicegate.rewrite.sharing.sessions import Period, Session
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.evaluate_shared import Keep, SharedEvaluator, Sharer, keep_costly
from sluicegate.runtime.network.places import Place, find_place
from sluicegate.runtime.network.shapes import Shaped, find_shape
from sluicegate.runtime.network.shared import Guest, Member, Networks, split_members
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.switching import bound_session, number_session
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.units import Unit, find_units
from sluicegate.targets import spark

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session as Spark

BASE = 1_700_000_000_000_000
SPAN = 5_000_000
WINDOW = 2 * SPAN
"""Of joins: the whole batch, so that a row meets the one with its key on the other side."""


def make_logs(folder: Path, streams: int, rows: int) -> dict[str, SourceLog]:
    """A batch of so many rows in each stream; each key is there once."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(1)
    logs = {}
    for number in range(1, streams + 1):
        stream = Stream(f"S{number}", ATTRIBUTES, "ts", watermark=0)
        log = SourceLog(log_folder(folder, stream), stream)
        times = BASE + np.arange(rows) * SPAN // rows
        table = pa.table(
            {
                "ts": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
                "k": pa.array(rng.permutation(rows).astype(np.int32)),
                "n": pa.array(rng.integers(0, 100, rows).astype(np.int32)),
            }
        )
        append_table(log, table)
        logs[stream.name] = log
    return logs


@dataclass
class NetworkBench:
    """Queries over logs. What is open is what has a subscription."""

    session: Spark
    logs: Mapping[str, SourceLog]
    plans: Mapping[str, AuthorizedPlan]
    keep: Keep = keep_costly
    networks: Networks = field(default_factory=Networks)

    def __post_init__(self) -> None:
        self._evaluator = SharedEvaluator(self.session, self.logs)
        self._sharer = Sharer(self._evaluator, self.networks)
        self._shaped: dict[str, tuple[Shaped, tuple[Unit, ...]]] = {}
        for query, plan in self.plans.items():
            shaped = find_shape(plan, EMPTY)
            self._shaped[query] = shaped, find_units(shaped.shape)

    def guests(self, queries: Iterable[str], opened: Mapping[str, int] | None = None) -> list[Guest]:
        """The queries' units; `opened`: each under a switch that was opened so many rows after the batch began, or before."""
        found = []
        for query in queries:
            shaped, units = self._shaped[query]
            number = 1 + sorted(self.plans).index(query)
            own = Subscription(number, shaped.constants)
            if opened is not None:
                streams = sorted({name for unit in units for name in unit.streams})
                own = bound_session(own, number_session(number, 1), _open(query, streams, opened[query]))
            found += [Guest(shaped.key, at, unit, shaped.types, (own,)) for at, unit in enumerate(units)]
        return found

    def run_shared(self, queries: Collection[str], opened: Mapping[str, int] | None = None) -> int:
        """All of them as one network; how many rows came out."""
        self._evaluator.keep = self.keep
        guests = self.guests(queries, opened)
        found = self._sharer.run(
            guests, self._places({name for each in guests for name in each.unit.streams})
        )
        return sum(table.num_rows for _, table in found)

    def run_apart(self, queries: Collection[str]) -> int:
        """Each by itself, one after the other."""
        count = 0
        for each in self.guests(queries):
            places = self._places(set(each.unit.streams))
            table, _ = self._evaluator.run(each.unit, each.types, each.queries, places, Carried())
            count += 0 if table is None else table.num_rows
        return count

    def network(self, queries: Iterable[str] | None = None) -> tuple[Network, list[Member]]:
        members = self.networks.find_members(self.guests(queries or self.plans))
        return self.networks.build(members), members

    def count_plans(self) -> int:
        """How many of Spark's plans all of them are: one takes a bounded number of queries."""
        network, members = self.network()
        return len(split_members(network, members))

    def count_taken(self) -> dict[str, int]:
        """The rows that each operator takes in when everything is open, counted by Spark."""
        network, _ = self.network()
        made = {name: self._count(each) for name, each in network.operators.items()}
        return {
            name: made[name] if each.is_input else sum(made[below] for below in each.inputs)
            for name, each in network.operators.items()
        }

    def _count(self, operator: Operator) -> int:
        column = next(each.column for each in operator.node.fields if not each.hidden)
        plan = AuthorizedPlan(operator.node, (OutputColumn("x", column),))
        names = {}
        for name, log in self.logs.items():
            names[name] = f"bench_{name}"
            paths = [str(each.path) for each in log.batches()]
            self.session.read.parquet(*paths).createOrReplaceTempView(names[name])
        return int(self.session.sql(spark.translate(plan, tables=names)).count())

    def _places(self, streams: set[str]) -> tuple[Place, Place]:
        after = find_place(self.logs, streams)
        return tuple((name, replace(mark, end=0, watermark=None)) for name, mark in after), after


def _open(query: str, streams: Sequence[str], at: int) -> Session:
    """Opened just before the batch where `at` is 0, long before it where it is less, else within it: then tuples before it
    are not the reader's.
    """
    since = BASE - 100 * WINDOW if at < 0 else BASE - 1 if at == 0 else BASE + at
    return Session(query, "reader", {name: Period(1, max(at, 0), since) for name in streams})


def find_open(network: Network, open_queries: Collection[str]) -> list[Operator]:
    """The operators that run while these are open."""
    wanted = frozenset(open_queries)
    return [each for each in network.operators.values() if each.queries & wanted]

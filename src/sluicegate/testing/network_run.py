"""Random networks on Spark: readers of a world under switches, in ticks over random cuts of what came in (R16–R18).

Logs are filled by hand, with punctuations where they stand; all else is the engine's own: shapes, switches, ticks, gate.

`python -m sluicegate.testing.network_run --count 300 --seed 1`
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Value
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.query_syntax import Start
from sluicegate.policy.environment import environment
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.gate.events import Rows
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.layout import find_layout
from sluicegate.runtime.network.authorize import Allowed
from sluicegate.runtime.network.carried_store import CarriedStore
from sluicegate.runtime.network.evaluate_shared import SharedEvaluator
from sluicegate.runtime.network.network import Network
from sluicegate.runtime.network.places import find_place
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.seats import Seat
from sluicegate.runtime.network.shapes import find_shape
from sluicegate.runtime.network.switching import Switching
from sluicegate.testing.cases import Case
from sluicegate.testing.differential import as_bag, authorize
from sluicegate.testing.network_switches import Streams, Tuple, random_elements
from sluicegate.testing.network_worlds import NetworkWorld, random_network_world, random_size
from sluicegate.testing.networks import receive_alone
from sluicegate.testing.tick_run import make_rows

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session


@dataclass(frozen=True)
class Compared:
    """What was compared, and the first difference."""

    readers: int
    rows: int
    refused: int
    ticks: int
    difference: str | None = None


@dataclass
class LiveNetwork:
    """The readers of a world as running queries over logs of its streams."""

    spark: Session
    world: NetworkWorld
    folder: Path
    logs: dict[str, SourceLog] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    plans: dict[str, AuthorizedPlan] = field(default_factory=dict)
    refused: int = 0
    ticks: int = 0

    def __post_init__(self) -> None:
        self.logs |= {
            name: SourceLog(log_folder(self.folder / "logs", stream), stream)
            for name, stream in self.world.catalog.streams.items()
        }
        self.gate = Gate(self.folder / "gate")
        self.open_network()

    def open_network(self) -> None:
        """The engine's parts over what lies on disk: as they are after a start."""
        evaluator = SharedEvaluator(self.spark, self.logs)
        self.switching = Switching(self.folder / "switches", self.logs)
        store = CarriedStore(self.folder / "windows")
        self.network = Network(evaluator, self.logs, self.gate, store, self.switching)
        for each in self.running.values():
            self.network.admit_shape(each.allowed.shaped, set())

    def register_all(self) -> None:
        for query, users in self.world.readers.items():
            for user in users:
                self._register(query, user)

    def _register(self, query: str, user: str) -> None:
        root, outputs = self.world.queries[query]
        plan = authorize(Case(self.world.catalog, user, root, outputs, False, self.world.data))
        if plan is None:
            return
        shaped = find_shape(plan, environment(self.world.catalog, user))
        try:
            self.network.admit_shape(shaped, set())
        except DiagnosticError:
            self.refused += 1
            return
        layout = find_layout(plan)
        allowed = Allowed(shaped, layout, (), Start.LATEST, (), None, shaped.key)
        name = f"{query}/{user}"
        number = self.gate.open(name, 1, layout)
        place = find_place(self.logs, allowed.streams)
        running = Running(name, number, Seat(user), query, 1, allowed, None, None, place, switch=query)
        self.running[name], self.plans[name] = running, plan

    def tick(self) -> None:
        queries = list(self.running.values())
        self.switching.listen(queries)
        _, moved = self.network.tick(queries, lambda _: ())
        for query, place in moved:
            self.running[query.handle] = replace(self.running[query.handle], place=place)
        self.ticks += 1

    def rows(self, name: str) -> list[dict[str, Value]]:
        events, _ = self.gate.read(name, None, 1_000_000)
        return [row for event in events if isinstance(event, Rows) for row in event.rows]

    def feed(self, stream: str, elements: Sequence[Tuple | QueryPunctuation]) -> None:
        """A batch of tuples and the punctuations between them."""
        rows: list[Mapping[str, Value]] = []
        said: list[tuple[int, QueryPunctuation]] = []
        for each in elements:
            if isinstance(each, QueryPunctuation):
                said.append((len(rows), each))
            else:
                rows.append(each)
        log = self.logs[stream]
        append_table(log, make_rows(log.stream, rows), said=said)

    def close(self) -> None:
        self.network.close()
        self.gate.shut()


def run_elements(live: LiveNetwork, rng: Random, elements: Streams) -> None:
    """Everything that came, in batches of random sizes, with a tick now and then; a restart of the network on the way."""
    left = {name: list(each) for name, each in elements.items()}
    for name in [each for each, log in live.logs.items() if log.stream.event_time is None]:
        live.feed(name, left.pop(name))
        live.logs[name].finish()
    while left:
        name = rng.choice(sorted(left))
        count = rng.choice((1, 3, 8, 30))
        taken, left[name] = left[name][:count], left[name][count:]
        if taken:
            live.feed(name, taken)
        else:
            live.logs[name].finish()
            del left[name]
        if rng.random() < 0.5:
            live.tick()
        if rng.random() < 0.05:
            live.network.close()
            live.open_network()
    for _ in range(3):
        live.tick()


def compare(spark: Session, rng: Random, folder: Path) -> Compared:
    """One random network: every reader's rows are those that it would receive alone."""
    world = random_network_world(rng, random_size(rng))
    elements = random_elements(rng, world)
    live = LiveNetwork(spark, world, folder)
    try:
        live.register_all()
        run_elements(live, rng, elements)
        return _judge(live, elements)
    finally:
        live.close()


def _judge(live: LiveNetwork, elements: Streams) -> Compared:
    count = 0
    for name, running in live.running.items():
        plan = live.plans[name]
        read = {each.stream for each in sources(plan.root) if each.event_time is not None}
        wanted = receive_alone(live.world, elements, running.query, running.user, read)
        got = as_bag(live.rows(name))
        count += sum(wanted.values())
        if got != wanted:
            missing, extra = list((wanted - got).elements()), list((got - wanted).elements())
            told = f"{name}: missing {missing}, not expected {extra}"
            return Compared(len(live.running), count, live.refused, live.ticks, told)
    return Compared(len(live.running), count, live.refused, live.ticks)


def main() -> int:
    from sluicegate.runtime.session import make_session

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    spark, began = make_session(), time.monotonic()
    totals: Counter[str] = Counter()
    for number in range(args.count):
        with tempfile.TemporaryDirectory() as folder:
            found = compare(spark, Random(f"{args.seed}:{number}"), Path(folder))  # noqa: S311 (a test generator)
        totals.update(readers=found.readers, rows=found.rows, refused=found.refused, ticks=found.ticks)
        if found.difference is not None:
            print(f"network {args.seed}:{number}: {found.difference}")
            return 1
    print(f"{args.count} networks, no difference, in {time.monotonic() - began:.0f} s: {dict(totals)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

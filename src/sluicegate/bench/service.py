"""What a registration costs at the gateway, stage by stage, against starting the same query graph in Spark: seed 001, section 4."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from sluicegate.bench.asker import Asker, open_asker
from sluicegate.bench.crowd import open_folder, open_session
from sluicegate.bench.direct import Direct, Started
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.mix import COMPOSITION, MIX_NOTES, RANKS, Asked, Mix, draw_zipf, make_mix
from sluicegate.bench.plot import MISSING, can_draw
from sluicegate.bench.plot_service import draw_service
from sluicegate.bench.served import Served, Taken, serve_mix
from sluicegate.bench.service_tables import SERVICE_NOTES, Found, describe_all
from sluicegate.language.load import read_catalog

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

NAME = "service"
SUMMARY = "registering queries at the gateway, fresh and known, against starting them in Spark"
SEED = 7
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: requests and policies as in the paper; `beats` batches of `rows` while queries are registered,
    and `last_beats` when all are.
    """

    requests: int
    policies: int
    few_requests: int
    few_policies: int
    direct: int
    zipf: int
    ranks: int
    busy: int
    beats: int
    last_beats: int
    rows: int
    warm_up: int


FULL = Size(1500, 1000, 100, 50, 60, 1500, RANKS, busy=60, beats=5, last_beats=3, rows=240, warm_up=5)
QUICK = Size(2, 2, 1, 1, 1, 4, 2, busy=1, beats=0, last_beats=0, rows=240, warm_up=0)


def run(json: bool, out: Path | None, quick: bool, spark: Session | None = None) -> dict[str, object]:
    """Measure, in a session of its own unless one is given."""
    size, begun = QUICK if quick else FULL, perf_counter()
    with open_session(spark) as session, open_folder() as folder, open_asker() as asker:
        environment = describe_spark(session)
        found = Bench(session, folder, asker, size).run()
    result: dict[str, object] = {
        "bench": NAME,
        "quick": quick,
        "environment": {**environment, "load_at_end": round(os.getloadavg()[0], 1)},
        "seed": SEED,
        "duration_s": round(perf_counter() - begun),
        "composition": dict(COMPOSITION),
        "notes": [*MIX_NOTES, *SERVICE_NOTES],
        **describe_all(found),
    }
    if out is not None:
        keep_result(result, out)
        samples = dumps(found.list_samples()) + "\n"
        (out / "service_samples.json").write_text(samples, encoding="utf-8")
        drawn = draw_service(found.list_samples(), out) if can_draw() else MISSING
        result["plots"] = [path.name for path in drawn] if isinstance(drawn, list) else drawn
    return result


@dataclass
class Bench:
    """One run; what is compared takes turns."""

    spark: Session
    folder: Path
    asker: Asker
    size: Size
    found: Found = field(default_factory=Found)

    def run(self) -> Found:
        mix = make_mix(self.size.requests, self.size.policies, SEED)
        few = make_mix(self.size.few_requests, self.size.few_policies, SEED + 1)
        with ExitStack() as stack:
            alone = self._serve(stack, "alone", mix)
            with ExitStack() as inner:
                together = self._serve(inner, "together", mix)
                self._measure_unique(mix, few, together, alone, self._serve(inner, "few", few))
                self._measure_live(mix, together)
            self._measure_zipf(mix, alone, self._serve(stack, "zipf", mix))
        return self.found

    def _serve(self, stack: ExitStack, name: str, mix: Mix) -> Served:
        served = stack.enter_context(serve_mix(self.spark, self.folder / name, mix, self.asker))
        served.admit(each.user for each in mix.requests)
        return served

    def _measure_unique(self, mix: Mix, few: Mix, together: Served, alone: Served, small: Served) -> None:
        """Blocks of: a graph in Spark, the same at a gateway of its own, and the next requests of both sequences."""
        direct = Direct(
            self.spark, read_catalog(mix.write_catalog()), self.folder / "direct", self.size.rows, SEED
        )
        rng = Random(SEED)  # noqa: S311 — repeatable
        drawn = rng.sample(mix.requests, self.size.direct)
        for asked in drawn[: self.size.warm_up]:
            self._start(asked, direct, alone)
        for number, (asked, large, less) in enumerate(
            zip(
                drawn,
                split(mix.requests, len(drawn)),
                split(few.requests, len(drawn)),
                strict=True,
            )
        ):
            if self.size.beats and number % (len(drawn) // (self.size.beats + 1)) == 0 and number:
                self.found.beats.append(self._beat(together, number))
            started, first = self._start(asked, direct, alone)
            self.found.direct.append(started)
            self.found.first.append(first)
            self._ask_twice(together, large, self.found.fresh, self.found.again)
            self._ask_twice(small, less, self.found.few_fresh, self.found.few_again)

    def _start(self, asked: Asked, direct: Direct, alone: Served) -> tuple[Started, Started]:
        """In Spark, and at a gateway that has no other query; both to the first progress over as many rows."""
        started = direct.start(asked.graph)
        alone.forget_graphs()
        if not alone.engine.feeds.logs.get(asked.graph.feed.name):
            alone.push(self.size.rows, SEED)
        begun = perf_counter()
        taken = alone.register(asked, " START AT EARLIEST")
        alone.wait_moved(taken.handle)
        progress = perf_counter() - begun
        alone.drop(asked, taken.handle)
        return started, Started(taken.round_trip, progress)

    def _ask_twice(
        self, served: Served, requests: Sequence[Asked], fresh: list[Taken], again: list[Taken]
    ) -> None:
        """Each request, and, while its query runs, the same again."""
        for each in requests:
            fresh.append(served.register(each))
            again.append(served.register(each))

    def _beat(self, served: Served, number: int) -> float:
        served.push(self.size.rows, SEED + number)
        return served.wait_all_moved()

    def _measure_live(self, mix: Mix, together: Served) -> None:
        """All of them live: a batch goes through every query; then some are registered while batches come."""
        # windows that had begun when a query was registered are withheld, so that one batch may give nothing
        beats = [self._beat(together, self.size.direct + at) for at in range(self.size.last_beats)]
        self.found.live_beats += beats
        chosen = Random(SEED).sample(mix.requests, self.size.busy)  # noqa: S311 — repeatable
        for each in chosen:
            together.drop(each, together.register(each).handle)
        stop = threading.Event()
        thread = threading.Thread(target=self._keep_busy, args=(together, stop))
        thread.start()
        try:
            for each in chosen:
                together.forget_graphs()
                self.found.busy.append(together.register(each))
                stop.wait(0.5)
        finally:
            stop.set()
            thread.join()
        together.wait_all_moved()
        self.found.live = len(together.engine.running)
        self.found.shapes = together.engine.network.shapes
        self.found.reached = together.count_reached()

    def _keep_busy(self, served: Served, stop: threading.Event) -> None:
        number = 1000
        while not stop.is_set():
            served.push(self.size.rows, SEED + number)
            number += 1
            while not stop.wait(0.01) and not served.has_all_moved():
                pass

    def _measure_zipf(self, mix: Mix, alone: Served, keeping: Served) -> None:
        """Each request of the sequence at a gateway that keeps what runs, and at one that ends it and forgets."""
        seen: set[str] = set()
        for asked in draw_zipf(mix.requests, self.size.zipf, self.size.ranks, SEED):
            kept = keeping.register(asked)
            self.found.zipf_hits.append(asked.user in seen)
            seen.add(asked.user)
            alone.forget_graphs()
            fresh = alone.register(asked)
            alone.drop(asked, fresh.handle)
            graph = alone.register(asked)
            alone.drop(asked, graph.handle)
            self.found.zipf_kept.append(kept)
            self.found.zipf_fresh.append(fresh)
            self.found.zipf_graph.append(graph)


def split(items: Sequence[T], parts: int) -> Iterator[Sequence[T]]:
    """In so many parts, one after the other, as equal as can be."""
    for at in range(parts):
        yield items[len(items) * at // parts : len(items) * (at + 1) // parts]

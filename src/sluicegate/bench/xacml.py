"""What XACML costs: decisions among many policies, and the requests of `bench service` in XACML, also through the proxy."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from sluicegate.bench.asker import Asker, open_asker
from sluicegate.bench.crowd import open_folder, open_session
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.mix import COMPOSITION, MIX_NOTES, RANKS, Asked, Mix, draw_zipf, make_mix
from sluicegate.bench.plot import MISSING, can_draw
from sluicegate.bench.plot_xacml import draw_xacml
from sluicegate.bench.proxied import open_proxy
from sluicegate.bench.served import Served, Taken, serve_mix
from sluicegate.bench.xacml_decisions import (
    Decided,
    describe_decisions,
    describe_loading,
    judge_growth,
    measure_decisions,
)
from sluicegate.bench.xacml_tables import Requests, describe_requests
from sluicegate.bench.xacml_texts import ADMINISTRATOR, XACML_NOTES, XacmlMix, write_carrier, write_policy

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

NAME = "xacml"
SUMMARY = "XACML decisions among many policies, and requests in XACML at the gateway and through the proxy"
SEED = 7
KIND = "application/xacml+xml"


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured; requests and policies as in the paper."""

    among: tuple[int, ...]
    rounds: int
    requests: int
    policies: int
    zipf: int
    ranks: int
    loads: int


FULL = Size((100, 1_000, 10_000), 3_000, 1_500, 1_000, 1_500, RANKS, 50)
QUICK = Size((10, 100), 30, 4, 3, 6, 2, 1)


def run(json: bool, out: Path | None, quick: bool, spark: Session | None = None) -> dict[str, object]:
    """Measure, in a session of its own unless one is given."""
    size, begun = QUICK if quick else FULL, perf_counter()
    decided = measure_decisions(size.among, size.rounds, SEED)
    with open_session(spark) as session, open_folder() as folder, open_asker() as asker:
        environment = describe_spark(session)
        found = _Bench(session, folder, asker, size).run()
    result: dict[str, object] = {
        "bench": NAME,
        "quick": quick,
        "environment": {**environment, "load_at_end": round(os.getloadavg()[0], 1)},
        "seed": SEED,
        "duration_s": round(perf_counter() - begun),
        "composition": dict(COMPOSITION),
        "notes": [*MIX_NOTES, *XACML_NOTES],
        "decisions": describe_decisions(decided),
        "loading": describe_loading(decided),
        **describe_requests(found),
        "aims": judge_growth(decided),
    }
    if out is not None:
        keep_result(result, out)
        result["plots"] = _draw(found, decided, out)
    return result


def _draw(found: Requests, decided: Decided, out: Path) -> list[str] | str:
    samples = found.list_samples()
    (out / "xacml_samples.json").write_text(dumps(samples) + "\n", encoding="utf-8")
    if not can_draw():
        return MISSING
    return [path.name for path in draw_xacml(samples, decided.decisions, out)]


@dataclass
class _Bench:
    """One run; what is compared takes turns."""

    spark: Session
    folder: Path
    asker: Asker
    size: Size
    found: Requests = field(default_factory=Requests)

    def run(self) -> Requests:
        plain = make_mix(self.size.requests, self.size.policies, SEED)
        mix = XacmlMix(plain.policies, plain.requests)
        with ExitStack() as stack:
            straight = self._serve(stack, "straight", mix)
            behind = self._serve(stack, "behind", mix)
            grants = self._serve(stack, "grants", plain)
            self._measure_loading(stack, mix, straight)
            proxy = stack.enter_context(open_proxy(behind.url))
            for asked in mix.requests:
                self._ask_each(asked, straight, behind, proxy, grants)
        with ExitStack() as stack:
            alone, kept = self._serve(stack, "alone", mix), self._serve(stack, "kept", mix)
            self._measure_zipf(mix, alone, kept, stack.enter_context(open_proxy(kept.url)))
        return self.found

    def _serve(self, stack: ExitStack, name: str, mix: Mix) -> Served:
        served = stack.enter_context(serve_mix(self.spark, self.folder / name, mix, self.asker))
        served.admit(each.user for each in mix.requests)
        if isinstance(mix, XacmlMix):
            served.admit([ADMINISTRATOR])
        return served

    def _measure_loading(self, stack: ExitStack, mix: XacmlMix, full: Served) -> None:
        """One more policy over HTTP, where there are none and where there are all; it is in force when it is answered."""
        empty = self._serve(stack, "empty", XacmlMix((), mix.requests[:0]))
        begin = len(mix.policies)
        for number in range(begin, begin + self.size.loads):
            text = write_policy(mix.policies[number % begin], number)
            self.found.loaded_first.append(empty.put_policy(ADMINISTRATOR, text))
            self.found.loaded_last.append(full.put_policy(ADMINISTRATOR, text))

    def _ask_each(self, asked: Asked, straight: Served, behind: Served, proxy: str, grants: Served) -> None:
        """Each request, and, while its query runs, the same again: by grants, by XACML, and that through the proxy."""
        text = write_carrier(asked)
        self.found.grants_fresh.append(grants.register(asked))
        self.found.grants_again.append(grants.register(asked))
        self.found.fresh.append(straight.register_text(asked.user, text, KIND))
        self.found.again.append(straight.register_text(asked.user, text, KIND))
        self.found.proxy_fresh.append(behind.register_text(asked.user, text, KIND, proxy))
        self.found.proxy_again.append(behind.register_text(asked.user, text, KIND, proxy))

    def _measure_zipf(self, mix: Mix, alone: Served, kept: Served, proxy: str) -> None:
        """At a gateway that forgets each query, and through a proxy in front of one that does not."""
        seen: set[str] = set()
        for asked in draw_zipf(mix.requests, self.size.zipf, self.size.ranks, SEED):
            text = write_carrier(asked)
            self.found.zipf_proxy.append(kept.register_text(asked.user, text, KIND, proxy))
            self.found.zipf_hits.append(asked.user in seen)
            seen.add(asked.user)
            self.found.zipf_fresh.append(self._ask_alone(alone, asked, text))

    def _ask_alone(self, alone: Served, asked: Asked, text: str) -> Taken:
        alone.forget_graphs()
        taken = alone.register_text(asked.user, text, KIND)
        alone.drop(asked, taken.handle)
        return taken

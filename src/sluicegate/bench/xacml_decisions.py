"""How long a decision takes among many policies, and how long they take to be read."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from sluicegate.bench.mix import Graph, make_mix
from sluicegate.bench.sample import Row, describe, quantile
from sluicegate.bench.xacml_texts import write_policy, write_request
from sluicegate.language.xacml.read_policies import link_documents, read_policy
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.policy.xacml.context import Decision, Request
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.nodes import Node
from sluicegate.policy.xacml.temporal import moment_at

MOST_GROWTH = 2.0
"""The aim: from the fewest policies to the most, whatever lies between."""
_NOON = 1_772_366_400_000_000


@dataclass
class Decided:
    """Seconds, by the number of policies."""

    decisions: dict[int, list[float]] = field(default_factory=dict)
    reading: dict[int, list[float]] = field(default_factory=dict)
    linking: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _World:
    root: Node
    requests: Sequence[Request]


def measure_decisions(sizes: Sequence[int], rounds: int, seed: int) -> Decided:
    """Each size decides in turn, so that what else the machine does falls on all of them alike."""
    found = Decided()
    worlds = {size: _make_world(size, rounds, seed, found) for size in sizes}
    found.decisions = {size: [] for size in sizes}
    gc.collect()
    gc.freeze()
    try:
        for at in range(-min(rounds, 20), rounds):
            for size, world in worlds.items():
                taken = _decide(world, world.requests[at])
                if at >= 0:
                    found.decisions[size].append(taken)
    finally:
        gc.unfreeze()
    return found


def _decide(world: _World, request: Request) -> float:
    start = perf_counter()
    result = decide(world.root, request, moment_at(_NOON))
    taken = perf_counter() - start
    if result.decision is not Decision.PERMIT or not result.obligations:
        raise ValueError("a request that its policy permits was not permitted")
    return taken


def _make_world(size: int, rounds: int, seed: int, found: Decided) -> _World:
    graphs: Sequence[Graph] = [each for each in make_mix(size, size, seed).policies if _has_obligation(each)]
    texts = [write_policy(graph, at) for at, graph in enumerate(graphs)]
    documents, found.reading[size] = [], []
    for at, text in enumerate(texts):
        start = perf_counter()
        documents.append(read_policy(text, f"policy-{at}.xml"))
        found.reading[size].append(perf_counter() - start)
    start = perf_counter()
    root = link_documents(documents)
    found.linking[size] = perf_counter() - start
    chosen = Random(seed).choices(range(len(graphs)), k=rounds)  # noqa: S311 — repeatable
    asked = [write_request(f"u{at}", graphs[at].feed.name, [f"r{at}"]) for at in chosen]
    return _World(root, [read_request(each, "request.xml") for each in asked])


def _has_obligation(graph: Graph) -> bool:
    return graph.filter is not None or "MB" in graph.kind or graph.window is not None


def describe_decisions(found: Decided) -> list[Row]:
    return [{"policies": size, **describe(times)} for size, times in found.decisions.items()]


def describe_loading(found: Decided) -> list[Row]:
    """Of each policy: reading and checking its text; of all: making them ready to decide."""
    return [
        {
            "policies": size,
            **describe(times),
            "linking_all_ms": round(found.linking[size] * 1000, 3),
            "linking_per_policy_ms": round(found.linking[size] / size * 1000, 4),
        }
        for size, times in found.reading.items()
    ]


def judge_growth(found: Decided) -> list[Row]:
    sizes = list(found.decisions)
    least, most = found.decisions[sizes[0]], found.decisions[sizes[-1]]
    rows: list[Row] = []
    for name, part in (("median", 0.5), ("p99", 0.99)):
        growth = round(quantile(most, part) / quantile(least, part), 3)
        aim = f"decision at {sizes[-1]:,} policies / at {sizes[0]:,}, {name}"
        rows.append({"aim": aim, "at_most": MOST_GROWTH, "found": growth, "met": growth <= MOST_GROWTH})
    return rows

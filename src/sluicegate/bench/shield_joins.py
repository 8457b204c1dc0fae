"""A join of two streams with policies, by its three strategies (seed 002, 6.3, Fig. 16), and for many readers at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from statistics import median
from typing import TYPE_CHECKING

from sluicegate.bench.crowd import open_folder
from sluicegate.bench.jvm import Jvm, Used
from sluicegate.bench.sample import Row, describe
from sluicegate.bench.shield_world import Pipe, Rounds, WrongRowsError, make_catalog
from sluicegate.runtime.network.placement import Placement
from sluicegate.testing.punctuated import SPACING, WINDOW, Moving, make_elements

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

STREAMS = ("A", "B")
_RANGE = f"[RANGE {WINDOW * SPACING // 1000} MILLISECONDS]"
QUERY = (
    f"SELECT a.obj, a.x, b.obj AS other, b.x AS there FROM A {_RANGE} AS a JOIN B {_RANGE} AS b"  # noqa: S608
    " ON a.dest = b.dest START AT EARLIEST"
)
STRATEGIES: Mapping[str, Placement | None] = {
    "filter_and_probe": Placement.DOWN,
    "probe_and_filter": Placement.OVER,
    "adaptive": None,
}
_FIXED = ("filter_and_probe", "probe_and_filter")
_ORDERS = tuple(permutations(STRATEGIES))
"""Turns: none follows the same other one always."""
_SEEDS = (1, 2)
_LOW = 0.1
"""The share of reports that find another, unless that is what varies."""


@dataclass(frozen=True, slots=True)
class _Case:
    varied: float
    left: Moving
    right: Moving


def measure_joins(
    spark: Session,
    rows: int,
    rounds: Rounds,
    ratios: Sequence[int],
    similarities: Sequence[float],
    selectivities: Sequence[float],
    readers: int,
) -> dict[str, list[Row]]:
    """`fig16a`: over reports under one punctuation; `b`: similarity of policies; `c`: join selectivity; `shared`: many readers."""
    base = Moving(objects=max(rows // 100, 1), joining=_LOW, seed=_SEEDS[0])

    def case(varied: float, right_passing: float | None = None, **changes: float) -> _Case:
        left = replace(base, **changes)  # type: ignore[arg-type]  # names of its fields
        passing = left.passing if right_passing is None else right_passing
        return _Case(varied, left, replace(left, seed=_SEEDS[1], passing=passing))

    figures = {
        "fig16a": [case(each, ratio=each) for each in ratios],
        # of identical policies all pass, of others those that both streams have
        "fig16b": [case(each, each, passing=1.0) for each in similarities],
        "fig16c": [case(each, joining=each) for each in selectivities],
    }
    found = {name: [_measure(spark, rows, rounds, each) for each in cases] for name, cases in figures.items()}
    # many readers differ by several times, and take as much longer
    fewer = rounds[0], -(-rounds[1] // 2)
    return {**found, "shared": [_measure(spark, rows, fewer, case(readers), readers)]}


def _measure(spark: Session, rows: int, rounds: Rounds, case: _Case, readers: int = 1) -> Row:
    with open_folder() as folder:
        catalog = make_catalog(case.left, STREAMS, True, readers)
        pipe = Pipe(spark, folder, catalog, QUERY, STREAMS, readers)
        begin = pipe.place()
        both = zip(STREAMS, (case.left, case.right), strict=True)
        pipe.push({name: make_elements(moving, 0, rows) for name, moving in both})
        samples: dict[str, list[Used]] = {name: [] for name in STRATEGIES}
        pairs, jvm = set[int](), Jvm(spark)
        works: Mapping[str, Callable[[], object]] = {
            name: lambda placement=placement: pairs.add(pipe.ask(begin, placement))  # type: ignore[misc]
            for name, placement in STRATEGIES.items()
        }
        for turn in range(-rounds[0], rounds[1]):
            for name in _ORDERS[turn % len(_ORDERS)]:
                used = jvm.measure(works[name])
                if turn >= 0:
                    samples[name].append(used)
    if len(pairs) > 1:
        raise WrongRowsError(f"the strategies give {sorted(pairs)} pairs")
    return _describe(case, samples, pairs.pop(), rows)


def _describe(case: _Case, samples: Mapping[str, Sequence[Used]], pairs: int, rows: int) -> Row:
    times, cpus = (_medians(samples, part) for part in ("seconds", "cpu"))
    row: Row = {
        "varied": case.varied,
        "pairs": pairs,
        "adaptive_to_better": _to_better(samples, "seconds"),
        "adaptive_cpu_to_better": _to_better(samples, "cpu"),
        "adaptive_median_to_better": round(times["adaptive"] / min(times[each] for each in _FIXED), 3),
        "probe_to_filter": round(times["probe_and_filter"] / times["filter_and_probe"], 3),
        "probe_cpu_to_filter": round(cpus["probe_and_filter"] / cpus["filter_and_probe"], 3),
    }
    for name, found in samples.items():
        row[f"{name}_us_per_tuple"] = round(times[name] / (2 * rows) * 1e6, 3)
        told = describe([each.seconds for each in found])
        row |= {f"{name}_{key}": told[key] for key in ("median_ms", "min_ms", "max_ms")}
        row[f"{name}_cpu_ms"] = round(cpus[name] * 1000, 1)
    return row


def _medians(samples: Mapping[str, Sequence[Used]], part: str) -> dict[str, float]:
    return {name: float(median(getattr(each, part) for each in found)) for name, found in samples.items()}


def _to_better(samples: Mapping[str, Sequence[Used]], part: str) -> float:
    """Round by round against the fixed one that was better in all: what the machine does besides falls on both."""
    medians = _medians(samples, part)
    better = min(_FIXED, key=lambda each: medians[each])
    pairs = zip(samples["adaptive"], samples[better], strict=True)
    return round(float(median(getattr(a, part) / max(getattr(b, part), 1e-9) for a, b in pairs)), 3)

"""Shared networks with privacy switches: the paper's cost model, and beside it what Spark does (seed 003, section 6).

On Spark: drawn networks over a batch of rows, in which every row passes every operator and meets one other in every join. Ways:
each query by itself; all as one network, with what nobody may have dropped behind it; and with switches, where a query that
lost its readers has no part in the network.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean, median
from time import perf_counter
from typing import TYPE_CHECKING

from sluicegate.bench import network_model
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.network_plans import draw_plain, write_plans
from sluicegate.bench.network_world import WINDOW, NetworkBench, find_open, make_logs
from sluicegate.bench.plot import MISSING, can_draw
from sluicegate.bench.sample import Row, time_in_turns
from sluicegate.graph.operators import Node, Source
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.shared import count_shared
from sluicegate.testing.drawn_networks import NetworkSize

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

NAME = "network"
SUMMARY = "shared operators with privacy switches: the paper's cost model, and Spark: overhead, savings, many queries"
SEED = 7
STREAMS = 3
PAIRS = 15
LONG_AGO = -1
NOTES = [
    "rows: of all streams of a batch together; each passes every operator of the drawings and meets one row in each join",
    "overhead: median of interleaved pairs, switches that are open against none; the interval is that of the median, by ranks",
    "open: longer ago than anything reaches back; just_opened: before the batch; opened_within: in its middle; all switches alike",
    "savings: against the shared network with all queries and filters behind the outputs; rows: taken in by operators, exact",
    "unshared: each query as the engine runs it alone, one after the other",
]


@dataclass(frozen=True, slots=True)
class _Size:
    rounds: int
    pairs: int
    degrees: tuple[float, ...]
    many: tuple[tuple[int, int], ...]
    """Queries and operators."""
    apart: int
    """Queries up to which many are also run without sharing."""
    model: bool


FULL = _Size(3, PAIRS, (0.2, 0.4, 0.6, 0.8), ((10, 50), (25, 125), (50, 250), (100, 500)), 25, True)
QUICK = _Size(1, 2, (0.5,), ((4, 20),), 4, False)


def run(*, json: bool, out: Path | None = None, quick: bool = False, rows: int | None = None) -> Row:
    from sluicegate.runtime.session import make_session

    del json
    return measure(make_session(), rows or (3_000 if quick else 1_000_000), QUICK if quick else FULL, out)


def measure(spark: Session, rows: int, size: _Size, out: Path | None = None) -> Row:
    """The whole of it on one session."""
    begun = perf_counter()
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as folder:
        logs = make_logs(Path(folder) / "whole", STREAMS, rows // STREAMS)
        small = make_logs(Path(folder) / "tenth", STREAMS, rows // STREAMS // 10)
        result: Row = {
            "bench": NAME,
            "notes": NOTES,
            "machine": describe_spark(spark),
            "rows": rows,
            "seed": SEED,
            "overhead": _overhead(spark, logs, size),
            "fig8": [*_fig8(spark, logs, size, 3, 15), *_fig8(spark, logs, size, 5, 25)],
            "fig9": [_fig9(spark, logs, size, degree) for degree in size.degrees],
            "behind_prefixes": _ways(spark, logs, size),
            "many": [_many(spark, small, size, *each) for each in size.many],
        }
    result["savings"] = _summary(result["fig9"])
    if size.model:
        result["model"] = network_model.run(json=True, out=None, quick=False)
    result["seconds"] = round(perf_counter() - begun, 1)
    if out is not None:
        keep_result(result, out)
        if can_draw():
            from sluicegate.bench.plot_network import draw_spark

            draw_spark(result, out)
        else:
            result["plots"] = MISSING
    return result


def _draw(
    spark: Session, logs: dict[str, SourceLog], queries: int, operators: int, degree: float
) -> NetworkBench:
    size = NetworkSize(STREAMS, queries, queries, operators, degree, True)
    drawing = draw_plain(Random(f"{SEED}:{queries}:{operators}:{degree}"), size)  # noqa: S311 — repeatable
    return NetworkBench(spark, logs, write_plans(drawing, WINDOW))


def _overhead(spark: Session, logs: dict[str, SourceLog], size: _Size) -> list[Row]:
    world = _draw(spark, logs, 3, 20, 0.5)
    queries = sorted(world.plans)
    middle = sum(each.rows for each in logs["S1"].batches()) // 2
    works = {
        "none": partial(world.run_shared, queries),
        "open": partial(world.run_shared, queries, LONG_AGO),
        "just_opened": partial(world.run_shared, queries, 0),
        "opened_within": partial(world.run_shared, queries, middle),
    }
    times = time_in_turns(works, size.pairs)
    found: list[Row] = []
    for name in ("open", "just_opened", "opened_within"):
        ratios = sorted(one / other for one, other in zip(times[name], times["none"], strict=True))
        low, high = _interval(ratios)
        found.append(
            {
                "switches": name,
                "pairs": len(ratios),
                "none_s": round(median(times["none"]), 3),
                "with_s": round(median(times[name]), 3),
                "overhead": round(median(ratios) - 1, 4),
                "low": round(low - 1, 4),
                "high": round(high - 1, 4),
            }
        )
    return found


def _interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Of the median, at 95 %: the ranks that a fair coin lies within."""
    count = len(ordered)
    half = 0.98 * count**0.5
    low = max(int((count - 1) / 2 - half + 0.5), 0)
    return ordered[low], ordered[count - 1 - low]


def _fig8(spark: Session, logs: dict[str, SourceLog], size: _Size, queries: int, operators: int) -> list[Row]:
    found: list[Row] = []
    for degree in size.degrees:
        world = _draw(spark, logs, queries, operators, degree)
        names = sorted(world.plans)
        network, _ = world.network()
        works = {
            "unshared": partial(world.run_apart, names),
            "shared": partial(world.run_shared, names),
            "switched": partial(world.run_shared, names, LONG_AGO),
        }
        times = {name: median(each) for name, each in time_in_turns(works, size.rounds, 1).items()}
        found.append(
            {
                "queries": queries,
                "operators": sum(not each.is_input for each in network.operators.values()),
                "common": count_shared(network),
                "sharing": degree,
                **{f"{name}_s": round(each, 3) for name, each in times.items()},
                "shared_of_unshared": round(times["shared"] / times["unshared"], 3),
                "switched_of_shared": round(times["switched"] / times["shared"], 3),
            }
        )
    return found


def _fig9(spark: Session, logs: dict[str, SourceLog], size: _Size, degree: float) -> Row:
    world = _draw(spark, logs, 3, 20, degree)
    names = sorted(world.plans)
    network, members = world.network()
    by_query = dict(zip(names, (each.name for each in members), strict=True))
    taken = world.count_taken()
    lost = [chosen for count in range(len(names)) for chosen in combinations(names, count)]
    works = {
        "+".join(each) or "full": partial(world.run_shared, [n for n in names if n not in each])
        for each in lost
    }
    times = {name: median(each) for name, each in time_in_turns(works, size.rounds, 1).items()}
    row: Row = {"sharing": degree, "operators": len(taken) - STREAMS, "common": count_shared(network)}
    for count in range(len(names)):
        chosen = [each for each in lost if len(each) == count]
        kept = [
            sum(
                taken[each.ident] for each in find_open(network, [by_query[n] for n in names if n not in out])
            )
            for out in chosen
        ]
        seconds = fmean(times["+".join(each) or "full"] for each in chosen)
        row |= {
            f"lost_{count}_s": round(seconds, 3),
            f"lost_{count}_rows": round(fmean(kept)),
            f"lost_{count}_time_saved": round(1 - seconds / times["full"], 3),
            f"lost_{count}_rows_saved": round(1 - fmean(kept) / sum(taken.values()), 3),
        }
    return row


def _summary(rows: object) -> Row:
    """Over the degrees of sharing, against the aims of 0.19 and 0.38."""
    found = [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else []
    return {
        f"lost_{count}_{kind}": round(fmean(float(each[f"lost_{count}_{kind}"]) for each in found), 3)
        for count in (1, 2)
        for kind in ("time_saved", "rows_saved")
    }


def _keep_none(node: Node, readers: int) -> bool:
    del node, readers
    return False


def _keep_all(node: Node, readers: int) -> bool:
    return readers > 1 and not isinstance(node, Source)


def _ways(spark: Session, logs: dict[str, SourceLog], size: _Size) -> list[Row]:
    """Behind a common prefix: results kept apart, or one plan in which each reader's branch makes them itself."""
    found: list[Row] = []
    for degree in size.degrees:
        world = _draw(spark, logs, 3, 20, degree)
        names, kept = sorted(world.plans), world.keep

        def work(keep: object) -> None:
            world.keep = keep  # type: ignore[assignment]  # noqa: B023 — called within the round
            world.run_shared(names)  # noqa: B023

        works = {
            "joins_kept": partial(work, kept),
            "all_kept": partial(work, _keep_all),
            "one_plan": partial(work, _keep_none),
        }
        times = {name: median(each) for name, each in time_in_turns(works, size.rounds, 1).items()}
        network, _ = world.network()
        found.append(
            {
                "sharing": degree,
                "common": count_shared(network),
                **{f"{n}_s": round(t, 3) for n, t in times.items()},
            }
        )
    return found


def _many(spark: Session, logs: dict[str, SourceLog], size: _Size, queries: int, operators: int) -> Row:
    """Of how planning grows; on a tenth of the rows."""
    world = _draw(spark, logs, queries, operators, 0.5)
    names = sorted(world.plans)
    begun = perf_counter()
    network, _ = world.network()
    planned = perf_counter() - begun
    world.run_shared(names)
    begun = perf_counter()
    came = world.run_shared(names)
    shared = perf_counter() - begun
    row: Row = {
        "queries": queries,
        "operators": sum(not each.is_input for each in network.operators.values()),
        "common": count_shared(network),
        "network_s": round(planned, 2),
        "shared_s": round(shared, 2),
        "rows": came,
    }
    few = names[: size.apart]
    begun = perf_counter()
    world.run_apart(few)
    apart = perf_counter() - begun
    return row | {
        "unshared_queries": len(few),
        "unshared_s": round(apart, 2),
        "unshared_s_per_query": round(apart / len(few), 3),
    }

"""Shared networks with privacy switches: the paper's cost model, and beside it what Spark does (seed 003, section 6).

On Spark: drawn networks over a batch of rows, in which every row passes every operator and meets one other in every join. Ways:
each query by itself; all as one network, with what nobody may have dropped behind it; and with switches, where a query that
lost its readers has no part in the network.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean, median
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from sluicegate.bench import network_model
from sluicegate.bench.budget import Budget
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.network_overhead import NONE, describe_overheads, time_pairs
from sluicegate.bench.network_plans import draw_plain, write_plans
from sluicegate.bench.network_world import WINDOW, NetworkBench, find_open, make_logs
from sluicegate.bench.plot import MISSING, can_draw
from sluicegate.bench.sample import Row, Work, time_in_turns
from sluicegate.graph.operators import Node, Source
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.evaluate_shared import Keep
from sluicegate.runtime.network.shared import count_shared
from sluicegate.testing.drawn_networks import NetworkSize

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

NAME = "network"
SUMMARY = "shared operators with privacy switches: the paper's cost model, and Spark: overhead, savings, many queries"
SEED = 7
STREAMS = 3
PAIRS, REPEATS = 15, 5
LONG_AGO = -1
SECONDS = 2000.0
"""How long all of it takes at most, about."""
FEWEST_NETWORKS = 200
_SHARES = {"overhead": 0.35, "fig9": 0.52, "fig8": 0.7, "behind_prefixes": 0.78, "many": 0.88}
"""Of the time, when each part is over at the latest; the rest is the cost model's."""
_T = TypeVar("_T")
NOTES = [
    "rows: of all streams of a batch together; each passes every operator of the drawings and meets one row in each join",
    "overhead: median of interleaved pairs, switches that are open against none; the interval is that of the median, by ranks; a measurement is the median of ten runs (of two, where they were opened of late), in an order of ways and in the reverse",
    "open: longer ago than anything reaches back; just_opened: before the batch; opened_within: in its middle; all switches alike; opened_apart: at its beginning, each some rows after another",
    "many: on a tenth of the rows; spark_planning_s is the time over next to no rows",
    "cut: what was left out, or done less often, to keep within budget_s; took_s: what each part took",
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
    model: bool


FULL = _Size(3, PAIRS, (0.2, 0.4, 0.6, 0.8), ((10, 50), (25, 125), (50, 250), (100, 500)), True)
QUICK = _Size(1, 2, (0.5,), ((4, 20),), False)


def run(
    *,
    json: bool,
    out: Path | None = None,
    quick: bool = False,
    rows: int | None = None,
    seconds: float | None = None,
) -> Row:
    """All of it, in about so many seconds; what did not fit in is named in `cut`."""
    from sluicegate.runtime.session import make_session

    del json
    size, usual = (QUICK, 3_000) if quick else (FULL, 1_000_000)
    return measure(make_session(), rows or usual, size, out, seconds or (60.0 if quick else SECONDS))


def measure(spark: Session, rows: int, size: _Size, out: Path | None = None, seconds: float = SECONDS) -> Row:
    """The whole of it on one session."""
    budget = Budget(seconds)
    result: Row = {
        "bench": NAME,
        "notes": NOTES,
        "machine": describe_spark(spark),
        "rows": rows,
        "seed": SEED,
        "budget_s": seconds,
    }
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as folder:
        result |= _measure_parts(spark, Path(folder), rows, size, budget)
    if size.model:
        result["model"] = _price_model(out, budget)
    result |= {"seconds": round(budget.spent, 1), "cut": budget.cut}
    if out is not None:
        keep_result(result, out)
        if can_draw():
            from sluicegate.bench.plot_network import draw_spark

            draw_spark(result, out)
        else:
            result["plots"] = MISSING
    return result


def _measure_parts(spark: Session, folder: Path, rows: int, size: _Size, budget: Budget) -> Row:
    """In the order of what must be shown; the seconds that each took are in `took_s`."""
    whole = make_logs(folder / "whole", STREAMS, rows // STREAMS)
    tenth = make_logs(folder / "tenth", STREAMS, max(rows // STREAMS // 10, 1))
    few = make_logs(folder / "few", STREAMS, 100)

    def each_degree(name: str, work: Callable[[float], Row]) -> list[Row]:
        fits = (one for one in size.degrees if budget.allows(f"{name}: sharing {one}", _SHARES[name]))
        return [work(degree) for degree in fits]

    parts: dict[str, Callable[[], list[Row]]] = {
        "overhead": lambda: _overhead(spark, whole, size, budget),
        "fig9": lambda: each_degree("fig9", partial(_fig9, spark, whole, size)),
        "fig8": lambda: [
            row
            for queries, operators in ((3, 15), (5, 25))
            for row in each_degree("fig8", partial(_fig8, spark, whole, size, queries, operators))
        ],
        "behind_prefixes": lambda: each_degree("behind_prefixes", partial(_ways, spark, whole, size)),
        "many": lambda: [
            _many(spark, tenth, few, *each, budget)
            for each in size.many
            if budget.allows(f"many: {each[0]} queries", _SHARES["many"])
        ],
    }
    found: Row = {}
    took: dict[str, float] = {}
    for name, part in parts.items():
        before = budget.spent
        found[name] = part()
        took[name] = round(budget.spent - before, 1)
    return found | {"savings": _summary(found["fig9"]), "took_s": took}


def _price_model(out: Path | None, budget: Budget) -> Row:
    """With as many networks as there is time for; kept beside the others only where these are all."""
    networks = max(network_model.find_affordable(budget.left), FEWEST_NETWORKS)
    if networks < network_model.FULL.networks:
        budget.cut.append(f"model: {networks} of {network_model.FULL.networks} networks for each setting")
        return network_model.run(json=True, out=None, quick=False, networks=networks)
    return network_model.run(json=True, out=out, quick=False)


def _draw(
    spark: Session, logs: dict[str, SourceLog], queries: int, operators: int, degree: float
) -> NetworkBench:
    size = NetworkSize(STREAMS, queries, queries, operators, degree, True)
    drawing = draw_plain(Random(f"{SEED}:{queries}:{operators}:{degree}"), size)  # noqa: S311 — repeatable
    return NetworkBench(spark, logs, write_plans(drawing, WINDOW))


def _overhead(spark: Session, logs: dict[str, SourceLog], size: _Size, budget: Budget) -> list[Row]:
    world = _draw(spark, logs, 3, 20, 0.5)
    queries = sorted(world.plans)
    rows = sum(each.rows for each in logs["S1"].batches())
    opened = {
        "open": dict.fromkeys(queries, LONG_AGO),
        "just_opened": dict.fromkeys(queries, 0),
        "opened_within": dict.fromkeys(queries, rows // 2),
        # far enough from each other for no two to have the same bounds, near enough for nearly all rows to be read
        "opened_apart": {query: at for at, query in enumerate(queries, 1)},
    }
    works: dict[str, Work] = {NONE: partial(world.run_shared, queries)}
    ways: dict[str, Work] = {name: partial(world.run_shared, queries, each) for name, each in opened.items()}
    usual, share = works | {"open": ways.pop("open")}, _SHARES["overhead"]
    found = describe_overheads(time_pairs(spark, usual, size.pairs, budget, share * 0.6, REPEATS))
    return found + describe_overheads(time_pairs(spark, works | ways, size.pairs, budget, share))


def _fig8(
    spark: Session, logs: dict[str, SourceLog], size: _Size, queries: int, operators: int, degree: float
) -> Row:
    world = _draw(spark, logs, queries, operators, degree)
    names = sorted(world.plans)
    network, _ = world.network()
    works: dict[str, Work] = {
        "unshared": partial(world.run_apart, names),
        "shared": partial(world.run_shared, names),
        "switched": partial(world.run_shared, names, dict.fromkeys(names, LONG_AGO)),
    }
    times = {name: median(each) for name, each in time_in_turns(works, size.rounds, 1).items()}
    return {
        "queries": queries,
        "operators": sum(not each.is_input for each in network.operators.values()),
        "common": count_shared(network),
        "sharing": degree,
        **{f"{name}_s": round(each, 3) for name, each in times.items()},
        "shared_of_unshared": round(times["shared"] / times["unshared"], 3),
        "switched_of_shared": round(times["switched"] / times["shared"], 3),
    }


def _fig9(spark: Session, logs: dict[str, SourceLog], size: _Size, degree: float) -> Row:
    world = _draw(spark, logs, 3, 20, degree)
    names = sorted(world.plans)
    network, members = world.network()
    by_query = dict(zip(names, (each.name for each in members), strict=True))
    taken = world.count_taken()
    lost = [chosen for count in range(len(names)) for chosen in combinations(names, count)]
    works: dict[str, Work] = {
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
        if found
    }


def _keep_none(node: Node, readers: int) -> bool:
    del node, readers
    return False


def _keep_all(node: Node, readers: int) -> bool:
    return readers > 1 and not isinstance(node, Source)


def _ways(spark: Session, logs: dict[str, SourceLog], size: _Size, degree: float) -> Row:
    """Behind a common prefix: results kept apart, or one plan in which each reader's branch makes them itself."""
    world = _draw(spark, logs, 3, 20, degree)
    names, kept = sorted(world.plans), world.keep

    def work(keep: Keep) -> None:
        world.keep = keep
        world.run_shared(names)

    works: dict[str, Work] = {
        "joins_kept": partial(work, kept),
        "all_kept": partial(work, _keep_all),
        "one_plan": partial(work, _keep_none),
    }
    times = {name: median(each) for name, each in time_in_turns(works, size.rounds, 1).items()}
    network, _ = world.network()
    return {
        "sharing": degree,
        "common": count_shared(network),
        **{f"{name}_s": round(each, 3) for name, each in times.items()},
    }


def _many(
    spark: Session,
    logs: dict[str, SourceLog],
    few: dict[str, SourceLog],
    queries: int,
    operators: int,
    budget: Budget,
) -> Row:
    """How planning grows, on a tenth of the rows; over next to none, what Spark takes to plan alone."""
    world = _draw(spark, logs, queries, operators, 0.5)
    names = sorted(world.plans)
    network, planned = _time(world.network)
    world.run_shared(names)
    came, shared = _time(partial(world.run_shared, names))
    empty = NetworkBench(spark, few, world.plans, networks=world.networks)
    empty.run_shared(names)
    _, spark_planned = _time(partial(empty.run_shared, names))
    row: Row = {
        "queries": queries,
        "operators": sum(not each.is_input for each in network[0].operators.values()),
        "common": count_shared(network[0]),
        "plans": world.count_plans(),
        "network_s": round(planned, 2),
        "spark_planning_s": round(spark_planned, 2),
        "shared_s": round(shared, 2),
        "rows": came,
    }
    return row | _run_apart(world, names, budget)


def _time(work: Callable[[], _T]) -> tuple[_T, float]:
    begun = perf_counter()
    return work(), perf_counter() - begun


def _run_apart(world: NetworkBench, names: Sequence[str], budget: Budget) -> Row:
    """One query after the other, as far as the time goes."""
    done, begun = 0, perf_counter()
    for name in names:
        if done and budget.is_over(_SHARES["many"]):
            budget.cut.append(f"many: {len(names) - done} of {len(names)} queries unshared")
            break
        world.run_apart([name])
        done += 1
    taken = perf_counter() - begun
    return {
        "unshared_queries": done,
        "unshared_s": round(taken, 2),
        "unshared_s_per_query": round(taken / done, 3),
    }

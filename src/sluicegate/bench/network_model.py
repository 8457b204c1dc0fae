"""What sharing and switches cost and save in the cost model of seed 003, section 6: no engine, only its constants.

An operator takes its time for each of 1,000 tuples, whatever was filtered before (the paper's upper bound); a switch takes its
time for each punctuation, of which one comes for every user with every 100 tuples. The paper does not say how many users
there are: the overhead grows with them, so that it is given for several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import log2
from pathlib import Path
from random import Random
from statistics import fmean, median
from time import perf_counter

from sluicegate.bench.keep import keep_result
from sluicegate.bench.network_plans import draw_plain, write_plans
from sluicegate.bench.plot import MISSING, can_draw
from sluicegate.bench.sample import Row
from sluicegate.rewrite.sharing.model import Network
from sluicegate.rewrite.sharing.optimize import add_query, build_network, normalize, remove_query
from sluicegate.testing.drawn_networks import Drawing, NetworkSize, draw_network

NAME = "network_model"
SUMMARY = "shared operators with privacy switches in the paper's cost model: overhead, and savings as queries lose access"
SEED = 7
TUPLES, SP_EVERY = 1000, 100
COST_MS: Mapping[str, float] = {"select": 0.1, "project": 0.1, "join": 0.3}
SWITCH_MS = 0.1
DEGREES = (0.2, 0.4, 0.6, 0.8)
USERS = (3, 5, 10, 20, 40)
NOTES = [
    "milliseconds for 1,000 tuples of each input; every operator is taken to see them all, which is the paper's upper bound",
    "no sharing: each user runs a network of its own for its query, as in the paper's base case",
    "switches: Algorithm 2 as printed; punctuations: one for each user with every 100 tuples, read by every switch (all) or only by those of its query (matching)",
    "savings: time with switches and so many queries without readers, against sharing with filters behind the outputs; all combinations of queries",
    "the number of users is not in the paper's text; neither are the degrees of sharing of its figures, nor whether a query reads all streams: here it does, and fig9_some_streams has it otherwise",
]


@dataclass(frozen=True, slots=True)
class Costs:
    """One network: milliseconds, and how many operators and switches it has."""

    operators: int
    switches: int
    unshared: float
    shared: float
    all_sps: float
    matching_sps: float
    lost: Mapping[tuple[int, ...], float]
    """The operators' time by the queries that lost all readers."""


def price(drawing: Drawing) -> Costs:
    """The network's times for the three ways, and for every combination of access loss."""
    parts = [drawing.find_part(query) for query in range(len(drawing.roots))]
    times = [COST_MS[each.kind] * TUPLES for each in drawing.operators]
    switches = place_drawn(drawing, parts)
    rounds = TUPLES // SP_EVERY
    asked = [drawing.users.count(query) for query in range(len(parts))]
    lost = {
        chosen: _time_left(drawing, parts, times, chosen)
        for count in range(len(parts) + 1)
        for chosen in combinations(range(len(parts)), count)
    }
    return Costs(
        len(drawing.operators),
        len(switches),
        sum(times[at] for query in drawing.users for at in parts[query]),
        sum(times),
        len(switches) * rounds * len(drawing.users) * SWITCH_MS,
        sum(asked[query] for query in switches) * rounds * SWITCH_MS,
        lost,
    )


def place_drawn(drawing: Drawing, parts: Sequence[frozenset[int]]) -> list[int]:
    """Algorithm 2 on a drawing: the query of each switch."""
    found = []
    for query, own in enumerate(parts):
        common = {at for at in own if sum(at in each for each in parts) > 1}
        root = drawing.roots[query]
        found += [query] * (2 if root in common else 1)
        for at in own - common:
            found += [query for below in drawing.operators[at].inputs if below < 0 or below in common]
    return found


def _time_left(
    drawing: Drawing, parts: Sequence[frozenset[int]], times: Sequence[float], lost: tuple[int, ...]
) -> float:
    """Algorithm 2's switches stop what serves one lost query alone; a common prefix goes on whoever is lost."""
    stopped: set[int] = set()
    for query in lost:
        stopped |= {at for at in parts[query] if sum(at in each for each in parts) == 1}
    return sum(time for at, time in enumerate(times) if at not in stopped)


@dataclass(frozen=True, slots=True)
class Size:
    networks: int
    degrees: tuple[float, ...]
    planned: tuple[tuple[int, int], ...]
    """Queries and operators of networks that are really built."""


FULL = Size(10_000, DEGREES, ((3, 15), (10, 50), (30, 150), (100, 500)))
QUICK = Size(30, (0.2, 0.8), ((3, 15),))
FIG8 = {"fig8a": (3, 15), "fig8b": (5, 25)}
FIG9 = (3, 20)


def run(json: bool, out: Path | None, quick: bool, networks: int | None = None) -> dict[str, object]:
    """Every network priced once for each setting and degree; `networks`: so many, where not the usual number."""
    size = QUICK if quick else FULL
    size = size if networks is None else replace(size, networks=networks)
    result: dict[str, object] = {
        "bench": NAME,
        "quick": quick,
        "seed": SEED,
        "networks": size.networks,
        "notes": NOTES,
    }
    figures: dict[str, list[Row]] = {
        name: [
            row for degree in size.degrees for row in _overheads(queries, operators, degree, size.networks)
        ]
        for name, (queries, operators) in FIG8.items()
    }
    figures["fig9"] = [_savings(degree, size.networks, True) for degree in size.degrees]
    figures["fig9_some_streams"] = [_savings(degree, size.networks, False) for degree in size.degrees]
    result |= figures
    result["papers"] = _compare(figures)
    result["planning"] = [_plan(queries, operators) for queries, operators in size.planned]
    if out is not None:
        keep_result(result, out)
        result["figures"] = _draw(figures, out)
    return result


def find_affordable(seconds: float) -> int:
    """How many networks for each setting can be priced in so many seconds, at most the usual number."""
    settings = (len(FIG8) * len(USERS) + 2) * len(DEGREES)
    began, tried = perf_counter(), 100
    for users in (USERS[0], USERS[-1]):
        _price_many(*FIG9[:1], users, FIG9[1], DEGREES[1], tried)
    each = (perf_counter() - began) / (2 * tried)
    return min(FULL.networks, int(seconds / (each * settings)))


def _draw(figures: Mapping[str, Sequence[Row]], out: Path) -> object:
    if not can_draw():
        return MISSING
    from sluicegate.bench.plot_network import draw_model

    return [each.name for each in draw_model(figures, out)]


def _price_many(
    queries: int, users: int, operators: int, degree: float, count: int, read_all: bool = True
) -> list[Costs]:
    size = NetworkSize(3, queries, users, operators, degree, read_all)
    rng = Random(f"{SEED}:{size}")  # noqa: S311 (a generator of workloads)
    return [price(draw_network(rng, size)) for _ in range(count)]


def _overheads(queries: int, operators: int, degree: float, count: int) -> list[Row]:
    rows: list[Row] = []
    for users in USERS:
        found = _price_many(queries, users, operators, degree, count)
        unshared, shared = fmean(each.unshared for each in found), fmean(each.shared for each in found)
        with_all = shared + fmean(each.all_sps for each in found)
        matching = shared + fmean(each.matching_sps for each in found)
        rows.append(
            {
                "sharing": degree,
                "users": users,
                "operators": round(fmean(each.operators for each in found), 2),
                "switches": round(fmean(each.switches for each in found), 2),
                "unshared_ms": round(unshared, 1),
                "shared_ms": round(shared, 1),
                "switched_ms": round(with_all, 1),
                "unshared_log2": round(log2(unshared), 3),
                "shared_log2": round(log2(shared), 3),
                "switched_log2": round(log2(with_all), 3),
                "saved_by_sharing": round(1 - shared / unshared, 4),
                "overhead_all": round(with_all / shared - 1, 4),
                "overhead_matching": round(matching / shared - 1, 4),
            }
        )
    return rows


def _savings(degree: float, count: int, read_all: bool) -> Row:
    """With three users, one for each query on average; their punctuations are counted in."""
    queries, operators = FIG9
    found = _price_many(queries, queries, operators, degree, count, read_all)
    shared = fmean(each.shared for each in found)
    row: Row = {
        "sharing": degree,
        "operators": round(fmean(each.operators for each in found), 2),
        "switches": round(fmean(each.switches for each in found), 2),
        "shared_ms": round(shared, 1),
    }
    for lost in range(queries + 1):
        times = [
            time + each.all_sps for each in found for chosen, time in each.lost.items() if len(chosen) == lost
        ]
        row[f"lost_{lost}_ms"] = round(fmean(times), 1)
        row[f"saved_{lost}"] = round(1 - fmean(times) / shared, 4)
    return row


def _plan(queries: int, operators: int) -> Row:
    """How long it takes to make a network at once, and query by query."""
    rng = Random(f"{SEED}:{queries}")  # noqa: S311 (a generator of workloads)
    drawing = draw_plain(rng, NetworkSize(3, queries, queries, operators, 0.4))
    began = perf_counter()
    plans = {query: normalize(plan) for query, plan in write_plans(drawing, 10_000_000).items()}
    normal = perf_counter()
    whole = build_network(plans)
    built = perf_counter()
    network, adding, removing = Network(), [], []
    for query, plan in plans.items():
        before = perf_counter()
        more = add_query(network, query, plan)
        between = perf_counter()
        remove_query(more, query)
        adding.append(between - before)
        removing.append(perf_counter() - between)
        network = more
    apart = sum(len(build_network({query: plan}).operators) for query, plan in plans.items())
    return {
        "queries": queries,
        "drawn": len(drawing.operators),
        "operators": len(whole.operators),
        "operators_apart": apart,
        "normalize_ms": round((normal - began) * 1000, 1),
        "build_ms": round((built - normal) * 1000, 1),
        "add_median_ms": round(median(adding) * 1000, 2),
        "add_most_ms": round(max(adding) * 1000, 2),
        "remove_median_ms": round(median(removing) * 1000, 3),
    }


def _compare(figures: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The numbers of the paper's text beside ours, as means over the degrees."""
    eight = [row for name in FIG8 for row in figures[name]]
    rows: list[Row] = []
    for users in USERS:
        own = [row for row in eight if row["users"] == users]
        for what, key, paper in (
            ("overhead of switches, all punctuations", "overhead_all", 0.005),
            ("overhead of switches, matching punctuations", "overhead_matching", 0.005),
            ("saved by sharing", "saved_by_sharing", 0.92),
        ):
            rows.append({"what": what, "users": users, "paper": paper, "here": _mean(own, key)})
    for lost, paper in ((1, 0.19), (2, 0.38)):
        for name, note in (("fig9", ""), ("fig9_some_streams", ", each reading some of the streams")):
            what = f"saved with {lost} of 3 queries lost{note}"
            here = _mean(figures[name], f"saved_{lost}")
            rows.append({"what": what, "users": 3, "paper": paper, "here": here})
    rows.append({"what": "switches", "users": 3, "paper": 11.0, "here": _mean(figures["fig9"], "switches")})
    return rows


def _mean(rows: Sequence[Row], key: str) -> float:
    values = [value for row in rows if isinstance(value := row[key], float)]
    return round(fmean(values), 4)

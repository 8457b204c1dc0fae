"""Query rewriting against post-filtering, as ASSIST's Table 3 has it (seed 004, 7.1): tuples that flow, and time.

The query joins positions with voyages; the policy lets a trader see boats in the port that sail for Los Angeles with room for more
than ten containers. Rewritten, the query is given that. Filtered afterwards, it runs over everything and its result, which has
to carry what the policy asks about, is filtered then. Both run on Spark, round by round, and let the same rows through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median, stdev
from time import perf_counter
from typing import TYPE_CHECKING

from sluicegate.api import Gate
from sluicegate.bench.crowd import open_session
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.plot import MISSING, can_draw
from sluicegate.bench.plot_assist import draw_table3
from sluicegate.bench.rivals import DifferentRowsError
from sluicegate.bench.sample import Row, describe
from sluicegate.graph.operators import walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.load import read_catalog
from sluicegate.runtime.batch import plan_frame
from sluicegate.runtime.frames import make_frame
from sluicegate.testing.logistics import PLACE, PORTS, Logistics, make_rounds

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.api import Authorized
    from sluicegate.runtime.frames import Frame, Session

NAME = "assist"
SUMMARY = "query rewriting against post-filtering over ships and voyages, after ASSIST's Table 3"
SEED = 4
ROOM = 10
POLICY = f"next_leg = '{PORTS[0]}' AND free_load > {ROOM} AND distance_nm(Long, Lat, port(self.Port)) <= 0"
CATALOG = f"""
CREATE STREAM AIS (SID BIGINT, Name STRING, Type STRING, Long DOUBLE, Lat DOUBLE, T TIMESTAMP) TIMESTAMP BY T;
CREATE STREAM Route (SID BIGINT, next_leg STRING, free_load INT, ETA TIMESTAMP);
CREATE ROLE Trader; CREATE ROLE Everything;
CREATE USER trader ROLES (Trader) SET (Port = 'SG');
CREATE USER filter ROLES (Everything) SET (Port = 'SG');
SET FACT port('SG') = POLYGON '103.6 1.15, 104.1 1.15, 104.1 1.35, 103.6 1.35';
CREATE GRANT room READ (AIS.SID, Long, Lat, Route.SID, next_leg, free_load) ON AIS, Route
  WHERE AIS.SID = Route.SID AND {POLICY} TO Trader;
CREATE GRANT positions READ (*) ON AIS TO Everything;
CREATE GRANT voyages READ (*) ON Route TO Everything;
"""
QUERY = "SELECT AIS.SID, Long, Lat, next_leg, free_load FROM AIS JOIN Route ON AIS.SID = Route.SID"
PAPER = {
    "rewriting": {"tuples": 1376.2, "deviation": 561.3},
    "post-filtering": {"tuples": 15864.1, "deviation": 53.3},
}
NOTES = [
    "destination and cargo are the policy's conditions: the paper explains its ratio by the tenth of the boats that sail to the right port",
    "the paper does not say how many boats there are: 294 that report 60 times give about as many pairs, 15,876, as its original query gives tuples",
    "tuples: what comes out of the query, for post-filtering what the filter behind it has to look at; mean and standard deviation of the runs",
    "flowing: tuples that leave each operator, sources included, summed; of the first run",
    "a run is 30 minutes of the feeds in six rounds; a round's voyages are those in force at its end, under their key",
    "time: all rounds of a run, rows collected as Arrow and, for post-filtering, filtered; both ways take turns, after a run that does not count; each round's plan is executed once before, as a standing query is planned and compiled once, and what that first time took is told apart",
]


@dataclass(frozen=True, slots=True)
class Size:
    """Boats of the AIS feed, in each of the sizes; runs with feeds of their own, and those before that do not count."""

    boats: tuple[int, ...]
    rounds: int
    reports: int
    runs: int
    warm_up: int


FULL = Size((294, 2_940), 6, 10, 6, 1)
QUICK = Size((40,), 1, 2, 1, 0)


def run(
    json: bool, out: Path | None, quick: bool, rows: int | None = None, spark: Session | None = None
) -> dict[str, object]:
    """Measure, in a session of its own unless one is given; `rows` are the boats."""
    size = QUICK if quick else FULL
    size = size if rows is None else replace(size, boats=(rows,))
    begun = perf_counter()
    with open_session(spark) as session:
        result: dict[str, object] = {
            "bench": NAME,
            "quick": quick,
            "environment": describe_spark(session),
            "seed": SEED,
            "paper": PAPER,
            "notes": NOTES,
            "table3": [row for boats in size.boats for row in _Bench(session, size, boats).measure()],
        }
    result["duration_s"] = round(perf_counter() - begun)
    if out is not None:
        keep_result(result, out)
        table = result["table3"]
        drawn = draw_table3(table, out) if can_draw() and isinstance(table, list) else None
        result["plots"] = MISSING if drawn is None else [path.name for path in drawn]
    return result


@dataclass
class _Taken:
    """What one way took and gave in a run."""

    seconds: float = 0.0
    first: float = 0.0
    tuples: int = 0
    kept: list[pa.Table] = field(default_factory=list)


@dataclass
class _Bench:
    """Both ways over the same feeds, in turns."""

    spark: Session
    size: Size
    boats: int

    def __post_init__(self) -> None:
        gate = Gate(read_catalog(CATALOG))
        users = {"rewriting": "trader", "post-filtering": "filter"}
        self._ways = {name: gate.authorize(user, QUERY) for name, user in users.items()}

    def measure(self) -> list[Row]:
        found: dict[str, list[_Taken]] = {name: [] for name in self._ways}
        for number in range(-self.size.warm_up, self.size.runs):
            feeds = Logistics(self.boats, self.size.rounds, self.size.reports, seed=SEED + max(number, 0))
            taken = self._run(feeds)
            for name in found if number >= 0 else ():
                found[name].append(taken[name])
        flow = self._count_flow()
        rows = [self._describe(name, found[name], flow[name]) for name in self._ways]
        early, late = found["rewriting"], found["post-filtering"]
        ratios = {
            "tuples_ratio": round(_mean_tuples(late) / max(1.0, _mean_tuples(early)), 2),
            "flowing_ratio": round(flow["post-filtering"] / flow["rewriting"], 2),
            "time_ratio": round(median(b.seconds / a.seconds for a, b in zip(early, late, strict=True)), 2),
            "first_time_ratio": round(median(b.first / a.first for a, b in zip(early, late, strict=True)), 2),
        }
        return [row | (ratios if row["way"] == "rewriting" else {}) for row in rows]

    def _describe(self, way: str, taken: Sequence[_Taken], flow: int) -> Row:
        tuples = [each.tuples for each in taken]
        return {
            "boats": self.boats,
            "way": way,
            "tuples": round(_mean_tuples(taken), 1),
            "deviation": round(stdev(tuples), 1) if len(tuples) > 1 else 0.0,
            "flowing": flow,
            **describe([each.seconds for each in taken]),
            "first_median_ms": round(median(each.first for each in taken) * 1000, 3),
        }

    def _run(self, feeds: Logistics) -> dict[str, _Taken]:
        """Each round in turns; the rows let through are the same, or it is no comparison."""
        found = {name: _Taken() for name in self._ways}
        for positions, voyages in make_rounds(feeds):
            frames = self._frames(positions, voyages)
            for name, allowed in self._ways.items():
                self._take(found[name], allowed, frames, afterwards=name == "post-filtering")
            for frame in frames.values():
                frame.unpersist()
        _check_same(found["rewriting"].kept, found["post-filtering"].kept)
        return found

    def _take(
        self, taken: _Taken, allowed: Authorized, frames: Mapping[str, Frame], *, afterwards: bool
    ) -> None:
        start = perf_counter()
        frame = self._open(allowed, frames)
        frame.toArrow()
        taken.first += perf_counter() - start
        start = perf_counter()
        table = frame.toArrow()
        taken.tuples += table.num_rows
        taken.kept.append(_filter_afterwards(table) if afterwards else table)
        taken.seconds += perf_counter() - start

    def _frames(self, positions: pa.Table, voyages: pa.Table) -> dict[str, Frame]:
        frames = {"AIS": make_frame(self.spark, positions), "Route": make_frame(self.spark, voyages)}
        for frame in frames.values():
            # both ways read what is already there
            frame.cache().count()
        return frames

    def _open(self, allowed: Authorized, frames: Mapping[str, Frame]) -> Frame:
        if allowed.plan is None:
            raise DifferentRowsError("the query is not authorized")
        return plan_frame(self.spark, allowed.plan, frames, allowed.environment, streams=allowed.streams)

    def _count_flow(self) -> dict[str, int]:
        """Rows that leave each operator, in every round of the first run."""
        feeds = Logistics(self.boats, self.size.rounds, self.size.reports, seed=SEED)
        found = dict.fromkeys(self._ways, 0)
        for positions, voyages in make_rounds(feeds):
            frames = self._frames(positions, voyages)
            for name, allowed in self._ways.items():
                for node in walk(allowed.plan.root) if allowed.plan else ():
                    part = replace(allowed, plan=AuthorizedPlan(node, ()))
                    found[name] += self._open(part, frames).count()
        return found


def _mean_tuples(taken: Sequence[_Taken]) -> float:
    return fmean(each.tuples for each in taken)


def _filter_afterwards(table: pa.Table) -> pa.Table:
    """The policy behind the query, column by column: what the port's polygon holds is a box."""
    import pyarrow.compute as pc

    west, east, south, north = PLACE
    kept = pc.and_(pc.equal(table["next_leg"], PORTS[0]), pc.greater(table["free_load"], ROOM))
    for name, low, high in (("Long", west, east), ("Lat", south, north)):
        kept = pc.and_(kept, pc.and_(pc.greater_equal(table[name], low), pc.less_equal(table[name], high)))
    return table.filter(kept)


def _check_same(one: Sequence[pa.Table], other: Sequence[pa.Table]) -> None:
    import pyarrow as pa

    both = []
    for tables in (one, other):
        whole = pa.concat_tables(tables)
        both.append(whole.sort_by([(name, "ascending") for name in whole.column_names]).combine_chunks())
    if not both[0].num_rows or not both[0].equals(both[1]):
        raise DifferentRowsError(f"{both[0].num_rows} rows rewritten, {both[1].num_rows} filtered afterwards")

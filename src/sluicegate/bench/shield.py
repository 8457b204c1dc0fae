"""What policies that travel with the data cost, and where they are best judged: after seed 002, section 6, Figs 13–16."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from sluicegate.bench.crowd import open_folder, open_session
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.plot import MISSING, can_draw
from sluicegate.bench.plot_shield import draw_shield
from sluicegate.bench.sample import Row, describe
from sluicegate.bench.shield_joins import measure_joins
from sluicegate.bench.shield_places import measure_places
from sluicegate.bench.shield_world import Parts, Pipe, WrongRowsError, make_catalog, time_reading
from sluicegate.testing.punctuated import Moving, make_elements, make_reports, passes

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.frames import Session

NAME = "shield"
SUMMARY = "streams with policies of their own against the same without; placements and joins of shields"
SEED = 7
AIMS: Mapping[int, float] = {10: 0.5, 100: 0.8}
"""At least so much of the throughput without policies, by reports under one punctuation."""
LEAST_ADAPTIVE = 1.1
"""At most so many times the time of the better fixed strategy."""
STREAM = "M"
QUERY = "SELECT obj, speed, x, y FROM M WHERE speed > {least} START AT EARLIEST"
_FAST, _FASTER = 60, 90
NOTES = [
    "a sample is one batch of reports, without files or sockets before: into the log on disk (policies read, tuples resolved, memory written) and a tick of one query over it, until its rows are in the driver; the gate's commit is not in it",
    "throughput: time without policies over time with them, medians of as many batches, all pipes in turns; the query over the stream without policies asks for faster objects, so that both give about as many rows",
    "every object's policy is one punctuation with a constant key and one role; half of the policies name the reader's; a first batch, which does not count, brings a policy for each object",
    "cpu_ratio: the same of processor time, Spark's process and this one: what a busy machine changes less",
    "read_ms: reading the texts of the punctuations alone, timed apart; resolve_ms: what is left of the feed beyond that of the stream without policies; verdict_ms: of the query, likewise (where it is negative, fewer rows were read on)",
    "placements and joins: the tick alone, on a batch that is in the log; down: shields above their sources (filter and probe), up: above selections, over: above the join (probe and filter)",
    "joins: the three ways take turns in every order; adaptive_to_better: the median over rounds of the adaptive one's time over that of the fixed one with the lesser median, in the same round",
]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured; `rows` are the reports in a batch."""

    rows: int
    objects: int
    ratios: tuple[int, ...]
    roles: tuple[int, ...]
    rounds: int
    place_roles: tuple[int, ...]
    place_rounds: int
    join_rows: int
    join_rounds: int
    similarities: tuple[float, ...]
    selectivities: tuple[float, ...]
    readers: int
    warm_up: int = 1
    """Turns that do not count."""


FULL = Size(
    rows=1_000_000,
    objects=110_000,
    ratios=(1, 10, 100),
    roles=(1, 10, 100, 500),
    rounds=5,
    place_roles=(10, 100),
    place_rounds=5,
    join_rows=250_000,
    join_rounds=12,
    similarities=(1.0, 0.75, 0.5, 0.25),
    selectivities=(0.1, 0.5, 1.0),
    readers=16,
)
QUICK = Size(600, 100, (10,), (5,), 1, (5,), 1, 400, 1, (0.5,), (0.5,), 9, warm_up=0)


def run(
    json: bool, out: Path | None, quick: bool, rows: int | None = None, spark: Session | None = None
) -> dict[str, object]:
    """Measure, in a session of its own unless one is given; `rows` are the reports in a batch."""
    size = QUICK if quick else FULL
    if rows is not None:
        size = replace(size, rows=rows, join_rows=rows, objects=min(size.objects, rows))
    start = perf_counter()
    with open_session(spark) as session:
        result: dict[str, object] = {
            "bench": NAME,
            "quick": quick,
            "environment": describe_spark(session),
            "seed": SEED,
            "rows": {"batch": size.rows, "joins": size.join_rows, "objects": size.objects},
            "notes": NOTES,
            "fig13a": _measure_pipes(
                session, size, "ratio", {each: _moving(size, ratio=each) for each in size.ratios}
            ),
            "fig13b": _measure_pipes(
                session,
                replace(size, rounds=min(size.rounds, 3)),
                "roles",
                {each: _moving(size, ratio=100, roles=each) for each in size.roles},
            ),
            **measure_places(
                session, size.rows, (size.warm_up, size.place_rounds), _moving(size), size.place_roles
            ),
            **measure_joins(
                session,
                size.join_rows,
                (2 * size.warm_up, size.join_rounds),
                size.ratios,
                size.similarities,
                size.selectivities,
                size.readers,
            ),
        }
    result["seconds"] = round(perf_counter() - start)
    result["aims"] = _judge(result)
    if out is not None:
        keep_result(result, out)
        result["plots"] = [path.name for path in draw_shield(result, out)] if can_draw() else MISSING
    return result


def _moving(size: Size, ratio: int = 10, roles: int = 1) -> Moving:
    return Moving(objects=size.objects, ratio=ratio, roles=roles, seed=SEED)


def _measure_pipes(spark: Session, size: Size, what: str, moving: Mapping[int, Moving]) -> list[Row]:
    """One pipe without policies and one for each kind of them take turns, a batch each."""
    samples: dict[int, list[Parts]] = {each: [] for each in (0, *moving)}
    reading: dict[int, float] = {}
    plain = next(iter(moving.values()))
    with open_folder() as folder:
        pipes = {each: _open(spark, folder / str(each), kind, True) for each, kind in moving.items()}
        pipes[0] = _open(spark, folder / "plain", plain, False)
        makers: dict[int, Callable[[int, int], pa.Table]] = {
            each: lambda first, count, kind=kind: make_elements(kind, first, count)  # type: ignore[misc]
            for each, kind in moving.items()
        }
        makers[0] = lambda first, count: make_reports(plain, first, count)
        for each, pipe in pipes.items():
            pipe.push({STREAM: makers[each](0, size.objects)})
        for number in range(-size.warm_up, size.rounds):
            first, count = size.objects + (number + size.warm_up) * size.rows, size.rows
            for each, pipe in sorted(pipes.items()):
                table = makers[each](first, count)
                taken = pipe.take({STREAM: table})
                if each:
                    _check(moving[each], table, first, count, taken.rows)
                if number >= 0:
                    samples[each].append(taken)
                if each and number == size.rounds - 1:
                    reading[each] = time_reading(pipe, STREAM, table)
    return [_compare(what, each, samples[each], samples[0], reading[each], size.rows) for each in moving]


def _open(spark: Session, folder: Path, moving: Moving, punctuated: bool) -> Pipe:
    catalog = make_catalog(moving, (STREAM,), punctuated)
    return Pipe(spark, folder, catalog, QUERY.format(least=_FAST if punctuated else _FASTER), (STREAM,))


def _check(moving: Moving, table: pa.Table, first: int, count: int, rows: int) -> None:
    """Nothing is measured that gives other rows than the policies allow."""
    speed = table["speed"].drop_null().to_numpy()
    expected = int((passes(moving, first, count) & (speed > _FAST)).sum())
    if rows != expected:
        raise WrongRowsError(f"{rows} rows, where the policies allow {expected}")


def _compare(
    what: str, each: int, ours: Sequence[Parts], plain: Sequence[Parts], reading: float, rows: int
) -> Row:
    turns = sorted(a.seconds / b.seconds for a, b in zip(plain, ours, strict=True))
    feed, query = (median(getattr(a, part) for a in ours) for part in ("feed", "query"))
    plain_feed, plain_query = (median(getattr(a, part) for a in plain) for part in ("feed", "query"))
    return {
        what: each,
        "throughput": round(median(a.seconds for a in plain) / median(a.seconds for a in ours), 3),
        "least": round(turns[0], 3),
        "most": round(turns[-1], 3),
        "cpu_ratio": round(median(a.cpu for a in plain) / median(a.cpu for a in ours), 3),
        "reports_per_second": round(rows / median(a.seconds for a in ours)),
        "feed_ms": round(feed * 1000, 1),
        "query_ms": round(query * 1000, 1),
        "plain_feed_ms": round(plain_feed * 1000, 1),
        "plain_query_ms": round(plain_query * 1000, 1),
        "read_ms": round(reading * 1000, 1),
        "resolve_ms": round((feed - plain_feed - reading) * 1000, 1),
        "verdict_ms": round((query - plain_query) * 1000, 1),
        "us_per_report": round((feed + query - plain_feed - plain_query) / rows * 1e6, 3),
        **describe([a.seconds for a in ours]),
    }


def _judge(result: Mapping[str, object]) -> list[Row]:
    """Each aim with what was measured; sizes that a run left out have none."""
    found: list[Row] = []
    for row in _rows(result, "fig13a"):
        ratio = row["ratio"]
        if isinstance(ratio, int) and ratio in AIMS:
            least, got = AIMS[ratio], row["throughput"]
            found.append(
                {
                    "aim": f"throughput at 1:{ratio}",
                    "at_least": least,
                    "got": got,
                    "met": _at_most(least, got),
                }
            )
    for name in ("fig16a", "fig16b", "fig16c"):
        for row in _rows(result, name):
            got = row["adaptive_to_better"]
            found.append(
                {
                    "aim": f"adaptive join, {name}, {row['varied']}",
                    "at_most": LEAST_ADAPTIVE,
                    "got": got,
                    "met": _at_most(got, LEAST_ADAPTIVE),
                }
            )
    return found


def _rows(result: Mapping[str, object], name: str) -> list[Row]:
    rows = result[name]
    if not isinstance(rows, list):
        raise TypeError(f"`{name}` has no rows")
    return rows


def _at_most(one: object, other: object) -> bool:
    return isinstance(one, float) and isinstance(other, float) and one <= other

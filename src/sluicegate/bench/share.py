"""How much many queries cost against one: of one shape by as many users, and of different shapes on one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from sluicegate.bench.crowd import Crowd, open_folder, open_session
from sluicegate.bench.jvm import Jvm, Used
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.sample import Row, describe
from sluicegate.bench.soldiers import KINDS, Asked, list_shapes, make_soldiers
from sluicegate.policy.catalog import Catalog
from sluicegate.testing.traffic import Traffic, make_positions, make_readings

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.frames import Session

NAME = "share"
SUMMARY = "many queries against one: of one shape by as many users, and of different shapes on one source"
SEED = 3
AIMS: Mapping[str, float] = {"select": 5.0, "aggregate": 3.0, "join": 1.5, "shapes": 6.0}
"""At most so many times the time of one, for joins by the same plan: at 1,000 queries of a shape, and at 20 shapes."""
_SAME = 0
"""Stands for one query by the plan of many."""
NOTES = [
    "a sample is a tick of the engine over one new batch of each source: from the log to rows that readers can have, the gate's commit on disk included, reading the source into the log not",
    "queries of one shape: each user reads another platoon and has another threshold; together the users see all platoons only at 1,000, so that more queries also means more rows to deliver",
    "ratio: median over the median of one query; the engines take turns on the same batches, in another order each round",
    "same_plan: of joins, the median over that of one query whose join runs as that of many does, once over all that came, before the subscriptions; the engine filters first for one query. Aims are for queries by the same plan, as they were set",
    "rows_read: rows that Spark read from the logs in a tick; source_reads: these over the rows of the new batches",
]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured; `rows` are those of each source in a tick."""

    rows: int
    objects: int
    platoons: int
    queries: tuple[int, ...]
    shapes: tuple[int, ...]
    rounds: int
    warm_up: int


FULL = Size(200_000, 20_000, 1000, (1, 10, 100, 1000), (1, 5, 20, 60), rounds=7, warm_up=4)
QUICK = Size(400, 200, 10, (1, 3), (1, 2), rounds=1, warm_up=0)


def run(
    json: bool, out: Path | None, quick: bool, rows: int | None = None, spark: Session | None = None
) -> dict[str, object]:
    """Measure, in a session of its own unless one is given; `rows` of each source in a tick."""
    size = QUICK if quick else FULL
    size = size if rows is None else replace(size, rows=rows, objects=min(size.objects, rows))
    with open_session(spark) as session:
        result: dict[str, object] = {
            "bench": NAME,
            "quick": quick,
            "environment": describe_spark(session),
            "seed": SEED,
            "rows_per_tick": size.rows,
            "soldiers": size.objects,
            "notes": NOTES,
        }
        for kind in KINDS:
            result[kind.name] = _measure_queries(session, kind, size)
        result["shapes"] = _measure_shapes(session, size)
    result["aims"] = _judge(result, size)
    if out is not None:
        keep_result(result, out)
    return result


def _measure_queries(spark: Session, kind: Asked, size: Size) -> list[Row]:
    catalog = make_soldiers(max(size.queries))
    asked = {count: [(f"u{at}", kind.ask(60 + at % 10)) for at in range(count)] for count in size.queries}
    return _measure(spark, catalog, kind.streams, asked, "queries", size)


def _measure_shapes(spark: Session, size: Size) -> list[Row]:
    catalog = make_soldiers(max(size.shapes))
    asked = {
        count: [(f"u{at}", text) for at, text in enumerate(islice(list_shapes(), count))]
        for count in size.shapes
    }
    return _measure(spark, catalog, ("Health",), asked, "shapes", size)


def _measure(
    spark: Session,
    catalog: Catalog,
    streams: Sequence[str],
    asked: Mapping[int, Sequence[tuple[str, str]]],
    what: str,
    size: Size,
) -> list[Row]:
    """Engines with so many queries each take turns on the same batches."""
    jvm = Jvm(spark)
    samples: dict[int, list[Used]] = {count: [] for count in asked}
    with open_folder() as folder, ExitStack() as stack:
        crowds = {}
        for count, queries in asked.items():
            crowds[count] = Crowd(spark, catalog, folder / str(count), streams, queries)
            stack.callback(crowds[count].stop)
        if len(streams) > 1:
            one = asked[min(asked)]
            crowds[_SAME] = Crowd(spark, catalog, folder / "same", streams, one, share_from=1)
            stack.callback(crowds[_SAME].stop)
            samples[_SAME] = []
        for number, batch in enumerate(_make_batches(streams, size)):
            order = list(crowds)
            for count in order[number % len(order) :] + order[: number % len(order)]:
                crowds[count].push(batch)
                used = jvm.measure(crowds[count].tick)
                if number >= size.warm_up:
                    samples[count].append(used)
        return [_describe(count, what, crowds[count], samples, size, len(streams)) for count in asked]


def _make_batches(streams: Sequence[str], size: Size) -> list[dict[str, pa.Table]]:
    steps = max(1, size.rows // size.objects)
    traffic = Traffic(
        objects=size.objects,
        platoons=size.platoons,
        steps=steps * (size.rounds + size.warm_up),
        seed=SEED,
    )
    makers = {"Position": make_positions, "Health": make_readings}
    tables = [list(makers[name](traffic, size.rows)) for name in streams]
    return [dict(zip(streams, each, strict=True)) for each in zip(*tables, strict=True)]


def _describe(
    count: int, what: str, crowd: Crowd, samples: Mapping[int, Sequence[Used]], size: Size, streams: int
) -> Row:
    used, one = samples[count], samples[min(each for each in samples if each != _SAME)]
    read = median(each.rows_read for each in used)
    return {
        what: count,
        "ratio": _ratio([each.seconds for each in used], [each.seconds for each in one]),
        **_against_same(used, samples),
        "cpu_ratio": _ratio([each.cpu for each in used], [each.cpu for each in one]),
        "plans": crowd.shapes,
        "jobs": median(each.jobs for each in used),
        "rows_read": read,
        "source_reads": round(read / (size.rows * streams), 2),
        "cpu_ms": round(median(each.cpu for each in used) * 1000, 1),
        **describe([each.seconds for each in used]),
    }


def _against_same(used: Sequence[Used], samples: Mapping[int, Sequence[Used]]) -> Row:
    if _SAME not in samples:
        return {}
    return {"same_plan": _ratio([each.seconds for each in used], [each.seconds for each in samples[_SAME]])}


def _ratio(times: Sequence[float], base: Sequence[float]) -> float:
    return round(median(times) / max(median(base), 1e-9), 2)


def _judge(result: Mapping[str, object], size: Size) -> list[Row]:
    """Each aim with what was measured; sizes that a run left out have none."""
    found: list[Row] = []
    for name, most in AIMS.items():
        at, key = (20, "shapes") if name == "shapes" else (1000, "queries")
        rows = result[name]
        if not isinstance(rows, list):
            raise TypeError(f"`{name}` has no rows")
        for row in rows:
            if row[key] == at:
                ratio = row.get("same_plan", row["ratio"])
                found.append({"aim": f"{name}, {at}", "at_most": most, "ratio": ratio, "met": ratio <= most})
    return found

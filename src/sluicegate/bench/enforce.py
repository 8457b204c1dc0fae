"""What protection costs against the same query written by hand in Spark, and against filtering results afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from sluicegate.bench.crowd import open_folder, open_session
from sluicegate.bench.jvm import Jvm, Used
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.plot import MISSING, can_draw
from sluicegate.bench.plot_enforce import draw_fig9
from sluicegate.bench.rivals import (
    LAST,
    PLATOON,
    Rivals,
    check_same,
    drain,
    order_tables,
    read_handle,
)
from sluicegate.bench.sample import Row, describe
from sluicegate.bench.secfilter import measure_secfilter
from sluicegate.bench.soldiers import KINDS, Asked, make_soldiers
from sluicegate.runtime.engine import Engine
from sluicegate.testing.traffic import Traffic, make_positions, make_readings

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.frames import Session

NAME = "enforce"
SUMMARY = "protected queries against the same written by hand in Spark, and against filtering their results"
SEED = 5
AIM = 0.95
NOTES = [
    "throughput: time of the query written by hand over time of ours, on the same Parquet files, planning included, authorizing not; both take turns, and are first checked to give the same rows",
    "batch: frames, drained without collecting; frame: the library's streaming frame, as `to_spark` gives it, against Spark's streaming operators, availableNow, rows collected as Arrow in foreachBatch; follow: that of `follow`, whose join keeps what the policy hides too, since a later version may show it before the pair is released; engine: feed, log, ticks and the gate's commits on disk against the same streaming query written by hand, once with its rows in Parquet files (`kept`), once in memory only (`by_hand`)",
    "steady: the same of the micro-batches alone, by Spark's own account, without the first of each run: what a query that runs on is like, whose start is over; where it is told, the aim is for it",
    "the policy lets half of the rows through",
    "fig9: what is compared is ours, drawn like the paper's Fig. 9, whose numbers the paper's text does not give",
]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured; rows are those of each source, in so many files: live, in batch, of live joins, whose state
    Spark keeps row by row, and of joins in batch."""

    rows: int
    batch_rows: int
    join_rows: int
    join_batch_rows: int
    files: int
    objects: int
    rounds: int
    warm_up: int
    secfilter_rows: int
    windows: tuple[int, ...]
    selectivities: tuple[float, ...]


FULL = Size(
    rows=4_000_000,
    batch_rows=4_000_000,
    join_rows=200_000,
    join_batch_rows=1_200_000,
    files=4,
    objects=20_000,
    rounds=5,
    warm_up=2,
    secfilter_rows=20_000,
    windows=(1, 2, 5, 10, 20),
    selectivities=tuple(each / 10 for each in range(1, 10)),
)
QUICK = Size(400, 400, 400, 400, 1, 20, 1, 0, 200, (2,), (0.5,))


def run(
    json: bool, out: Path | None, quick: bool, rows: int | None = None, spark: Session | None = None
) -> dict[str, object]:
    """Measure, in a session of its own unless one is given; `rows` of each source in the live runs."""
    size = QUICK if quick else FULL
    if rows is not None:
        size = replace(size, rows=rows, batch_rows=rows, join_rows=rows, join_batch_rows=rows)
        size = replace(size, objects=min(size.objects, rows))
    with open_session(spark) as session:
        result: dict[str, object] = {
            "bench": NAME,
            "quick": quick,
            "environment": describe_spark(session),
            "seed": SEED,
            "rows": {
                "batch": size.batch_rows,
                "live": size.rows,
                "joins": {"batch": size.join_batch_rows, "live": size.join_rows},
                "files": size.files,
            },
            "notes": NOTES,
            "throughput": [row for kind in KINDS for row in _measure_kind(session, kind, size)],
            "fig9": measure_secfilter(
                session, size.secfilter_rows, size.windows, size.selectivities, size.rounds
            ),
        }
    if out is not None:
        keep_result(result, out)
        fig9 = result["fig9"]
        result["plots"] = (
            [path.name for path in draw_fig9(fig9, out)] if can_draw() and isinstance(fig9, dict) else MISSING
        )
    return result


def _measure_kind(spark: Session, kind: Asked, size: Size) -> list[Row]:
    catalog = make_soldiers(1)
    with open_folder() as folder:
        # pairs of a soldier's reports grow with their square
        joins = len(kind.streams) > 1
        rows, live_rows = (size.join_batch_rows, size.join_rows) if joins else (size.batch_rows, size.rows)
        batch = write_inputs(kind, folder / "batch", rows, size.files, size.objects)
        live = write_inputs(kind, folder / "live", live_rows, size.files, size.objects)
        in_batch = Rivals(spark, catalog, kind, batch, folder)
        streaming = Rivals(spark, catalog, kind, live, folder)
        return [_measure_batch(in_batch, size), *_measure_live(streaming, size)]


def write_inputs(kind: Asked, folder: Path, rows: int, files: int, objects: int) -> dict[str, Path]:
    """A folder of Parquet files for each stream; in the last one a tuple far ahead, so that every window ends."""
    import pyarrow.parquet as pq

    per_file = max(1, rows // files // objects)
    traffic = Traffic(objects=objects, platoons=2, steps=per_file * files, seed=SEED)
    makers = {"Position": make_positions, "Health": make_readings}
    found = {}
    for name in kind.streams:
        found[name] = folder / name
        found[name].mkdir(parents=True)
        tables = [*makers[name](traffic, per_file * objects)]
        for number, table in enumerate([*tables, _far_ahead(tables[-1])]):
            pq.write_table(table, found[name] / f"{number:05}.parquet")
    return found


def _far_ahead(table: pa.Table) -> pa.Table:
    """One tuple of a soldier of its own, a day later, that every predicate lets pass."""
    import pyarrow as pa

    row = table.slice(table.num_rows - 1).to_pylist()[0]
    row |= {"ts": row["ts"] + timedelta(days=1), "SID": LAST, "Platoon": PLATOON}
    row |= {"Heart": 100} if "Heart" in row else {}
    return pa.Table.from_pylist([row], schema=table.schema)


def _measure_batch(rivals: Rivals, size: Size) -> Row:
    rows = check_same(
        f"{rivals.kind.name}, batch",
        order_tables([rivals.batch_by_hand().toArrow()]),
        order_tables([rivals.batch_protected().toArrow()]),
    )
    works = {"by_hand": drain(rivals.batch_by_hand), "batch": drain(rivals.batch_protected)}
    used = _take_turns(rivals, works, size)
    return _compare(rivals, "batch", used, rows)


def _measure_live(rivals: Rivals, size: Size) -> list[Row]:
    """Both live ways against what is written by hand and keeps its rows where they keep theirs; the rows are compared."""
    import pyarrow.parquet as pq

    joins = len(rivals.kind.streams) > 1
    found: dict[str, list[pa.Table]] = {}
    running: list[tuple[Engine, str]] = []
    kept: list[Path] = []
    works: dict[str, Callable[[], object]] = {
        "by_hand": lambda: found.update(by_hand=rivals.stream_by_hand()),
        "kept": lambda: kept.append(rivals.stream_kept_by_hand()),
        "frame": lambda: found.update(frame=rivals.stream_protected()),
        **({"follow": lambda: found.update(follow=rivals.stream_protected(follows=True))} if joins else {}),
        "engine": lambda: running.append(rivals.engine_protected()),
    }

    def stop() -> None:
        while running:
            engine, handle = running.pop()
            try:
                if "engine" not in found:
                    found["engine"] = [read_handle(engine, handle)]
            finally:
                engine.stop()

    used = _take_turns(rivals, works, size, stop)
    found["kept"] = [pq.read_table(kept[-1])]
    ordered = {name: order_tables(tables) for name, tables in found.items()}
    rows = []
    check_same(f"{rivals.kind.name}, kept", ordered["by_hand"], ordered["kept"])
    follow = [("follow", "by_hand")] if joins else []
    for way, hand in (("frame", "by_hand"), *follow, ("engine", "kept"), ("engine", "by_hand")):
        count = check_same(f"{rivals.kind.name}, {way}", ordered["by_hand"], ordered[way])
        rows.append(_compare(rivals, way, used, count, hand))
    return rows


def _take_turns(
    rivals: Rivals,
    works: Mapping[str, Callable[[], object]],
    size: Size,
    tidy: Callable[[], None] = lambda: None,
) -> dict[str, list[Used]]:
    """In another order each round. What must be tidied up after a work is not timed."""
    jvm = Jvm(rivals.spark)
    samples: dict[str, list[Used]] = {name: [] for name in works}
    names = list(works)
    for turn in range(-size.warm_up, size.rounds):
        if turn == 0:
            rivals.batches.clear()
        # each behind each: what one leaves to the disk and to Java, the next one pays for
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            used = jvm.measure(works[name])
            tidy()
            if turn >= 0:
                samples[name].append(used)
    return samples


def _steady(rivals: Rivals, way: str, by_hand: str) -> dict[str, float]:
    """The same of micro-batches alone, where both ways tell of them."""
    hand, ours = rivals.batches.get(by_hand), rivals.batches.get(way)
    return {"steady": round(median(hand) / median(ours), 3)} if hand and ours else {}


def _compare(
    rivals: Rivals, way: str, samples: Mapping[str, Sequence[Used]], rows: int, by_hand: str = "by_hand"
) -> Row:
    hand, ours = samples[by_hand], samples[way]
    each = sorted(a.seconds / b.seconds for a, b in zip(hand, ours, strict=True))
    ratio = median(a.seconds for a in hand) / median(b.seconds for b in ours)
    steady = _steady(rivals, way, by_hand)
    return {
        "query": rivals.kind.name,
        "way": way,
        "against": by_hand,
        "throughput": round(ratio, 3),
        "least": round(each[0], 3),
        "most": round(each[-1], 3),
        "cpu_ratio": round(median(a.cpu for a in hand) / max(median(b.cpu for b in ours), 1e-9), 3),
        "aim": AIM,
        "met": steady.get("steady", ratio) >= AIM,
        **steady,
        "result_rows": rows,
        "jobs_by_hand": hand[-1].jobs,
        "jobs": ours[-1].jobs,
        **{f"hand_{key}": value for key, value in describe([a.seconds for a in hand]).items()},
        **{f"ours_{key}": value for key, value in describe([b.seconds for b in ours]).items()},
    }

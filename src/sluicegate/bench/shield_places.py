"""A query over one stream with its shield down, up, and without any: time and memory (seed 002, 6.2, Figs 14 and 15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from sluicegate.bench.crowd import open_folder
from sluicegate.bench.jvm import Jvm, Used
from sluicegate.bench.sample import Row, describe
from sluicegate.bench.shield_world import Pipe, Rounds, WrongRowsError, make_catalog
from sluicegate.runtime.network.placement import Placement
from sluicegate.testing.punctuated import Moving, make_elements, make_reports

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

STREAM = "M"
QUERY = "SELECT obj, speed, x, y FROM M WHERE speed > 60 START AT EARLIEST"


def measure_places(
    spark: Session, rows: int, rounds: Rounds, moving: Moving, roles: Sequence[int]
) -> dict[str, list[Row]]:
    """`fig14`: a line for each number of roles in a policy and place; `fig15`: the same against no shield."""
    placed, against = [], []
    for count in roles:
        used = _measure(spark, rows, rounds, replace(moving, roles=count))
        none = used.pop("none")
        for place, samples in used.items():
            row: Row = {"roles": count, "shield": place, **_describe(samples, rows)}
            placed.append(row)
            against.append(
                {
                    "roles": count,
                    "shield": place,
                    "time_ratio": _ratio(samples, none, "seconds"),
                    "cpu_ratio": _ratio(samples, none, "cpu"),
                    "memory_bytes": median(each.memory for each in samples),
                    "plain_memory_bytes": median(each.memory for each in none),
                }
            )
        placed.append({"roles": count, "shield": "none", **_describe(none, rows)})
    return {"fig14": placed, "fig15": against}


def _measure(spark: Session, rows: int, rounds: Rounds, moving: Moving) -> dict[str, list[Used]]:
    jvm = Jvm(spark)
    with open_folder() as folder:
        shielded, plain = (
            Pipe(spark, folder / name, make_catalog(moving, (STREAM,), punctuated), QUERY, (STREAM,))
            for name, punctuated in (("shielded", True), ("plain", False))
        )
        begin, start = shielded.place(), plain.place()
        shielded.push({STREAM: make_elements(moving, 0, rows)})
        plain.push({STREAM: make_reports(moving, 0, rows)})
        works: dict[str, Callable[[], int]] = {
            "none": lambda: plain.ask(start),
            "down": lambda: shielded.ask(begin, Placement.DOWN),
            "up": lambda: shielded.ask(begin, Placement.UP),
        }
        samples: dict[str, list[Used]] = {name: [] for name in works}
        found: dict[str, int] = {}
        for turn in range(-rounds[0], rounds[1]):
            for name, work in works.items():
                used = jvm.measure(lambda name=name, work=work: found.update({name: work()}))  # type: ignore[misc]
                if turn >= 0:
                    samples[name].append(used)
    if found["down"] != found["up"]:
        raise WrongRowsError("a shield that was moved up gives other rows")
    return samples


def _describe(samples: Sequence[Used], rows: int) -> Row:
    times = [each.seconds for each in samples]
    return {"us_per_report": round(median(times) / rows * 1e6, 3), **describe(times)}


def _ratio(ours: Sequence[Used], none: Sequence[Used], part: str) -> float:
    one, other = (median(getattr(each, part) for each in samples) for samples in (ours, none))
    return round(float(one / max(other, 1e-9)), 3)

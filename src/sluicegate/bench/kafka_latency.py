"""How long a message takes from topic to topic, by hand and in our ways, at a steady pace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING
from uuid import uuid4

from sluicegate.bench.kafka_rivals import (
    SELECT,
    WAYS,
    Topics,
    count_topic,
    make_topic,
    run_by_hand,
    run_engine,
    run_frame,
)
from sluicegate.bench.rivals import DifferentRowsError
from sluicegate.bench.sample import Row

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

LATENCY_AIM = 1.2


@dataclass(frozen=True, slots=True)
class Pace:
    rate: int
    seconds: int
    settle: int
    """Seconds of each turn that do not count."""
    first: int
    """Seconds of a turn of each way before those that count: Java has compiled what it runs by then."""
    pause: float
    turns: int
    """How often each way is paced."""


def measure_latency(spark: Session, servers: str, folder: Path, size: Pace) -> list[Row]:
    """In turns over the same pace, whose messages count together: one slow batch is all that a hundredth of a turn is."""
    found: dict[str, list[list[int]]] = {way: [] for way in ("by_hand", *WAYS)}
    for turn in range(-1 if size.first else 0, size.turns):
        for way in found:
            seconds = size.first if turn < 0 else size.seconds
            out = _pace_one(spark, servers, folder, way, seconds, size)
            if turn >= 0:
                found[way].append(_find_delays(spark, servers, out, size.settle))
    return [_compare_delays(way, found["by_hand"], found[way]) for way in found]


def _pace_one(spark: Session, servers: str, folder: Path, way: str, seconds: int, size: Pace) -> str:
    """One way for so many seconds; the topic of its results."""
    source, out = f"paced-{uuid4().hex}", f"out-{uuid4().hex}"
    topics = Topics(spark, servers, source, None, folder / "scratch", "latest")
    make_topic(spark, servers, source)
    with _running(topics, way, out):
        sleep(size.pause)
        _pace(servers, source, size.rate, seconds)
        _await_rows(spark, servers, out)
        sleep(size.pause)
    return out


def _await_rows(spark: Session, servers: str, out: str) -> None:
    """Until the topic is there: a busy machine takes its time for the first batch."""
    until = perf_counter() + 60
    while perf_counter() < until:
        try:
            if count_topic(spark, servers, out):
                return
        except Exception:  # noqa: BLE001 — py4j's, of a topic that is not there yet
            sleep(0.2)


@contextmanager
def _running(topics: Topics, way: str, out: str) -> Iterator[None]:
    if way == "engine":
        running = run_engine(topics, SELECT, out)
        try:
            yield
            running.check()
        finally:
            running.stop()
        return
    by_hand = way == "by_hand"
    query = run_by_hand(topics, SELECT, out) if by_hand else run_frame(topics, SELECT, out, way == "feed")
    try:
        yield
    finally:
        query.stop()


def _pace(servers: str, topic: str, rate: int, seconds: int) -> None:
    command = [sys.executable, "-m", "sluicegate.bench.kafka_producer", servers, topic]
    subprocess.run([*command, str(rate), str(seconds)], check=True, timeout=seconds + 60)  # noqa: S603 — our own module


def _find_delays(spark: Session, servers: str, out: str, settle: int) -> list[int]:
    """In milliseconds, in order, of the messages that were sent after the first seconds."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", out)
    rows = reader.load().selectExpr(
        "get_json_object(CAST(value AS STRING), '$.sent') AS sent", "unix_millis(timestamp) AS at"
    )
    delays = rows.selectExpr("CAST(sent AS BIGINT) AS sent", "at - CAST(sent AS BIGINT) AS delay").toArrow()
    first = min(delays["sent"].to_pylist(), default=0) + settle * 1000
    kept = sorted(row["delay"] for row in delays.to_pylist() if row["sent"] >= first)
    if not kept:
        raise DifferentRowsError("no rows came through in time")
    return kept


def _compare_delays(way: str, hand: list[list[int]], found: list[list[int]]) -> Row:
    row: Row = {"way": way}
    ratios = []
    for name, part in (("p50", 50), ("p99", 99)):
        turns = [_find_part(ours, part) / _find_part(by, part) for ours, by in zip(found, hand, strict=True)]
        taken, of = (_find_part(sorted(chain(*each)), part) for each in (found, hand))
        ratios.append(taken / of)
        row |= {f"{name}_ms": taken, f"{name}_ratio": round(taken / of, 3)}
        row |= {f"{name}_least": round(min(turns), 3), f"{name}_most": round(max(turns), 3)}
    return row | {"aim": LATENCY_AIM, "met": max(ratios) <= LATENCY_AIM}


def _find_part(delays: list[int], part: int) -> float:
    """That hundredth of delays that are in order; a delay is a millisecond at least, as fine as the broker's clock is."""
    return float(max(1, delays[len(delays) * part // 100]))

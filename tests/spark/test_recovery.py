"""An engine in a process of its own, killed: what its readers have in the end is what they would have had."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.expr.types import INT, TIMESTAMP
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.ingest import AVAILABLE_NOW, Ingest
from sluicegate.testing.recovery.kills import Episodes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_three_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    """The long run is `python -m sluicegate.testing.recovery.kills`."""
    episodes = Episodes(tmp_path, seed=3, batches=5)
    try:
        while episodes.report.kills.total() < 3 and not episodes.report.problems:
            episodes.run_episode(3 - episodes.report.kills.total(), changes=False)
    finally:
        episodes.close()
    assert episodes.report.problems == []
    assert episodes.report.kills.total() == 3
    assert episodes.report.rows > 0


def test_half_an_offset_of_a_killed_process_does_not_stop_the_feed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Found by the long run: killed while Spark wrote its first offset, a feed never started again."""
    source = tmp_path / "in"
    source.mkdir()
    (source / "one.json").write_text('{"ts": "2026-01-01T00:00:00Z", "n": 1}\n')
    stream = Stream(
        "F", (("ts", TIMESTAMP), ("n", INT)), "ts", format="json", options=(("path", str(source)),)
    )
    ingest = Ingest(spark, stream, tmp_path / "feeds", AVAILABLE_NOW)
    offsets = ingest.log.folder / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    for name in (".0.2de2dd46.tmp", "..0.2de2dd46.tmp.crc"):
        (offsets / name).write_text("v1\n{")
    ingest.start()
    assert ingest.wait(60)
    assert ingest.failure is None
    assert [batch.rows for batch in ingest.log.batches()] == [1]

"""Faults of the machine below an engine: what its readers have in the end is what they would have had."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.language.load import read_catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.gate.events import Rows
from sluicegate.testing.soldiers import CATALOG, COLUMNS, write_positions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_PATIENCE = 120.0
_SIZE = 2 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that is soon full."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"needs root: {' '.join(command)}")
    yield place
    # Spark leaves files open that it could not write
    subprocess.run(["umount", "--lazy", place], check=True)


def wait_for(found: Callable[[], object]) -> None:
    until = time.monotonic() + _PATIENCE
    while not found():
        assert time.monotonic() < until
        time.sleep(0.1)


class Reader:
    """Reads a query's rows, each once."""

    def __init__(self, engine: Engine, handle: str) -> None:
        self._gate, self._handle = engine.gate, handle
        self._cursor: Any = None
        self.rows: list[Any] = []

    def read(self) -> int:
        events, self._cursor = self._gate.read(self._handle, self._cursor)
        self.rows += [row["Pos"] for event in events if isinstance(event, Rows) for row in event.rows]
        return len(self.rows)


def fill(disk: Path) -> Path:
    """A file that takes all that is left."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as file:
        for size in (65536, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return path


def test_a_full_disk_stops_a_feed_until_there_is_space(
    spark: SparkSession, small_disk: Path, tmp_path: Path
) -> None:
    """No row is lost, doubled or torn; that the feed stands is told, and it goes on by itself."""
    source = tmp_path / "in"
    source.mkdir()
    feed = f" FROM json OPTIONS (path = '{source}')"
    catalog = read_catalog(CATALOG.format(columns=COLUMNS, source=feed, platoon="X", reader="Doctor"))
    engine = Engine(spark, catalog, small_disk / "state")
    engine.feeds.revive()
    try:
        reader = Reader(engine, engine.register("cole", "SELECT Pos FROM Position START AT EARLIEST"))
        engine.start()
        write_positions(source / "0.json", 10)
        wait_for(lambda: reader.read() == 10)
        filler = fill(small_disk)
        write_positions(source / "1.json", 10, 10)
        wait_for(lambda: engine.feeds.failures or engine.failure)
        assert reader.read() == 10
        filler.unlink()
        wait_for(lambda: reader.read() >= 20)
        wait_for(lambda: not engine.feeds.failures and engine.failure is None)
    finally:
        engine.stop()
    assert sorted(reader.rows) == [float(at) for at in range(20)]

"""One query of each kind over a few made-up rows, so that Spark has loaded and compiled its part when the first user asks."""

from __future__ import annotations

import logging
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.language.load import read_catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.frames import make_table
from sluicegate.targets.duckdb_operators import ARRIVAL

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

_LOGGER = logging.getLogger(__name__)
_CATALOG = """
CREATE STREAM S (ts TIMESTAMP, id STRING, n INT) TIMESTAMP BY ts;
CREATE ROLE R;
CREATE USER u ROLES (R) SET (id = 'a');
CREATE GRANT g READ (*) ON S WHERE id = self.id TO R;
"""
_QUERIES = (
    "SELECT ts, id, n FROM S WHERE n > 0",
    "SELECT id, AVG(n) AS mean FROM S [RANGE 1 SECOND] GROUP BY id",
)
_SECOND = 1_000_000


class Rehearsal:
    """Runs beside everything else, in a folder of its own; what goes wrong in it is only logged."""

    def __init__(self, spark: Session) -> None:
        self._spark = spark
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sluicegate-rehearsal", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it is over, after at most so long."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """End before the next step, and wait for the one under way."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="sluicegate-rehearsal-") as folder:
                self._play(Path(folder))
        except Exception:
            if not self._stopping.is_set():
                _LOGGER.warning("the rehearsal failed", exc_info=True)

    def _play(self, folder: Path) -> None:
        catalog = read_catalog(_CATALOG)
        engine = Engine(self._spark, catalog, folder, push=True)
        try:
            for query in _QUERIES:
                engine.register("u", query)
            for at in (0, 10):
                rows = [(at * _SECOND, "a", 1)]
                table = make_table(catalog.streams["S"], rows, [0]).drop_columns([ARRIVAL])
                engine.feeds.push("S", table)
                while not self._stopping.is_set() and engine.tick():
                    pass
        finally:
            engine.stop()

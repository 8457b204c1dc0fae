"""A text in a private file that Spark reads again in every micro-batch: replaced as a whole, gone at the end.

Spark lists a file only once: so it keeps its length, and there is no room for what is longer.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LEAST_ROOM = 4096


class FileRow:
    """For tasks of the driver's own process: nobody else can read the file."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sluicegate-frame-"))
        self._file = self._folder / "subscription.txt"
        self._room = 0
        atexit.register(self.remove)

    def open(self, spark: SparkSession) -> DataFrame:
        """A frame of the text, column `value`; it is written already."""
        return spark.read.text(str(self._file))

    def replace(self, text: str) -> bool:
        """From the next micro-batch on, this is the text; False where there is no room for it."""
        room = self._room or max(_LEAST_ROOM, 2 * len(text))
        if len(text) >= room:
            return False
        new = self._folder / "new"
        new.write_text(text.ljust(room - 1) + "\n", encoding="ascii")
        new.replace(self._file)
        self._room = room
        return True

    def remove(self) -> None:
        """Without the file, no micro-batch runs."""
        atexit.unregister(self.remove)
        shutil.rmtree(self._folder, ignore_errors=True)

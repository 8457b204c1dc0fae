"""The file that a streaming frame reads its subscription from: private, replaced as a whole, gone at the end."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.expr.types import Type
from sluicegate.runtime.network.shapes import Constant
from sluicegate.runtime.network.subscriptions import Subscription, make_subscriptions
from sluicegate.runtime.stream.subscription_source import ENDED, FORMAT, SubscriptionSource
from sluicegate.targets.spark_text import spark_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_BOUNDS = ("q", "start", "since", "t0", "t1")


class LiveTable:
    """A table of one row. `types` are those of the shape's parameters."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._types = tuple(types)
        self._folder = Path(tempfile.mkdtemp(prefix="sluicegate-frame-"))
        self._file = self._folder / "subscription.arrow"
        self.ended = False
        atexit.register(self.remove)

    def open(self, spark: SparkSession) -> DataFrame:
        """The table as a frame, which Spark reads again in every micro-batch."""
        if (spark.sparkContext.master or "").startswith("local"):
            # workers elsewhere have a Python of their own
            spark.sparkContext.pythonExec = sys.executable
        spark.dataSource.register(SubscriptionSource)
        columns = [f"{name} BIGINT" for name in _BOUNDS]
        columns += [f"p{at} {spark_type(of)}" for at, of in enumerate(self._types)]
        options = {"file": str(self._file), "columns": ", ".join(columns)}
        return spark.read.format(FORMAT).options(**options).load()

    def write(self, row: Subscription) -> None:
        """From the next micro-batch on, this is the row; what has ended stays ended."""
        if not self.ended:
            self._replace(make_subscriptions(self._types, [row]))

    def end(self, code: str) -> None:
        """From the next micro-batch on, there is none, and the batch says why."""
        self.ended = True
        empty = make_subscriptions(self._types, [])
        self._replace(empty.replace_schema_metadata({ENDED: code.encode()}))

    def remove(self) -> None:
        """Without the file, no micro-batch runs."""
        self.ended = True
        atexit.unregister(self.remove)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _replace(self, table: pa.Table) -> None:
        import pyarrow as pa

        new = self._folder / "new"
        try:
            with new.open("wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            new.replace(self._file)
        except OSError:
            # closed: the old row must not be read on
            self.remove()
            raise


def find_version(constants: Sequence[Constant]) -> int:
    """A number of these constants, the same in every process: a state that outlives one tells versions apart by it."""
    return int.from_bytes(sha256(repr(tuple(constants)).encode()).digest()[:8], "big") >> 1

"""The subscription of a streaming frame as Spark reads it, anew in every micro-batch.

Spark plans a Python data source once and calls `read` in each batch, in a process of its own; so the value lies in a file,
which the driver replaces as a whole. Whatever is wrong with the file fails the batch: no row, no old row (R7).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "sluicegate_subscription"
ENDED = b"sluicegate.ended"
"""Metadata of a file that says why the frame has ended: a code."""
MESSAGES = {
    "policy-changed": "policy-changed: the authorized query has another plan now; authorize it again",
    "policy-missing": "policy-missing: the values of the policy cannot be read",
    "withdrawn": "withdrawn: nothing of the query is allowed any more",
}


class FrameEnded(Exception):  # noqa: N818 — an end that somebody asked for
    """A micro-batch that must not run; the message has a code and never a value."""


class SubscriptionSource(DataSource):
    """Options: `file`, and `columns`, the schema of what it holds."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return self.options["columns"]

    def reader(self, schema: Any) -> DataSourceReader:
        return SubscriptionReader(self.options["file"])


class SubscriptionReader(DataSourceReader):
    def __init__(self, file: str) -> None:
        self._file = file

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from read_subscription(Path(self._file)).to_batches()


def read_subscription(file: Path) -> pa.Table:
    """The one row of a file; raises `FrameEnded` where there is none to be had."""
    import pyarrow as pa

    try:
        table = pa.ipc.open_file(pa.BufferReader(file.read_bytes())).read_all()
        code = (table.schema.metadata or {}).get(ENDED, b"").decode()
        rows = table.num_rows
    except (OSError, ValueError, pa.ArrowException):
        raise FrameEnded(MESSAGES["policy-missing"]) from None
    if code or rows != 1:
        raise FrameEnded(MESSAGES.get(code, MESSAGES["policy-missing"]))
    return table

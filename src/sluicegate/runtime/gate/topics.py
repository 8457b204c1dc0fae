"""Results into a topic of Kafka, each row under a key that it keeps, so that whoever reads can drop what came twice.

    key       query/version/batch/row, the last two as codes
    value     the row as one JSON object: what is withheld is absent, NULL is null, times are ISO text in UTC
    headers   event: `rows`, `gap`, `withdrawn` or `closed`

Codes are the same for the same row, always, and tell neither how many ticks there were, which counts what others are given,
nor how many rows a narrower policy left out. What was written to a topic is beyond the gate: a later change of policy takes
nothing back (R10 holds up to the write).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME
from sluicegate.runtime.frames import make_frame
from sluicegate.runtime.gate.events import Closed, Gap, Rows, Withdrawn
from sluicegate.runtime.gate.layout import Layout, column_name
from sluicegate.runtime.gate.sinks import name_batch
from sluicegate.targets.spark_text import quote_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

LIMITS: Mapping[str, str] = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    # a change of policy waits for a write that is under way: what a broker does not take soon is tried again later
    "kafka.max.block.ms": "10000",
    "kafka.request.timeout.ms": "8000",
    "kafka.delivery.timeout.ms": "10000",
    "kafka.linger.ms": "5",
}
WRITE_SECONDS = 10.0
"""After that a write is broken off, wherever it is: what was allowed when it began may not be any more."""
ROWS_A_SECOND = 10_000
"""Many rows take longer: broken off each time, they would never be written."""
_PLACE = "at"
_STRING_OF_TIME = (
    "concat(date_format({0}, 'yyyy-MM-dd\\'T\\'HH:mm:ss'), CASE WHEN unix_micros({0}) % 1000000 = 0 THEN '' "
    "ELSE date_format({0}, '.SSSSSS') END)"
)


class TopicSink:
    """A query's rows into one topic. `options` are Spark's for its Kafka writer, with secrets in them."""

    def __init__(self, spark: SparkSession, handle: str, topic: str, options: Mapping[str, str]) -> None:
        self._spark, self._handle, self._topic = spark, handle, topic
        self._options = {**LIMITS, **options}

    def write(self, rows: Rows) -> None:
        table = rows.data.append_column(_PLACE, _number(rows))
        prefix = f"{self._handle}/{rows.version}/{name_batch(rows.cursor)}/"
        # who reads the topic has no cursor, and cannot try numbers
        code = f"left(sha2(concat({quote_text(rows.cursor + '/')}, {_PLACE}), 256), 16)"
        self._send(
            table, f"concat({quote_text(prefix)}, {code})", write_object(rows.layout, rows.data), "rows"
        )

    def tell(self, event: Gap | Withdrawn | Closed) -> None:
        match event:
            case Gap(cursor=cursor):
                self._say("gap", name_batch(cursor), {})
            case Withdrawn(reason):
                self._say("withdrawn", "end", {"reason": reason})
            case Closed():
                self._say("closed", "end", {})

    def _say(self, event: str, place: str, about: Mapping[str, str]) -> None:
        import pyarrow as pa

        key, value = quote_text(f"{self._handle}/{event}/{place}"), quote_text(json.dumps(dict(about)))
        self._send(pa.table({_PLACE: [0]}), key, value, event)

    def _send(self, table: pa.Table, key: str, value: str, event: str) -> None:
        """In one task, so that rows keep their order within a partition."""
        header = (
            f"array(named_struct('key', 'event', 'value', CAST({quote_text(event)} AS BINARY))) AS headers"
        )
        frame = make_frame(self._spark, table).coalesce(1)
        written = frame.selectExpr(f"{key} AS key", f"{value} AS value", header)
        writer = written.write.format("kafka").option("topic", self._topic).option("includeHeaders", "true")
        with _bounded(self._spark, WRITE_SECONDS + table.num_rows / ROWS_A_SECOND):
            writer.options(**self._options).save()


@contextmanager
def _bounded(spark: SparkSession, seconds: float) -> Iterator[None]:
    """Tasks that wait for a free core when the time is over never start, and those that run are told to end."""
    context, group = spark.sparkContext, f"sink-{uuid4().hex}"
    context.setJobGroup(group, "a sink", interruptOnCancel=True)
    watch = threading.Timer(seconds, context.cancelJobGroup, [group])
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _number(rows: Rows) -> pa.Array:
    import pyarrow as pa

    return pa.array(range(rows.data.num_rows), pa.int64()) if rows.places is None else rows.places


def write_object(layout: Layout, data: pa.Table) -> str:
    """The row as JSON, in Spark's words."""
    fields = list(_write_fields(layout, data))
    return f"concat('{{', concat_ws(',', {', '.join(fields)}), '}}')" if fields else "'{}'"


def _write_fields(layout: Layout, data: pa.Table) -> Iterator[str]:
    for each in layout.fields:
        field = _write_field(each.name, each.at, data)
        yield field if each.shown is None else f"CASE WHEN {column_name(each.shown)} THEN {field} END"
    if layout.label is not None:
        name = column_name(layout.label)
        yield f"CASE WHEN {name} IS NOT NULL THEN {_write_field(GRANT_NAME, layout.label, data)} END"
    if layout.bounds is not None:
        start = column_name(layout.bounds)
        for name, at in ((START_NAME, layout.bounds), (END_NAME, layout.bounds + 1)):
            yield f"CASE WHEN {start} IS NOT NULL THEN {_write_field(name, at, data)} END"


def _write_field(name: str, at: int, data: pa.Table) -> str:
    import pyarrow as pa

    column = column_name(at)
    value = (
        _STRING_OF_TIME.format(column) if pa.types.is_timestamp(data.schema.field(column).type) else column
    )
    # Spark puts the value into JSON, of which only what stands behind its name is taken
    text = f"to_json(named_struct('v', {value}), map('ignoreNullFields', 'false'))"
    inner = f"substring({text}, 6, length({text}) - 6)"
    return f"concat({quote_text(json.dumps(name) + ':')}, {inner})"

"""Results into a topic of Kafka, each row under a key that it keeps, so that whoever reads can drop what came twice.

    key       query/version/batch/row, the last two as codes
    value     the row as one JSON object: what is withheld is absent, NULL is null, times are ISO text in UTC
    headers   event: `rows`, `too-long`, `gap`, `withdrawn` or `closed`

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
from sluicegate.runtime.gate.sinks import LingeringError, UnfinishedError, name_batch
from sluicegate.targets.spark_text import quote_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_DELIVERY = "kafka.delivery.timeout.ms"
LIMITS: Mapping[str, str] = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    # a change of policy waits for a write that is under way: what a broker does not take soon is tried again later
    "kafka.max.block.ms": "10000",
    "kafka.request.timeout.ms": "8000",
    _DELIVERY: "10000",
    "kafka.linger.ms": "5",
}
WRITE_SECONDS = 10.0
"""After that a write is broken off, wherever it is: what was allowed when it began may not be any more."""
ROWS_A_SECOND, BYTES_A_SECOND = 10_000, 1_600_000
"""Many rows, and long ones, take longer: broken off each time, they would never be written."""
MOST_ROWS, MOST_BYTES = 200_000, 32_000_000
"""Of one write, so that it ends, also where it fails, well before a change of policy that waits for it gives up."""
MARGIN_SECONDS = 2.0
"""For a task to hear that it is to end."""
LONGEST = 1_000_000
"""Bytes of a message: Kafka's clients and brokers refuse more than a mebibyte, at every try."""
_AGAIN = 0.5
_KEY_BYTES, _FIELD_BYTES = 100, 24
"""Of a message's key and headers, and of a field's value where the table holds it in a few bits."""
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
        self._written: tuple[str, int] | None = None
        """The batch of which a part is written, and the last place of that part."""

    def write(self, rows: Rows) -> None:
        rest = self._find_rest(rows)
        table = rest.slice(0, _count_part(rest, rows.layout))
        prefix = f"{self._handle}/{rows.version}/{name_batch(rows.cursor)}/"
        # who reads the topic has no cursor, and cannot try numbers
        code = f"left(sha2(concat({quote_text(rows.cursor + '/')}, {_PLACE}), 256), 16)"
        self._send(
            table,
            f"concat({quote_text(prefix)}, {code})",
            write_object(rows.layout, rows.data),
            "rows",
            _measure(table, rows.layout),
        )
        if rest.num_rows > table.num_rows:
            self._written = rows.cursor, table.column(_PLACE)[-1].as_py()
            raise UnfinishedError
        self._written = None

    def _find_rest(self, rows: Rows) -> pa.Table:
        """By places, which stay where a change of policy takes rows out between two parts."""
        import pyarrow.compute as pc

        table = rows.data.append_column(_PLACE, _number(rows))
        if self._written is None or self._written[0] != rows.cursor:
            return table
        return table.filter(pc.field(_PLACE) > self._written[1])

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

    def _send(self, table: pa.Table, key: str, value: str, event: str, size: int = 0) -> None:
        """In one task, so that rows keep their order within a partition."""
        if not table.num_rows:
            return
        written = list_messages(make_frame(self._spark, table).coalesce(1), key, value, event)
        writer = written.write.format("kafka").option("topic", self._topic).option("includeHeaders", "true")
        try:
            with _bounded(self._spark, find_limit(table.num_rows, size)):
                writer.options(**self._options).save()
        except Exception as error:
            # the client outlives the task, and sends what it has been given for so long
            raise LingeringError(int(self._options[_DELIVERY]) / 1000 + MARGIN_SECONDS, error) from error


def find_limit(rows: int, size: int) -> float:
    """Seconds that a write may take; one row alone may have more bytes than a part, and is not waited for any longer."""
    return WRITE_SECONDS + max(rows / ROWS_A_SECOND, min(size, MOST_BYTES) / BYTES_A_SECOND)


def _count_part(table: pa.Table, layout: Layout) -> int:
    """The most rows from the first on that make one part, at least one."""
    fits, exceeds = 1, min(table.num_rows, MOST_ROWS) + 1
    while exceeds - fits > 1:
        middle = (fits + exceeds) // 2
        if _measure(table.slice(0, middle), layout) <= MOST_BYTES:
            fits = middle
        else:
            exceeds = middle
    return fits


def _measure(table: pa.Table, layout: Layout) -> int:
    """About the bytes of its messages: each names its fields anew, and numbers are longer as text."""
    named = sum(len(json.dumps(each.name)) + _FIELD_BYTES for each in layout.fields)
    size: int = table.nbytes + table.num_rows * (_KEY_BYTES + named)
    return size


def list_messages(frame: DataFrame, key: str, value: str, event: str) -> DataFrame:
    """Of a row that no message can hold there is the key, and that it is so."""
    long = f"octet_length(key) + octet_length(value) > {LONGEST}"
    name = f"IF({long}, 'too-long', {quote_text(event)})"
    return frame.selectExpr(f"{key} AS key", f"{value} AS value").selectExpr(
        "key",
        f"IF({long}, '{{}}', value) AS value",
        f"array(named_struct('key', 'event', 'value', CAST({name} AS BINARY))) AS headers",
    )


@contextmanager
def _bounded(spark: SparkSession, seconds: float) -> Iterator[None]:
    """Tasks that wait for a free core when the time is over never start, and those that run are told to end."""
    context, group = spark.sparkContext, f"sink-{uuid4().hex}"
    context.setJobGroup(group, "a sink", interruptOnCancel=True)
    over = threading.Event()

    def watch() -> None:
        wait = seconds
        while not over.wait(wait):
            context.cancelJobGroup(group)
            # a job that began only then has not heard of it
            wait = _AGAIN

    threading.Thread(target=watch, name="limit of a sink", daemon=True).start()
    try:
        yield
    finally:
        over.set()


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

"""From the rows of a source to checked rows, in Spark's own expressions.

A row that does not fit its stream has NULL for every attribute, and in `_problem` why, never with a value; `_raw` then has
the beginning of what came in, for the stream's owner. What fits is what `runtime.inputs` takes from files, so that a live
run gives the rows of a batch run (I4).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from sluicegate.errors import InvariantError
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import (
    CARRIED,
    PARTITION,
    SENDER,
    SP,
    carry,
    find_sender_column,
    find_trusted,
)
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.decode_columns import read_columns
from sluicegate.runtime.feed.decode_lines import TEXT_COLUMN, read_lines
from sluicegate.runtime.feed.misfits import LONGEST_RAW, PROBLEM, RAW
from sluicegate.runtime.feed.turning import ALONE, carry_switches
from sluicegate.targets.duckdb_operators import ARRIVAL
from sluicegate.targets.spark_text import quote_name, quote_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["PROBLEM", "RAW", "TEXT_COLUMN", "Layout", "Read", "decode", "decode_fitting"]

Read: TypeAlias = "Callable[[DataFrame, Stream, bool], DataFrame]"
"""How records are read: as `read_lines`, with a column `sender`; the last says whether reasons are told."""
_RESERVED = frozenset({ARRIVAL, "_late", PROBLEM, RAW, "_serial"})


class Layout(Enum):
    """How a source has its tuples: an attribute a column, typed or as text, or an object of JSON a row."""

    COLUMNS = "columns"
    TEXTS = "texts"
    JSON = "json"
    RECORDS = "records"
    """Of a topic: read by what opened it."""


def decode(frame: DataFrame, stream: Stream, layout: Layout, read: Read | None = None) -> DataFrame:
    """The stream's attributes, `_problem`, `_raw`; blank lines are left out. Frames may be streaming ones.

    Of a punctuated stream also what `feed.carriage` lists. `read` is for records.
    """
    carried = _carry(frame, stream, layout)
    found = _read(frame, stream, carried, layout, read, True)
    names = [name for name, _ in carried.attributes]
    fine = f"{PROBLEM} IS NULL"
    left_out = set(names) - {name for name, _ in (*stream.attributes, *CARRIED)}
    return found.selectExpr(
        *(
            f"CASE WHEN {fine} THEN a{at} END AS {quote_name(name)}"
            for at, name in enumerate(names)
            if name not in left_out
        ),
        PROBLEM,
        # whole characters, of at most four bytes; bytes that are none would keep the letters from being read
        f"CASE WHEN NOT {fine} THEN make_valid_utf8(left(raw, {LONGEST_RAW // 4})) END AS {RAW}",
        *(_write_origin(stream, names, layout) if stream.punctuated_by is not None else ()),
    )


def decode_fitting(frame: DataFrame, stream: Stream, layout: Layout, read: Read | None = None) -> DataFrame:
    """The attributes of the tuples that fit, as `decode` has them; for those who keep no dead letters and turn no switches."""
    carried = _carry(frame, stream, layout)
    # of a punctuated stream elements are told apart by more than whether they fit
    tells = stream.punctuated_by is not None
    found = _read(frame, stream, carried, layout, read, tells).where(f"{PROBLEM} IS NULL")
    names = [name for name, _ in carried.attributes]
    if carried != stream and not tells:
        # there is no switch here that it could turn, and beside a tuple it is refused
        found = found.where(f"a{names.index(SP)} IS NULL")
    return found.selectExpr(*(f"a{names.index(name)} AS {quote_name(name)}" for name, _ in stream.attributes))


def _carry(frame: DataFrame, stream: Stream, layout: Layout) -> Stream:
    carried = carry(stream)
    # the columns of other layouts are given; a JSON object has what it has
    if layout in (Layout.JSON, Layout.RECORDS) or SP in frame.columns:
        carried = carry_switches(carried)
    for name in sorted(_RESERVED & {name for name, _ in carried.attributes}):
        raise refuse_feed(
            "feed-schema", f"the attribute `{name}` of `{stream.name}` has a name that feeds use"
        )
    return carried


def _read(
    frame: DataFrame, stream: Stream, carried: Stream, layout: Layout, read: Read | None, tells: bool
) -> DataFrame:
    match layout:
        case Layout.COLUMNS | Layout.TEXTS:
            found = read_columns(frame, carried, layout is Layout.TEXTS)
        case Layout.JSON:
            found = read_lines(frame, carried, _write_partition(frame), tells)
        case Layout.RECORDS:
            if read is None:
                raise InvariantError(f"nothing says how the records of `{stream.name}` are read")
            found = read(frame, carried, tells)
    if stream.punctuated_by is None and carried != stream and tells:
        found = _refuse_mixed(found, len(carried.attributes))
    return found


def _refuse_mixed(found: DataFrame, count: int) -> DataFrame:
    """A row that is a tuple and a punctuation at once is neither."""
    from pyspark.sql.functions import expr

    beside = " OR ".join(f"a{at} IS NOT NULL" for at in range(count - 1))
    mixed = f"a{count - 1} IS NOT NULL AND ({beside})"
    problem = f"CASE WHEN {mixed} THEN coalesce({PROBLEM}, {quote_text(ALONE)}) ELSE {PROBLEM} END"
    return found.withColumn(PROBLEM, expr(problem))


def _write_partition(frame: DataFrame) -> str:
    """The partition of a topic, by the columns that Kafka's rows have beside their text."""
    found = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    is_topic = found.get("topic") == "string" and found.get("partition") == "int"
    return "concat(topic, '/', partition)" if is_topic else "CAST(NULL AS STRING)"


def _write_origin(stream: Stream, names: list[str], layout: Layout) -> list[str]:
    """Who sent an element, and which partition it came in."""
    column, trusted = find_sender_column(stream), find_trusted(stream)
    # an empty name is nobody's, as that of a stream without an owner is
    sender = "sender" if column is None else f"nullif(CAST(a{names.index(column)} AS STRING), '')"
    if trusted is not None:
        sender = quote_text(trusted)
    place = "place" if layout in (Layout.JSON, Layout.RECORDS) else "CAST(NULL AS STRING)"
    return [f"{sender} AS {SENDER}", f"{place} AS {PARTITION}"]

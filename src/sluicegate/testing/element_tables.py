"""Elements of a punctuated stream, as the reference model takes them, in the columns that feeds carry them in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluicegate.expr.values import conform
from sluicegate.language.punctuation_wire import write_punctuation
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import CARRIED, PARTITION, SENDER, SP, SP_COUNT, SP_TS
from sluicegate.runtime.frames import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


def make_elements(stream: Stream, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """In order of arrival, each with its sender and its partition."""
    import pyarrow as pa

    schema = pa.schema([field for field in arrow_schema(stream) if not field.name.startswith("_")])
    columns: dict[str, pa.Array] = {
        field.name: pa.array(
            [conform(row.get(field.name), dict(stream.attributes)[field.name]) for row in rows], field.type
        )
        for field in schema
    }
    key = dict(stream.attributes)[stream.punctuated_by or ""]
    texts = [json.dumps(write_punctuation(row[SP], key)) if SP in row else None for row in rows]
    kinds = {SP: pa.string(), SP_TS: pa.timestamp("us", tz="UTC"), SP_COUNT: pa.int64()}
    columns[SP] = pa.array(texts, kinds[SP])
    for name, _ in CARRIED[1:]:
        columns[name] = pa.array([row.get(name) for row in rows], kinds[name])
    senders = [row[SP].sender if SP in row else row.get(SENDER, "") for row in rows]
    columns[SENDER] = pa.array(senders, pa.string())
    columns[PARTITION] = pa.array([str(row.get(PARTITION, 0)) for row in rows], pa.string())
    return pa.table(columns)

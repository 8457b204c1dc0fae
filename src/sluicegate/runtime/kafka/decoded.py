"""What the decoders of messages share: which attribute a field gives, and a batch of messages as columns of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from sluicegate.runtime.kafka.cursor import Column, Cursor, Flags, append_texts, gather_texts

if TYPE_CHECKING:
    import pyarrow as pa

BODY, BESIDE, TOLD = "body", "p", "told"
LONGEST_BEGINNING = 768
"""Bytes of a message that are kept for its dead letter."""


@dataclass(frozen=True, slots=True)
class Target:
    """The column of an attribute, what it holds (`cursor.Column.kind`), and what a whole number has to be multiplied by."""

    column: int
    kind: str
    misfit: str
    """The reason where a value does not fit."""
    factor: int = 1


class Decoder(Protocol):
    """How all messages of a topic are read. Handed to executors: plain data."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each column holds."""

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Names that values stand for."""

    def read(self, cursor: Cursor, columns: Sequence[Column], names: Sequence[tuple[int, int]]) -> None:
        """Fill the columns; `names` says where the texts are in the data, and how long each is."""


def decode_messages(decoder: Decoder, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`p` as it was, the message's beginning as `body`, the reason as `told`, and `x0` … for the columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        body = batch.column(BODY)
        columns, told = decode_values(decoder, body)
        beginning = pc.binary_slice(body, 0, LONGEST_BEGINNING)
        names = [BESIDE, BODY, TOLD, *(f"x{at}" for at in range(len(columns)))]
        yield pa.RecordBatch.from_arrays([batch.column(BESIDE), beginning, told, *columns], names)


def make_step(decoder: Decoder) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow`."""

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from decode_messages(decoder, batches)

    return step


def decode_values(decoder: Decoder, body: pa.BinaryArray) -> tuple[list[pa.Array], pa.Array]:
    """A column for each attribute, and the reasons of those that cannot be read; what is NULL is not read."""
    import pyarrow as pa

    count, body = len(body), body.cast(pa.binary())
    _, offsets, values = body.buffers()
    places = np.frombuffer(offsets, np.int32, count + 1, body.offset * 4).astype(np.int64)
    raw = np.frombuffer(values, np.uint8) if values is not None else np.zeros(0, np.uint8)
    data, begins, lengths = append_texts(raw, decoder.texts)
    cursor = Cursor(data, places[:-1], places[1:])
    columns = [Column(count, kind) for kind in decoder.kinds]
    there = ~np.asarray(body.is_null())
    decoder.read(cursor, columns, list(zip(begins.tolist(), lengths.tolist(), strict=True)))
    fine = there & (cursor.problem == 0)
    numbers = pa.array(cursor.problem - 1, pa.int32(), mask=fine | ~there)
    told = pa.DictionaryArray.from_arrays(numbers, pa.array(cursor.reasons, pa.string())).cast(pa.string())
    return [_to_arrow(data, each, fine) for each in columns], told


def _to_arrow(data: NDArray[np.uint8], column: Column, fine: Flags) -> pa.Array:
    import pyarrow as pa

    column.valid &= fine
    if column.kind != "text":
        return pa.array(column.value, mask=~column.valid)
    offsets, texts = gather_texts(data, column)
    validity = pa.py_buffer(np.packbits(column.valid, bitorder="little").tobytes())
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(texts))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)

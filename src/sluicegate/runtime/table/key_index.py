"""Which row is in force under which key: digests of keys and rows, and arrival numbers, forty bytes for each row.

Rows are compared by digest (128 bits of BLAKE2b over the values), so that a table need not be held to see what changed in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from sluicegate.expr.nodes import Value
from sluicegate.runtime.table.table_log import Numbers

if TYPE_CHECKING:
    import pyarrow as pa

Digests: TypeAlias = npt.NDArray[np.bytes_]
Flags: TypeAlias = npt.NDArray[np.bool_]
_SIZE = 16
_NO_DIGESTS: Digests = np.empty(0, f"S{_SIZE}")
_NO_NUMBERS: Numbers = np.empty(0, np.int64)


def digest(rows: Iterable[Sequence[Value]]) -> Digests:
    """A digest for each row of plain values; values of two types differ, and so do NULL and any text."""
    made = b"".join(blake2b(repr(tuple(row)).encode(), digest_size=_SIZE).digest() for row in rows)
    return np.frombuffer(made, f"S{_SIZE}")


def plain_rows(table: pa.Table, names: Sequence[str]) -> list[tuple[Value, ...]]:
    """Values as `runtime.inputs` has them: times as microseconds."""
    import pyarrow as pa

    columns = []
    for name in names:
        column = table[name]
        columns.append(
            (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        )
    return list(zip(*columns, strict=True))


def find_repeated(keys: Digests) -> Flags:
    """Where a key stands more than once."""
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    repeated: Flags = counts[inverse] > 1
    return repeated


def find_last(keys: Digests) -> Flags:
    """Where a key stands for the last time."""
    last = np.zeros(len(keys), np.bool_)
    _, first_from_behind = np.unique(keys[::-1], return_index=True)
    last[len(keys) - 1 - first_from_behind] = True
    return last


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """Rows in force, sorted by the digests of their keys."""

    keys: Digests = field(default_factory=lambda: _NO_DIGESTS)
    rows: Digests = field(default_factory=lambda: _NO_DIGESTS)
    numbers: Numbers = field(default_factory=lambda: _NO_NUMBERS)

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, keys: Digests) -> tuple[Flags, Numbers]:
        """Whether each key has a row in force, and where in the index."""
        at = np.searchsorted(self.keys, keys)
        inside = np.minimum(at, max(len(self.keys) - 1, 0))
        known = (at < len(self.keys)) & (self.keys[inside] == keys) if len(self.keys) else at < 0
        return known, inside.astype(np.int64)

    def find_changed(self, keys: Digests, rows: Digests) -> Flags:
        """Which of these rows are not in force as they are."""
        known, at = self.find(keys)
        changed = ~known
        changed[known] = self.rows[at[known]] != rows[known]
        return changed

    def put(self, keys: Digests, rows: Digests, numbers: Numbers) -> KeyIndex:
        """With rows under these keys, each given once, instead of those that were."""
        kept = ~np.isin(self.keys, keys)
        joined = np.concatenate([self.keys[kept], keys])
        order = np.argsort(joined, kind="stable")
        return KeyIndex(
            joined[order],
            np.concatenate([self.rows[kept], rows])[order],
            np.concatenate([self.numbers[kept], numbers])[order],
        )

    def drop(self, keys: Digests) -> KeyIndex:
        """Without the rows under these keys."""
        kept = ~np.isin(self.keys, keys)
        return KeyIndex(self.keys[kept], self.rows[kept], self.numbers[kept])

"""A table with a key as it changes: what was found is compared with what is in force, and the log told of the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.expr.nodes import Value
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.log_batch import ARRIVAL
from sluicegate.runtime.frames import make_table
from sluicegate.runtime.table.key_index import (
    Digests,
    KeyIndex,
    digest,
    find_last,
    find_repeated,
    plain_rows,
)
from sluicegate.runtime.table.table_log import TableLog

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 1 << 29
"""Of rows that one change may bring."""
MOST_PUSHED = 1_000_000
"""Rows in force of a table that is pushed."""


@dataclass(slots=True)
class Findings:
    """What reading a table has found so far: digests of all of it, and those rows that are not in force as they are."""

    keys: list[Digests] = field(default_factory=list)
    changed: list[pa.Table] = field(default_factory=list)
    changed_keys: list[Digests] = field(default_factory=list)
    changed_rows: list[Digests] = field(default_factory=list)
    gone: list[Digests] = field(default_factory=list)
    """Keys of rows that do not fit the stream: nothing is in force under them."""
    misfits: int = 0
    count: int = 0
    new: int = 0
    """Rows under keys that had none."""
    size: int = 0

    @property
    def repeats(self) -> bool:
        """Whether several rows have one key."""
        return bool(find_repeated(_join(self.keys)).any())


class KeyedRows:
    """The rows in force of one table. One thread changes it."""

    def __init__(self, log: TableLog) -> None:
        self.log, self._stream = log, log.stream
        self._names = [name for name, _ in log.stream.attributes]
        self._key_at = [self._names.index(name) for name in log.stream.key]
        found = log.read_in_force(log.end)
        rows = plain_rows(found, self._names)
        numbers = np.asarray(found[ARRIVAL], np.int64)
        self.index = KeyIndex().put(self._digest_keys(rows), digest(rows), numbers)

    def _digest_keys(self, rows: Iterable[Sequence[Value]]) -> Digests:
        return digest(tuple(row[at] for at in self._key_at) for row in rows)

    def has_key(self, row: Sequence[Value]) -> bool:
        """Whether no part of the row's key is NULL."""
        return all(row[at] is not None for at in self._key_at)

    def look(
        self, found: Findings, rows: Sequence[tuple[Value, ...]], unfit: Sequence[tuple[Value, ...]]
    ) -> None:
        """Rows that were read: of those that are in force as they are only the keys are kept. `unfit` are keys."""
        keys, digests = self._digest_keys(rows), digest(rows)
        changed = self.index.find_changed(keys, digests)
        found.keys.append(keys)
        found.gone.append(digest(unfit))
        found.new += int(np.count_nonzero(~self.index.find(keys)[0]))
        if changed.any():
            table = make_table(self._stream, list(compress(rows, changed)), [0] * int(changed.sum()))
            found.changed.append(table.drop_columns([ARRIVAL]))
            found.changed_keys.append(keys[changed])
            found.changed_rows.append(digests[changed])
            found.size += table.nbytes
        if found.size > MOST_BYTES:
            message = f"the rows of `{self._stream.name}` that came at once are more than {MOST_BYTES} bytes"
            raise refuse_feed("table-too-large", message)

    def take(self, found: Findings, *, whole: bool) -> bool:
        """Put what was found in force; with `whole` everything else ends. Whether anything changed.

        A key that two rows have says nothing about which is meant: neither is in force.
        """
        keys = _join(found.keys)
        twice = np.unique(keys[find_repeated(keys)])
        gone = np.concatenate([_join(found.gone), twice])
        changed, digests = _join(found.changed_keys), _join(found.changed_rows)
        keep = ~np.isin(changed, gone)
        if whole:
            missing = self.index.keys[~np.isin(self.index.keys, keys)]
            gone = np.concatenate([gone, missing])
        return self._put(found.changed, keep, changed[keep], digests[keep], np.unique(gone), found.misfits)

    def upsert(self, rows: pa.Table) -> None:
        """Rows that were pushed, in order: each replaces the one under its key, the last of several is in force."""
        if any(rows[name].null_count for name in self._stream.key):
            message = f"a row of `{self._stream.name}` has no value in its key"
            raise refuse_feed("table-row", message)
        plain = plain_rows(rows, self._names)
        keys, digests = self._digest_keys(plain), digest(plain)
        if len(self.index) + int(np.count_nonzero(~self.index.find(keys)[0])) > MOST_PUSHED:
            message = f"the table `{self._stream.name}` would have more than {MOST_PUSHED} rows"
            raise refuse_feed("table-too-large", message)
        keep = find_last(keys) & self.index.find_changed(keys, digests)
        self._put([rows.select(self._names)], keep, keys[keep], digests[keep], keys[:0], 0)

    def clear(self) -> bool:
        """End every row: of none is it known any more that it is still there. Whether there was one."""
        return self.take(Findings(), whole=True)

    def _put(
        self,
        parts: list[pa.Table],
        keep: np.ndarray,
        keys: Digests,
        digests: Digests,
        gone: Digests,
        dead: int,
    ) -> bool:
        import pyarrow as pa

        known, at = self.index.find(np.concatenate([keys, gone]))
        ends = self.index.numbers[at[known]]
        if not len(keys) and not len(ends):
            return False
        empty = make_table(self._stream, [], []).drop_columns([ARRIVAL])
        rows = pa.concat_tables([empty, *parts])
        rows = rows.filter(pa.array(keep)) if parts else rows
        numbers = self.log.append(rows, ends, dead)
        self.index = self.index.drop(gone).put(keys, digests, numbers)
        return True


def _join(parts: Sequence[Digests]) -> Digests:
    return np.concatenate([KeyIndex().keys, *parts])

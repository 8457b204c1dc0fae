"""One reading of a table after the other: all rows, or by a column that grows those that changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from sluicegate.expr.nodes import Value
from sluicegate.language.database_options import DatabaseTable
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.inputs import Misfit
from sluicegate.runtime.table.databases import Database
from sluicegate.runtime.table.fit_values import find_key, fit_rows, fit_values
from sluicegate.runtime.table.keyed_rows import Findings, KeyedRows

_LOGGER = logging.getLogger(__name__)


class Poll:
    """Reads a table and says what changed. `read` may take long and changes nothing; `take` puts it in force."""

    def __init__(self, rows: KeyedRows, database: Database, declared: DatabaseTable) -> None:
        self._rows, self._database, self._declared = rows, database, declared
        self._stream = rows.log.stream
        self._found, self._whole = Findings(), True
        self._newest: object = None
        self._count, self._misfits = 0, 0
        self._compared: float | None = None

    def read(self) -> None:
        """What there is now; raises where the database does not answer or the table is too large."""
        with self._database.reading():
            count, newest = self._database.count(), self._database.newest()
            if count > self._declared.rows:
                message = f"the table of `{self._stream.name}` has more than {self._declared.rows} rows"
                raise refuse_feed("table-too-large", message)
            self._found, self._whole = self._read_some(count)
        self._newest, self._count = newest, count
        if self._whole:
            self._compared = time.monotonic()

    def take(self) -> bool:
        """Put in force what was read; whether anything changed."""
        found, self._found = self._found, Findings()
        if found.misfits and found.misfits != self._misfits:
            _LOGGER.warning("%d rows of the table of %s do not fit it", found.misfits, self._stream.name)
        if self._whole:
            self._misfits = found.misfits
        return self._rows.take(found, whole=self._whole)

    def forget(self) -> None:
        """What was read is not taken: the next reading is of all rows."""
        self._found, self._compared = Findings(), None

    def _read_some(self, count: int) -> tuple[Findings, bool]:
        """By version where counting tells of nothing that it would miss."""
        if self._newest is not None and not self._is_due() and self._is_plain(count):
            found = self._read_rows(self._newest)
            # where nothing is as new as it was, an older state of the table was restored
            missed = self._count + found.new != count or (count and not found.count)
            if not missed and not found.misfits and not found.repeats:
                return found, False
        return self._read_rows(None), True

    def _is_plain(self, count: int) -> bool:
        """Whether all rows of the last reading came into force, and each row has a key of its own and a version now."""
        if len(self._rows.index) != self._count:
            return False
        return self._database.count_versions() == count == self._database.count_keys(self._stream.key)

    def _is_due(self) -> bool:
        return self._compared is None or time.monotonic() - self._compared >= self._declared.compare / 1e6

    def _read_rows(self, since: object) -> Findings:
        found = Findings()
        for piece in self._database.rows([name for name, _ in self._stream.attributes], since):
            self._look(found, piece)
            if found.count > self._declared.rows:
                message = f"the table of `{self._stream.name}` has more than {self._declared.rows} rows"
                raise refuse_feed("table-too-large", message)
        return found

    def _look(self, found: Findings, piece: Sequence[tuple[Any, ...]]) -> None:
        found.count += len(piece)
        fast = fit_rows(self._stream, piece)
        if fast is not None:
            self._rows.look(found, fast, [])
            return
        rows: list[tuple[Value, ...]] = []
        unfit: list[tuple[Value, ...]] = []
        for each in piece:
            try:
                rows.append(fit_values(self._stream, each))
            except Misfit:
                found.misfits += 1
                key = find_key(self._stream, each)
                unfit += [] if key is None else [key]
        self._rows.look(found, rows, unfit)

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
from sluicegate.runtime.table.fit_values import fit, fit_rows, fit_values
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
        """By version where that can have missed nothing: a row that was deleted, or came late, shows in the count."""
        if self._compared is None or self._newest is None or self._is_due():
            return self._read_rows(None), True
        found = self._read_rows(self._newest)
        if self._count + found.new != count or found.misfits or found.repeats:
            return self._read_rows(None), True
        return found, False

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
                unfit += self._find_key(each)
        self._rows.look(found, rows, unfit)

    def _find_key(self, row: Sequence[object]) -> list[tuple[Value, ...]]:
        """The key of a row that does not fit, where that much of it does."""
        given = dict(zip((name for name, _ in self._stream.attributes), row, strict=True))
        types = dict(self._stream.attributes)
        try:
            return [tuple(fit(name, types[name], given[name]) for name in self._stream.key)]
        except Misfit:
            return []

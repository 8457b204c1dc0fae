"""What goes into the gate and what its readers get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sluicegate.runtime.gate.layout import Layout

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.expr.nodes import Value

Cursor: TypeAlias = str
"""A place in one query's results, as text that only the gate makes and reads."""


@dataclass(frozen=True, slots=True)
class Part:
    """One shape's rows of a tick: columns `q`, `o0`, `o1`, … `versions` has every handle that was evaluated for it, also
    one without rows, with the version of which it was."""

    table: pa.Table
    versions: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Committed:
    """A complete tick. Rows of `stale` handles were computed under a version no longer in force: they were dropped, and
    the caller evaluates these again from where they were; `ended` ones are withdrawn, closed or unknown."""

    tick: int
    stale: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """Unread rows of a tick under an older version, with the columns' output names of that version."""

    tick: int
    version: int
    table: pa.Table


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one tick; `cursor` stands behind the last. `version` is the query's, of which they were committed, and `places`
    their numbers within the tick as committed (None: from 0 on): both stay, however often and after whatever review a row
    is read again."""

    data: pa.Table
    layout: Layout
    tick: int
    cursor: Cursor
    version: int = 0
    places: pa.Array | None = None

    @property
    def rows(self) -> list[dict[str, Value]]:
        """As the interpreter gives them: withheld attributes absent."""
        return self.layout.make_rows(self.data)

    @property
    def table(self) -> pa.Table:
        """Under the outputs' names."""
        return self.layout.name_columns(self.data)


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows of these ticks, both included, can no longer be had."""

    first_tick: int
    last_tick: int
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """No grant is left; the last event (R12)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The query was ended by its user; the last event."""


Event: TypeAlias = Rows | Gap | Withdrawn | Closed

"""A query as written: frozen, equal by value, places outside equality (I6)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from sluicegate.expr.nodes import Expr
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.source import Span


class Start(Enum):
    """Where a query begins to read its sources."""

    LATEST = "LATEST"
    EARLIEST = "EARLIEST"


StartAt: TypeAlias = Start | int
"""A start, or a TIMESTAMP in microseconds."""


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """A window as written; the step is None where none was."""

    size: int
    step: int | None
    rows: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def of_aggregate(self) -> Window:
        """Without a step: tumbling (D5)."""
        step = self.size if self.step is None else self.step
        return TupleWindow(self.size, step) if self.rows else TimeWindow(self.size, step)

    def of_join(self) -> Window:
        """Without a step: released at once (D5)."""
        return TupleWindow(self.size, self.step or 0) if self.rows else TimeWindow(self.size, self.step or 0)


@dataclass(frozen=True, slots=True)
class StreamItem:
    """`stream [AS alias] [window]`."""

    stream: str
    alias: str | None = None
    window: WindowSpec | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NestedItem:
    """`(SELECT …) AS alias [window]`."""

    query: Query
    alias: str
    window: WindowSpec | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GroupItem:
    """`(a JOIN b ON …) [window]`: a join in brackets; the window is that of its rows in the join around it."""

    inner: JoinItem
    window: WindowSpec | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class JoinItem:
    """`left JOIN right ON condition`."""

    left: FromItem
    right: FromItem
    on: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


FromItem: TypeAlias = StreamItem | NestedItem | GroupItem | JoinItem


@dataclass(frozen=True, slots=True)
class Star:
    """`*` or `alias.*`."""

    qualifier: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Output:
    """`expression [AS alias]`."""

    expr: Expr
    alias: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """One SELECT; several FROM items are a comma join."""

    items: tuple[Star | Output, ...]
    sources: tuple[FromItem, ...]
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    window: WindowSpec | None = None
    having: Expr | None = None
    united: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT, or several joined with UNION ALL; a branch in brackets is a query of its own."""

    branches: tuple[SelectQuery | Query, ...]
    start: StartAt | None = None
    on_result: tuple[Hashable, ...] = ()
    """Punctuations of the result, as `language.punctuations` reads them."""
    span: Span | None = field(default=None, compare=False, repr=False)

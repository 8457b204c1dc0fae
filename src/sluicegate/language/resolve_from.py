"""FROM to sources and joins: aliases made unique, windows put where they belong (D5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from sluicegate.errors import Diagnostic
from sluicegate.expr.nodes import TRUE, Column, Expr, columns, conjoin, conjuncts
from sluicegate.graph.operators import Join, Node, Select, Source
from sluicegate.graph.shape import Shape, find_shapes
from sluicegate.graph.windows import Window
from sluicegate.language.lexing import MAX_PROBLEMS
from sluicegate.language.query_syntax import (
    FromItem,
    GroupItem,
    JoinItem,
    NestedItem,
    Query,
    SelectQuery,
    StreamItem,
    WindowSpec,
)
from sluicegate.language.resolve_expression import ExpressionResolver
from sluicegate.language.scope import Relation, Scope, relate_stream, unknown_stream
from sluicegate.policy.catalog import Catalog
from sluicegate.source import Span


@dataclass(frozen=True)
class Side:
    """A part of FROM: its operator, what can be named of it, and the window of its rows in a join around it."""

    node: Node
    relations: tuple[Relation, ...]
    window: WindowSpec | None
    span: Span | None
    joined: bool = False
    mixed: bool = False
    """Its streams have time and tuple windows, so that none is that of its rows."""

    @cached_property
    def shape(self) -> Shape:
        return find_shapes(self.node)[id(self.node)]


class Problems:
    """What was found wrong so far; the same thing at the same place is told once."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    @property
    def full(self) -> bool:
        return len(self.found) >= MAX_PROBLEMS

    def report(self, code: str, message: str, span: Span | None, help: str | None = None) -> None:
        self.add(Diagnostic(code, message, span, help))

    def add(self, *found: Diagnostic) -> None:
        for diagnostic in found:
            if not self.full and diagnostic not in self.found:
                self.found.append(diagnostic)


class FromResolver:
    """Resolves the FROM clauses of one query; aliases are unique over all of it."""

    def __init__(
        self, catalog: Catalog, problems: Problems, resolve_nested: Callable[[Query, str], Node | None]
    ) -> None:
        self.catalog = catalog
        self.problems = problems
        self._resolve_nested = resolve_nested
        self._aliases: set[str] = set()

    def resolve(self, select: SelectQuery) -> Side | None:
        """FROM and WHERE; None where something is wrong."""
        sides = [self._resolve_item(item) for item in select.sources]
        found = [side for side in sides if side is not None]
        self._check_aliases(found, select)
        if len(found) != len(sides):
            return None
        return self._join_all(found, select)

    def _resolve_item(self, item: FromItem) -> Side | None:
        match item:
            case StreamItem():
                return self._resolve_stream(item)
            case NestedItem():
                return self._resolve_query(item)
            case GroupItem(inner, window, span):
                side = self._resolve_item(inner)
                if side is None:
                    return None
                return replace(
                    side, window=window or side.window, mixed=side.mixed and window is None, span=span
                )
            case JoinItem():
                return self._resolve_join(item)

    def _unique(self, alias: str) -> str:
        chosen, count = alias, 1
        while chosen in self._aliases:
            count += 1
            chosen = f"{alias}~{count}"
        self._aliases.add(chosen)
        return chosen

    def _resolve_stream(self, item: StreamItem) -> Side | None:
        stream = self.catalog.streams.get(item.stream)
        if stream is None:
            known = () if self.problems.full else self.catalog.streams
            self.problems.add(unknown_stream(item.stream, item.span, known))
            return None
        alias = item.alias or item.stream
        if alias.startswith("#"):
            self.problems.report(
                "reserved-name", "a name cannot begin with `#`", item.span, "write AS with another name"
            )
            return None
        own = self._unique(alias)
        source = Source(stream.name, own, stream.attributes, stream.event_time)
        return Side(source, (relate_stream(alias, stream, own),), item.window, item.span)

    def _resolve_query(self, item: NestedItem) -> Side | None:
        own = self._unique(item.alias)
        node = self._resolve_nested(item.query, own)
        if node is None:
            return None
        fields = tuple(each for each in node.fields if not each.hidden)
        return Side(node, (Relation(item.alias, f"query `{item.alias}`", fields),), item.window, item.span)

    def _resolve_join(self, item: JoinItem) -> Side | None:
        left, right = self._resolve_item(item.left), self._resolve_item(item.right)
        if left is None or right is None:
            return None
        resolver = ExpressionResolver(Scope(left.relations + right.relations))
        predicate = resolver.resolve_condition(item.on)
        self.problems.add(*resolver.problems)
        return self.join(left, right, TRUE if resolver.problems else predicate, item.span)

    def join(self, left: Side, right: Side, predicate: Expr, span: Span | None) -> Side | None:
        """The join of two sides (D5): of two streams, both need a window."""
        timed = left.shape.timed and right.shape.timed
        before, after = self._find_window(left, timed), self._find_window(right, timed)
        if timed and (before is None or after is None):
            return None
        node = Join(left.node, right.node, predicate, before, after)
        mixed = left.mixed or right.mixed or _differ(left, right)
        return Side(node, left.relations + right.relations, _derive_window(left, right), span, True, mixed)

    def _find_window(self, side: Side, timed: bool) -> Window | None:
        if not side.shape.timed or (side.window is None and not timed):
            return None
        if side.mixed:
            help_ = "write the join in brackets with a window: (a JOIN b ON …) [RANGE 1 HOUR] JOIN c …"
            self.problems.report(
                "window-mixed",
                "this join has time and tuple windows, so its rows have none",
                side.span,
                help_,
            )
        elif side.window is None:
            help_ = "write one after it: [RANGE 1 HOUR]"
            self.problems.report(
                "join-window", "a join of streams needs a window on both sides", side.span, help_
            )
        elif side.window.rows and not side.shape.ordered:
            message = "a tuple window cannot stand over an aggregate: its rows have no arrival order"
            self.problems.report("no-order", message, side.window.span or side.span, "write a time window")
        elif side.window.rows and side.window.step is not None:
            message = "a tuple window of a join has no step"
            self.problems.report("join-rows-step", message, side.window.span or side.span, "leave out SLIDE")
        else:
            return side.window.of_join()
        return None

    def _join_all(self, sides: list[Side], select: SelectQuery) -> Side | None:
        """Comma joins take the conjuncts of WHERE that use several of their streams; the others stay above."""
        scope = Scope(tuple(relation for side in sides for relation in side.relations))
        where: Expr = TRUE
        if select.where is not None:
            resolver = ExpressionResolver(scope)
            where = resolver.resolve_condition(select.where)
            self.problems.add(*resolver.problems)
            if resolver.problems:
                where = TRUE
        if len(sides) == 1:
            return sides[0] if select.where is None else replace(sides[0], node=Select(sides[0].node, where))
        return self._join_commas(sides, where, select.span)

    def _join_commas(self, sides: list[Side], where: Expr, span: Span | None) -> Side | None:
        place = {each.column: at for at, side in enumerate(sides) for each in side.node.fields}
        parts: dict[int, list[Expr]] = {}
        for conjunct in conjuncts(where):
            parts.setdefault(_last_side(conjunct, place), []).append(conjunct)
        joined: Side | None = sides[0]
        for at, side in enumerate(sides[1:], 1):
            joined = self.join(joined, side, conjoin(*parts.get(at, [])), span) if joined else None
        rest = conjoin(*parts.get(0, []))
        if joined is None or rest == TRUE:
            return joined
        return replace(joined, node=Select(joined.node, rest))

    def _check_aliases(self, sides: list[Side], select: SelectQuery) -> None:
        seen: set[str] = set()
        for side in sides:
            for relation in side.relations:
                if relation.alias in seen:
                    message = f"the name `{relation.alias}` stands twice in FROM"
                    self.problems.report(
                        "duplicate-alias", message, side.span, f"write {relation.alias} AS another name"
                    )
                seen.add(relation.alias)


def _last_side(conjunct: Expr, place: dict[Column, int]) -> int:
    """The join that has all that the conjunct uses; 0 for one that uses a single side."""
    used = {place[column] for column in columns(conjunct)}
    return max(used) if len(used) > 1 else 0


def _differ(left: Side, right: Side) -> bool:
    both = left.window is not None and right.window is not None and left.shape.timed and right.shape.timed
    return both and left.window.rows is not right.window.rows  # type: ignore[union-attr]


def _derive_window(left: Side, right: Side) -> WindowSpec | None:
    """The window of a join's rows in a join around it, where none is written: the smallest of its streams'."""
    windows = [side.window for side in (left, right) if side.window is not None and side.shape.timed]
    if not windows:
        return None
    steps = [window.step for window in windows if window.step is not None]
    smallest = min(windows, key=lambda window: window.size)
    return replace(smallest, step=max(steps) if steps else None)

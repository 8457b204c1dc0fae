"""Queries: syntax tree to the core model, against a catalog. Everything wrong is raised together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Expr
from sluicegate.expr.types import COLUMN_TYPES, UNKNOWN
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Node,
    Project,
    Select,
    Union,
    field_of,
    walk,
)
from sluicegate.graph.windows import TupleWindow
from sluicegate.language.from_clause import MAX_DEPTH, MAX_OPERATORS
from sluicegate.language.print_expression import print_expression
from sluicegate.language.queries import parse_query
from sluicegate.language.query_syntax import (
    JoinItem,
    Output,
    Query,
    SelectQuery,
    Star,
    Start,
    StartAt,
    WindowSpec,
)
from sluicegate.language.resolve_aggregate import AggregateBuilder, is_aggregate, name_call
from sluicegate.language.resolve_expression import AGGREGATES, ExpressionResolver
from sluicegate.language.resolve_from import FromResolver, Problems, Side
from sluicegate.language.scope import Scope, suggest
from sluicegate.language.syntax import FuncCall, Name
from sluicegate.language.xml.match_names import match_names
from sluicegate.language.xml.reader import GRAPH, find_root, is_xml
from sluicegate.policy.catalog import Catalog
from sluicegate.source import SourceText, Span

MAX_OUTPUTS = 2_000
RESERVED_OUTPUTS = frozenset({"_grant", "window_start", "window_end"})


@dataclass(frozen=True, slots=True)
class ResolvedQuery:
    """A query of the core model; `outputs` are what its reader sees, in order."""

    root: Node
    outputs: tuple[Field, ...]
    united: bool = False
    start: StartAt = Start.LATEST
    on_result: tuple[Hashable, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    """What its writer should know of how it was read."""

    @property
    def delegating(self) -> bool:
        """Whether its rows are to be passed on: only what the asker holds the grant option on comes back (R15)."""
        return bool(self.on_result)


def read_query(source: str | SourceText, catalog: Catalog) -> ResolvedQuery:
    """Parse and resolve; raises every diagnostic found."""
    query = parse_query(source)
    text = SourceText("<query>", source) if isinstance(source, str) else source
    if not is_xml(text.text):
        return resolve_query(query, catalog)
    if find_root(text) == GRAPH:
        # what writes graphs needs the names of this module; the import waits until both are there
        from sluicegate.language.xml.query_graph import fill_windows

        query, warnings = fill_windows(query, catalog.streams)
    else:
        query, warnings = match_names(query, catalog.streams)
    return replace(resolve_query(query, catalog), warnings=warnings)


def resolve_query(query: Query, catalog: Catalog) -> ResolvedQuery:
    """The query graph of a syntax tree."""
    resolver = _QueryResolver(catalog)
    try:
        root = resolver.resolve(query, "", outermost=True)
    except RecursionError:
        raise DiagnosticError(
            [Diagnostic("too-deep", "the query is nested too deeply", query.span)]
        ) from None
    if root is not None:
        resolver.check_size(root, query)
    united = _is_united(query)
    if root is not None and united:
        _check_united(root, query.span, resolver.problems)
    if resolver.problems.found or root is None:
        raise DiagnosticError(resolver.problems.found)
    outputs = tuple(each for each in root.fields if not each.hidden)
    return ResolvedQuery(root, outputs, united, query.start or Start.LATEST, query.on_result)


def _is_united(query: Query | SelectQuery) -> bool:
    return query.united if isinstance(query, SelectQuery) else any(map(_is_united, query.branches))


class _QueryResolver:
    def __init__(self, catalog: Catalog) -> None:
        self.problems = Problems()
        self._from = FromResolver(catalog, self.problems, self._resolve_nested)

    def _resolve_nested(self, query: Query, alias: str) -> Node | None:
        return self.resolve(query, alias, outermost=False)

    def resolve(self, query: Query | SelectQuery, qualifier: str, *, outermost: bool) -> Node | None:
        """A SELECT or a union whose fields are qualified by `qualifier`; None where something is wrong."""
        if isinstance(query, SelectQuery):
            if query.united and not outermost:
                self.problems.report(
                    "nested-united",
                    "UNITED belongs to the whole query",
                    query.span,
                    "write it in the outermost SELECT",
                )
            return self._resolve_select(query, qualifier)
        branches = [self.resolve(branch, qualifier, outermost=outermost) for branch in query.branches]
        found = [branch for branch in branches if branch is not None]
        if len(found) != len(branches):
            return None
        return found[0] if len(found) == 1 else self._unite(found, query)

    def _unite(self, branches: Sequence[Node], query: Query) -> Node | None:
        outputs = _visible(branches[0])
        for branch, syntax in zip(branches[1:], query.branches[1:], strict=True):
            own = _visible(branch)
            if len(own) != len(outputs):
                message = f"this branch has {len(own)} attributes, the first has {len(outputs)}"
                self.problems.report("union-mismatch", message, syntax.span)
                return None
            for one, other in zip(outputs, own, strict=True):
                if one.type != other.type:
                    message = (
                        f"`{other.name}` is {other.type} here, in the first branch `{one.name}` is {one.type}"
                    )
                    self.problems.report(
                        "union-mismatch", message, syntax.span, f"write CAST({other.name} AS {one.type})"
                    )
                    return None
        return Union(tuple(branches), outputs)

    def _resolve_select(self, select: SelectQuery, qualifier: str) -> Node | None:
        side = self._from.resolve(select)
        if side is None:
            return None
        if is_aggregate(select):
            return self._resolve_aggregate(select, side, qualifier)
        idle = _bracket_window(select)
        if idle is not None:
            help_ = "leave it out, or write an aggregate or a join"
            self.problems.report(
                "idle-window", "this window belongs to no aggregate or join", idle.span, help_
            )
        outputs = self._expand(select, side)
        if not self._check_count(outputs):
            return None
        exprs = self._resolve_all([item.expr for item in outputs], Scope(side.relations))
        return self._project(side.node, outputs, exprs, qualifier, select)

    def _expand(self, select: SelectQuery, side: Side) -> list[Output]:
        """SELECT's items with `*` and `alias.*` written out."""
        outputs: list[Output] = []
        for item in select.items:
            if isinstance(item, Output):
                outputs.append(item)
                continue
            relations = [each for each in side.relations if item.qualifier in ("", each.alias)]
            if not relations:
                aliases = [each.alias for each in side.relations]
                help_ = suggest(item.qualifier, aliases)
                self.problems.report(
                    "unknown-alias", f"unknown stream or alias `{item.qualifier}`", item.span, help_
                )
            for relation in relations:
                outputs.extend(
                    Output(Name(relation.alias, each.name, item.span), None, item.span)
                    for each in relation.fields
                )
        return outputs

    def _check_count(self, outputs: Sequence[Output]) -> bool:
        """Asked before they are resolved: each costs as much as a small query."""
        if len(outputs) <= MAX_OUTPUTS:
            return True
        message = f"a result has at most {MAX_OUTPUTS:,} attributes, not {len(outputs):,}"
        self.problems.report("too-many-outputs", message, outputs[MAX_OUTPUTS].span)
        return False

    def _resolve_all(self, exprs: Sequence[Expr], scope: Scope) -> list[Expr] | None:
        resolver = ExpressionResolver(scope)
        resolved = [resolver.resolve(expr) for expr in exprs]
        self.problems.add(*resolver.problems)
        return None if resolver.problems else resolved

    def _resolve_aggregate(self, select: SelectQuery, side: Side, qualifier: str) -> Node | None:
        builder = AggregateBuilder(side, self.problems)
        for expr in select.group_by:
            builder.add_group(expr)
        outputs = [item for item in select.items if isinstance(item, Output)]
        for item in select.items:
            if isinstance(item, Star):
                builder.broken = True
                self.problems.report(
                    "star-in-aggregate",
                    "`*` cannot stand beside an aggregate",
                    item.span,
                    "name the attributes",
                )
        if not self._check_count(outputs):
            return None
        lifted = [builder.lift(item.expr) for item in outputs]
        having = builder.lift(select.having) if select.having is not None else None
        node = builder.build(self._find_window(select, side), select)
        exprs = self._resolve_all(lifted, builder.scope)
        if having is not None:
            conditions = ExpressionResolver(builder.scope)
            condition = conditions.resolve_condition(having)
            self.problems.add(*conditions.problems)
        if node is None or self.problems.found:
            return None
        above = Select(node, condition) if having is not None else node
        return self._project(above, outputs, exprs, qualifier, select)

    def _find_window(self, select: SelectQuery, side: Side) -> WindowSpec | None:
        own = _bracket_window(select)
        if own is not None and select.window is not None:
            self.problems.report(
                "window-twice", "an aggregate has one window", select.window.span, "leave one of them out"
            )
            return None
        if own is None and select.window is None:
            help_ = (
                "write GROUP BY WINDOW('1 hour', '30 minutes')"
                if side.joined
                else "write one after the stream: [RANGE 1 HOUR]"
            )
            self.problems.report("no-window", "an aggregate needs a window", select.span, help_)
        return own or select.window

    def _project(
        self,
        node: Node,
        outputs: Sequence[Output],
        exprs: Sequence[Expr] | None,
        qualifier: str,
        select: SelectQuery,
    ) -> Node | None:
        if not outputs:
            self.problems.report("no-output", "the query has no attributes", select.span)
        if exprs is None:
            return None
        items: dict[str, Item] = {}
        for output, expr in zip(outputs, exprs, strict=True):
            name = output.alias if output.alias is not None else name_output(output.expr)
            if self._check_output(name, expr, output, items):
                items[name] = Item(Field(qualifier, name, expr.type), expr)
        known = {each.column for each in node.fields}
        bounds = [Item(field_of(bound), bound) for bound in (WINDOW_START, WINDOW_END) if bound in known]
        return None if self.problems.found else Project(node, (*items.values(), *bounds))

    def _check_output(self, name: str, expr: Expr, output: Output, known: dict[str, Item]) -> bool:
        if name in known:
            message = f"two attributes of the result are called `{name[:60]}`"
            self.problems.report("duplicate-output", message, output.span, "name one of them with AS")
        elif name in RESERVED_OUTPUTS or name.startswith("#"):
            self.problems.report(
                "reserved-name", f"`{name}` cannot be an attribute's name", output.span, "name it with AS"
            )
        elif expr.type not in COLUMN_TYPES:
            help_ = "write CAST(NULL AS type)" if expr.type == UNKNOWN else "compare it, or take a part of it"
            self.problems.report(
                "output-type", f"an attribute of the result cannot be {expr.type}", output.span, help_
            )
        else:
            return True
        return False

    def check_size(self, root: Node, query: Query) -> None:
        depth: dict[int, int] = {}
        for node in walk(root):
            depth[id(node)] = 1 + max((depth[id(each)] for each in node.inputs), default=0)
        if len(depth) > MAX_OPERATORS:
            self.problems.report(
                "too-many-operators", f"a query has at most {MAX_OPERATORS:,} operators", query.span
            )
        elif depth[id(root)] > MAX_DEPTH:
            self.problems.report("too-deep", f"operators are nested more than {MAX_DEPTH} deep", query.span)


def _bracket_window(select: SelectQuery) -> WindowSpec | None:
    """The window in brackets on the only source; those inside a join are the join's."""
    only = select.sources[0]
    return None if len(select.sources) > 1 or isinstance(only, JoinItem) else only.window


def _visible(node: Node) -> tuple[Field, ...]:
    return tuple(each for each in node.fields if not each.hidden)


def name_output(expr: Expr) -> str:
    """An attribute keeps its name; an aggregate is named as Spark names it; anything else by its text."""
    if isinstance(expr, Name):
        return expr.name
    if isinstance(expr, FuncCall) and expr.name.upper() in AGGREGATES:
        return name_call(expr)
    return print_expression(expr)


def _check_united(root: Node, span: Span | None, problems: Problems) -> None:
    """R4: uniting would turn AVG into counts and sums, and tuple windows into single values."""
    aggregates = [node for node in walk(root) if isinstance(node, Aggregate)]
    if not aggregates:
        problems.report("united", "UNITED needs an aggregate", span, "leave it out")
    for node in aggregates:
        if isinstance(node.window, TupleWindow):
            problems.report("united", "UNITED cannot have tuple windows", span, "write a time window")
        for call in node.calls:
            if call.function in (AggFunction.AVG, AggFunction.FIRST, AggFunction.LAST):
                help_ = "write SUM, COUNT, COUNT(DISTINCT …), MIN or MAX"
                problems.report("united", f"UNITED cannot have {call.function.value}", span, help_)

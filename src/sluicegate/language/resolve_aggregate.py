"""Aggregates of a SELECT: their functions and groups, and what the expressions above them may name."""

from __future__ import annotations

from dataclasses import dataclass, field

from sluicegate.errors import Diagnostic
from sluicegate.expr.nodes import NULL, Column, Expr
from sluicegate.expr.rebuild import transform
from sluicegate.expr.types import COLUMN_TYPES, INTERVAL, NUMERIC, Type
from sluicegate.graph.operators import AggCall, AggFunction, Aggregate, Field, Item, field_of, result_type
from sluicegate.language.print_expression import print_expression
from sluicegate.language.query_syntax import Output, SelectQuery, WindowSpec
from sluicegate.language.resolve_expression import AGGREGATES, ExpressionResolver
from sluicegate.language.resolve_from import Problems, Side
from sluicegate.language.scope import Scope
from sluicegate.language.syntax import FuncCall, Lit, Name, Resolved, map_syntax, span_of


def is_aggregate(select: SelectQuery) -> bool:
    exprs = [item.expr for item in select.items if isinstance(item, Output)]
    if select.group_by or select.window is not None or select.having is not None:
        return True
    return any(_has_call(expr) for expr in exprs)


def _has_call(expr: Expr) -> bool:
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, FuncCall) and node.name.upper() in AGGREGATES:
            return True
        stack.extend(node.children)
    return False


def name_call(call: FuncCall) -> str:
    """`avg(Pos)`, `count(DISTINCT SID)`, `count(*)`: the name of an aggregate without an alias."""
    if call.star:
        return f"{call.name.lower()}(*)"
    args = [Name("", arg.name) if isinstance(arg, Name) else arg for arg in call.args]
    inner = ", ".join(arg.name if isinstance(arg, Name) else print_expression(arg) for arg in args)
    return f"{call.name.lower()}({'DISTINCT ' if call.distinct else ''}{inner})"


def _bare_text(expr: Expr) -> str:
    """Its text without qualifiers: the same however the query wrote it, so that a printed graph reads back equal."""
    return print_expression(
        transform(expr, lambda node: Column("", node.name, node.of) if isinstance(node, Column) else None)
    )


def _name_field(function: AggFunction, arg: Expr | None) -> str:
    distinct = "DISTINCT " if function is AggFunction.COUNT_DISTINCT else ""
    name = "count" if distinct else function.value.lower()
    return f"{name}({distinct}{'*' if arg is None else _bare_text(arg)})"


@dataclass
class AggregateBuilder:
    """Collects the functions that SELECT and HAVING use and replaces them by columns of the aggregate."""

    side: Side
    problems: Problems
    groups: list[Item] = field(default_factory=list)
    calls: list[AggCall] = field(default_factory=list)
    broken: bool = False
    _names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.scope = Scope(self.side.relations)

    def report(self, code: str, message: str, at: Expr, help: str | None = None) -> None:
        self.broken = True
        self.problems.report(code, message, span_of(at), help)

    def add_group(self, expr: Expr) -> None:
        if isinstance(expr, Lit):
            self.report(
                "group-constant", "GROUP BY takes attributes", expr, "name the attribute, not its position"
            )
            return
        resolved = self._resolve_below(expr)
        if resolved is None or any(item.expr == resolved for item in self.groups):
            return
        if resolved.type not in COLUMN_TYPES:
            self.report("type-mismatch", f"rows cannot be grouped by {resolved.type}", expr)
            return
        made = (
            field_of(resolved)
            if isinstance(resolved, Column)
            else self._make_field(_bare_text(resolved), resolved.type)
        )
        self.groups.append(Item(made, resolved))

    def _make_field(self, name: str, of: Type) -> Field:
        chosen, count = name, 1
        while chosen in self._names:
            count += 1
            chosen = f"{name}~{count}"
        self._names.add(chosen)
        return Field("", chosen, of)

    def _resolve_below(self, expr: Expr) -> Expr | None:
        resolver = ExpressionResolver(self.scope)
        resolved = resolver.resolve(expr)
        self.problems.add(*resolver.problems)
        self.broken = self.broken or bool(resolver.problems)
        return None if resolver.problems else resolved

    def lift(self, expr: Expr) -> Expr:
        """The expression over the aggregate's output; what is neither grouped nor aggregated is reported."""
        if isinstance(expr, FuncCall) and expr.name.upper() in AGGREGATES:
            column = self._add_call(expr)
            return Resolved(NULL if column is None else column, expr.span)
        grouped = self._find_group(expr)
        if grouped is not None:
            return Resolved(grouped, span_of(expr))
        if isinstance(expr, Name):
            self._report_ungrouped(expr)
            return expr
        return map_syntax(expr, self.lift)

    def _find_group(self, expr: Expr) -> Column | None:
        computed = any(not isinstance(item.expr, Column) for item in self.groups)
        if isinstance(expr, Lit) or not (computed or isinstance(expr, Name)) or _has_call(expr):
            return None
        resolver = ExpressionResolver(self.scope)
        resolved = resolver.resolve(expr)
        if resolver.problems:
            return None
        return next((item.field.column for item in self.groups if item.expr == resolved), None)

    def _report_ungrouped(self, name: Name) -> None:
        if name.qualifier != "self" and not isinstance(self.scope.find(name), Diagnostic):
            message = f"the attribute `{name}` is neither grouped nor aggregated"
            self.report("not-grouped", message, name, "add it to GROUP BY or write an aggregate of it")

    def _add_call(self, call: FuncCall) -> Column | None:
        function = self._find_function(call)
        if function is None:
            return None
        arg = self._resolve_below(call.args[0]) if call.args else None
        if call.args and arg is None:
            return None
        if arg is not None and not self._check_argument(function, arg.type, call):
            return None
        for known in self.calls:
            if known.function is function and known.arg == arg:
                return known.field.column
        made = self._make_field(_name_field(function, arg), result_type(function, arg.type if arg else None))
        self.calls.append(AggCall(function, arg, made))
        return made.column

    def _find_function(self, call: FuncCall) -> AggFunction | None:
        name = call.name.upper()
        if call.star and name != "COUNT":
            self.report("bad-aggregate", f"`{name}(*)` is not defined", call, "name an attribute")
        elif call.distinct and name != "COUNT":
            self.report("bad-aggregate", f"DISTINCT is read in COUNT only, not in {name}", call)
        elif not call.star and len(call.args) != 1:
            self.report("bad-aggregate", f"{name} takes one argument", call)
        else:
            return AggFunction.COUNT_DISTINCT if call.distinct else AggFunction[name]
        return None

    def _check_argument(self, function: AggFunction, of: Type, call: FuncCall) -> bool:
        if function in (AggFunction.FIRST, AggFunction.LAST) and not self.side.shape.ordered:
            message = f"{function.value} cannot stand over an aggregate: its rows have no arrival order"
            self.report("no-order", message, call, "write MIN or MAX")
            return False
        numeric = function in (AggFunction.SUM, AggFunction.AVG)
        fits = of in NUMERIC if numeric else of in COLUMN_TYPES or of == INTERVAL
        if not fits:
            self.report("type-mismatch", f"{function.value} cannot be applied to {of}", call)
        return fits

    def build(self, window: WindowSpec | None, select: SelectQuery) -> Aggregate | None:
        """The operator, once every expression above it has been lifted."""
        if not self.calls:
            if not self.broken:
                help_ = "write an aggregate such as COUNT(*); GROUP BY alone would be SELECT DISTINCT"
                self.problems.report(
                    "no-aggregate", "GROUP BY and HAVING need an aggregate", select.span, help_
                )
            return None
        if window is None or self.broken or not self._check_window(window):
            return None
        return Aggregate(self.side.node, tuple(self.calls), window.of_aggregate(), tuple(self.groups))

    def _check_window(self, window: WindowSpec) -> bool:
        shape = self.side.shape
        if not shape.timed:
            self.problems.report(
                "table-window", "a table has no event time and no windows", window.span, "aggregate a stream"
            )
        elif window.rows and not shape.ordered:
            message = "a tuple window cannot stand over an aggregate: its rows have no arrival order"
            self.problems.report("no-order", message, window.span, "write a time window")
        else:
            return True
        return False

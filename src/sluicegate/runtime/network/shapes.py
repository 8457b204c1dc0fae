"""An authorized plan as (shape, constants): plans that differ in constants alone, or in names, have one shape.

σ(Platoon = 'X' AND Pos > 5)(Position AS p)   becomes   σ(Platoon = $0 AND Pos > $1)(Position AS s0), ('X', 5.0)

What cannot be a column of the subscription table stays in the shape: sets, polygons, LIKE patterns, NULLs, truth values,
units of time, and the literals that a query computes with in its output.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.evaluate import Environment, evaluate
from sluicegate.expr.nodes import Call, Column, Compare, Expr, FactRef, In, Literal, Parameter, SelfRef
from sluicegate.expr.rebuild import map_children
from sluicegate.expr.types import Kind, Type
from sluicegate.expr.values import conform
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Shield,
    Source,
    Unfold,
    UnfoldCase,
    Union,
    shown_field,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.runtime.network.lift import settle_plan
from sluicegate.targets.duckdb_expressions import settle
from sluicegate.targets.duckdb_text import infer_type

LONGEST_TEXT = 1 << 16
_SCALARS = frozenset(
    {Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.STRING, Kind.TIMESTAMP, Kind.TIME, Kind.INTERVAL}
)
_IN_CALLS = frozenset({Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class Moving:
    """A constant that follows a stream (D3): its value is looked up in each tick."""

    attribute: str


Constant = Literal | Moving


@dataclass(frozen=True, slots=True)
class Shaped:
    """The shape of a plan, equal for all plans that may share it, and this plan's constants, by the parameters' numbers."""

    shape: AuthorizedPlan
    types: tuple[Type, ...]
    constants: tuple[Constant, ...]
    key: str
    """Equal for equal shapes, and for no others."""


def find_shape(plan: AuthorizedPlan, env: Environment, moving: Mapping[str, Type] | None = None) -> Shaped:
    """Values of profile and facts are constants like the query's own; `moving` names those that follow a stream."""
    made: dict[int, _Renamed] = {}
    abstract = _Abstract(env, moving or {})
    for number, node in enumerate(walk(plan.root)):
        made[id(node)] = _rename(node, number, made, abstract)
    root = made[id(plan.root)]
    outputs = tuple(
        OutputColumn(f"o{at}", root.of(each.column), each.shown and root.of(each.shown))
        for at, each in enumerate(plan.outputs)
    )
    shape = AuthorizedPlan(root.node, outputs, plan.label and root.of(plan.label))
    settled, types = settle_plan(shape), tuple(abstract.types)
    key = hashlib.sha256(describe((settled, types)).encode()).hexdigest()
    return Shaped(settled, types, tuple(abstract.constants), key)


@dataclass(frozen=True, slots=True)
class _Renamed:
    """A node of the shape, and what the columns of the plan's node are called there."""

    node: Node
    columns: Mapping[Column, Column]

    def of(self, column: Column) -> Column:
        return column if column in (WINDOW_START, WINDOW_END) else self.columns[column]


@dataclass(slots=True)
class _Abstract:
    """Takes constants out of expressions."""

    env: Environment
    moving: Mapping[str, Type]
    constants: list[Constant] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)

    def policy(self, expr: Expr, columns: Mapping[Column, Column]) -> Expr:
        """With every constant taken out: a predicate."""
        return self._take(expr, columns, literals=True)

    def value(self, expr: Expr, columns: Mapping[Column, Column]) -> Expr:
        """With what policies name taken out, the query's own literals left in: an output, key or argument."""
        return self._take(expr, columns, literals=False)

    def _take(self, expr: Expr, columns: Mapping[Column, Column], literals: bool) -> Expr:
        match expr:
            case Column():
                return expr if expr in (WINDOW_START, WINDOW_END) else columns[expr]
            case SelfRef(name=name) if name in self.moving:
                return self._add(Moving(name), self.moving[name])
            case SelfRef() | FactRef():
                return self._keep(_bind(expr, self.env), _SCALARS)
            case Literal() if literals:
                return self._keep(expr, _SCALARS)
            case Call(args=args):
                below = [each if isinstance(each, Literal) else None for each in args]
                kept = [
                    self._take(each, columns, literals)
                    if literal is None
                    else self._keep(literal, _IN_CALLS if literals else frozenset())
                    for each, literal in zip(args, below, strict=True)
                ]
                return Call(expr.function, tuple(kept), expr.of)
            case Compare(op, left, right):
                left, right = settle(self._bound(left), self._bound(right))
                return Compare(op, self._take(left, columns, literals), self._take(right, columns, literals))
            case In(arg, items):
                settled = [settle(arg, self._bound(each))[1] for each in items]
                taken = tuple(self._take(each, columns, literals) for each in settled)
                return In(self._take(arg, columns, literals), taken)
            case _:
                return map_children(expr, lambda child: self._take(child, columns, literals))

    def _bound(self, expr: Expr) -> Expr:
        """Facts and profile as values, of which `settle` may have to know that they are numbers."""
        if isinstance(expr, FactRef) or (isinstance(expr, SelfRef) and expr.name not in self.moving):
            return _bind(expr, self.env)
        return expr

    def _keep(self, literal: Literal, kinds: frozenset[Kind]) -> Expr:
        value = conform(literal.value, literal.of) if literal.of.kind in kinds else None
        if value is None or not _is_encodable(value):
            return literal
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            message = f"a text of {len(value)} characters, where {LONGEST_TEXT} are the most"
            raise DiagnosticError([Diagnostic("constant-too-long", message)])
        return self._add(Literal(value, literal.of), literal.of)

    def _add(self, constant: Constant, of: Type) -> Parameter:
        self.constants.append(constant)
        self.types.append(of)
        return Parameter(len(self.constants) - 1, of)


def _bind(expr: SelfRef | FactRef, env: Environment) -> Literal:
    value = evaluate(expr, {}, env)
    return Literal(value, expr.of if expr.of.kind is not Kind.UNKNOWN else infer_type(value))


def _is_encodable(value: object) -> bool:
    return not isinstance(value, str) or not any("\ud800" <= char <= "\udfff" for char in value)


def _rename(node: Node, number: int, made: Mapping[int, _Renamed], abstract: _Abstract) -> _Renamed:
    below = [made[id(each)] for each in node.inputs]
    match node:
        case Source():
            source = Source(node.stream, f"s{number}", node.attributes, node.event_time)
            return _Renamed(source, _pair(node.fields, source.fields))
        case Shield():
            return _shield(node, below[0], abstract)
        case Select():
            predicate = abstract.policy(node.predicate, below[0].columns)
            return _Renamed(Select(below[0].node, predicate), below[0].columns)
        case Project():
            return _project(node, number, below[0], abstract)
        case Aggregate():
            return _aggregate(node, number, below[0], abstract)
        case Join():
            return _join(node, below, abstract)
        case Union():
            outputs = tuple(_new(each, number, at) for at, each in enumerate(node.outputs))
            union = Union(tuple(each.node for each in below), outputs)
            return _Renamed(union, _pair(node.outputs, outputs))
        case Unfold():
            return _unfold(node, below[0], abstract)
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _shield(node: Shield, below: _Renamed, abstract: _Abstract) -> _Renamed:
    """Whose query it is, is a constant: a lost role or a new punctuation of the server is a changed row."""
    if not isinstance(below.node, Source):
        raise TypeError(f"a shield above {type(below.node).__name__}")
    shield = Shield(below.node, node.needed, node.told, abstract.policy(node.who, {}))
    return _Renamed(shield, _pair(node.fields, shield.fields))


def _pair(old: tuple[Field, ...], new: tuple[Field, ...]) -> dict[Column, Column]:
    return {one.column: other.column for one, other in zip(old, new, strict=True)}


def _new(old: Field, number: int, at: int) -> Field:
    """A column of its own; hidden ones stay hidden."""
    if old.column in (WINDOW_START, WINDOW_END):
        return old
    return Field(f"{'#' if old.hidden else ''}n{number}", str(at), old.type)


def _items(items: tuple[Item, ...], number: int, below: _Renamed, abstract: _Abstract) -> tuple[Item, ...]:
    return tuple(
        Item(_new(each.field, number, at), _computed(each, below, abstract)) for at, each in enumerate(items)
    )


def _computed(item: Item, below: _Renamed, abstract: _Abstract) -> Expr:
    """A hidden column is the rewriter's: a grant's predicate or name, in which plans of one shape may differ."""
    take = abstract.policy if item.field.hidden else abstract.value
    return take(item.expr, below.columns)


def _project(node: Project, number: int, below: _Renamed, abstract: _Abstract) -> _Renamed:
    items = _items(node.items, number, below, abstract)
    old, new = (tuple(each.field for each in each_items) for each_items in (node.items, items))
    return _Renamed(Project(below.node, items), _pair(old, new))


def _aggregate(node: Aggregate, number: int, below: _Renamed, abstract: _Abstract) -> _Renamed:
    keys = _items(node.group_by, number, below, abstract)
    calls = tuple(
        AggCall(
            each.function,
            _argument(each, below, abstract),
            _new(each.field, number, len(keys) + at),
        )
        for at, each in enumerate(node.calls)
    )
    partition = tuple(below.of(each) for each in node.partition)
    columns = {
        **{old.field.column: new.field.column for old, new in zip(node.group_by, keys, strict=True)},
        **{old.field.column: new.field.column for old, new in zip(node.calls, calls, strict=True)},
        **dict(zip(node.partition, partition, strict=True)),
    }
    return _Renamed(Aggregate(below.node, calls, node.window, keys, partition), columns)


def _argument(call: AggCall, below: _Renamed, abstract: _Abstract) -> Expr | None:
    if call.arg is None:
        return None
    take = abstract.policy if call.function is AggFunction.COUNT_IF else abstract.value
    return take(call.arg, below.columns)


def _join(node: Join, below: list[_Renamed], abstract: _Abstract) -> _Renamed:
    columns = {**below[0].columns, **below[1].columns}
    predicate = abstract.policy(node.predicate, columns)
    sides = [tuple(below[at].of(each) for each in own) for at, own in enumerate(_partitions(node))]
    join = Join(below[0].node, below[1].node, predicate, node.left_window, node.right_window, *sides)
    return _Renamed(join, columns)


def _partitions(node: Join) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    return node.left_partition, node.right_partition


def _unfold(node: Unfold, below: _Renamed, abstract: _Abstract) -> _Renamed:
    variable = tuple(below.of(each) for each in node.variable)
    cases = tuple(
        UnfoldCase(abstract.policy(case.when, below.columns), tuple(below.of(each) for each in case.shown))
        for case in node.cases
    )
    shown = {
        shown_field(old).column: shown_field(new).column
        for old, new in zip(node.variable, variable, strict=True)
    }
    return _Renamed(Unfold(below.node, variable, cases), {**below.columns, **shown})


def describe(value: object) -> str:
    """Equal values have one text, in every process: the order in which a set is printed differs."""
    match value:
        case frozenset():
            return "{" + ", ".join(sorted(map(describe, value))) + "}"
        case tuple() | list():
            return "(" + ", ".join(map(describe, value)) + ")"
        case Enum():
            return str(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            parts = [describe(getattr(value, each.name)) for each in fields(value) if each.compare]
            return f"{type(value).__name__}({', '.join(parts)})"
        case _:
            return repr(value)

"""An authorized plan made ready for the languages of stream engines: fewer operators, values put in, event time a column.

Every step keeps the rows. What is left that such a language has no words for, its target refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.evaluate import Environment
from sluicegate.expr.nodes import And, Column, Compare, Expr, In, IsNull, Literal, Not, Op, Or
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.simplify import simplify, simplify_filter
from sluicegate.expr.types import TIMESTAMP
from sluicegate.graph.operators import (
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    field_of,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rebuild import rebuild, with_inputs
from sluicegate.graph.windows import TimeWindow
from sluicegate.rewrite.merge_filters import merge_filters
from sluicegate.targets.base import UNSUPPORTED
from sluicegate.targets.duckdb_expressions import bind


@dataclass(frozen=True)
class Prepared:
    """The plan, and the column that has the event time of a node, by `id`; None where nothing above needs it."""

    plan: AuthorizedPlan
    times: Mapping[int, Column | None]


def prepare(plan: AuthorizedPlan, env: Environment, target: str) -> Prepared:
    """Profile, facts and constants put in, conditions merged, projections joined, event time carried."""
    spread = replace(plan, root=rebuild(plan.root, _spread))
    folded = _Folder(env).fold(spread)
    joined = replace(folded, root=rebuild(merge_filters(folded).root, _join_projects))
    return _Carrier(target).carry(joined)


def refuse(target: str, message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic(UNSUPPORTED, f"{target} {message}")])


def positive(expr: Expr) -> Expr:
    """TRUE on the same rows, and without NOT: then it does not matter what an engine makes of NOT and NULL."""
    match expr:
        case Not(arg):
            return _negative(arg)
        case And(args):
            return And(tuple(map(positive, args)))
        case Or(args):
            return Or(tuple(map(positive, args)))
        case In(arg, items):
            return Or(tuple(Compare(Op.EQ, arg, item) for item in items))
        case _:
            return expr


def _negative(expr: Expr) -> Expr:
    match expr:
        case Not(arg):
            return positive(arg)
        case And(args):
            return Or(tuple(map(_negative, args)))
        case Or(args):
            return And(tuple(map(_negative, args)))
        case Compare(op, left, right):
            return Compare(op.negated, left, right)
        case In(arg, items):
            return And(tuple(Compare(Op.NE, arg, item) for item in items))
        case IsNull():
            return Not(expr)
        case Column() | Literal():
            return Compare(Op.EQ, expr, Literal(False, expr.type))
        case _:
            return Not(expr)


def _spread(node: Node) -> Node:
    """π(∪(a, b)) as ∪(π(a), π(b)): what is the same in all rows of a branch becomes a constant there."""
    if not isinstance(node, Project) or not isinstance(node.input, Union):
        return node
    union = node.input
    bounds = {each.column for each in union.fields[len(union.outputs) :]}
    if any(not bounds <= {each.column for each in branch.fields} for branch in union.branches):
        return node
    branches = []
    for branch in union.branches:
        own = [each.column for each in branch.fields if each.column not in bounds]
        columns = [each.column for each in union.outputs]
        mapping: dict[Column, Expr] = dict(zip(columns, own, strict=True))
        items = tuple(Item(each.field, substitute(each.expr, mapping)) for each in node.items)
        branches.append(Project(branch, items, node.by))
    outputs = tuple(each.field for each in node.items if each.field.qualifier != "#window")
    return Union(tuple(branches), outputs)


def _join_projects(node: Node) -> Node:
    if not isinstance(node, Project) or not isinstance(node.input, Project):
        return node
    inner = node.input
    if not all(isinstance(each.expr, Column | Literal) for each in inner.items):
        return node
    mapping: dict[Column, Expr] = {each.field.column: each.expr for each in inner.items}
    items = tuple(Item(each.field, substitute(each.expr, mapping)) for each in node.items)
    return Project(inner.input, items, tuple(dict.fromkeys((*inner.by, *node.by))))


class _Folder:
    """Puts in what is known: profile, facts, and columns that have one value in all rows."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._known: dict[int, dict[Column, Expr]] = {}

    def fold(self, plan: AuthorizedPlan) -> AuthorizedPlan:
        made: dict[int, Node] = {}
        for node in walk(plan.root):
            new = self._fold(with_inputs(node, [made[id(each)] for each in node.inputs]))
            made[id(node)] = new
        self._kept = made
        return replace(plan, root=made[id(plan.root)])

    def _fold(self, node: Node) -> Node:
        known = dict(chain.from_iterable(self._known[id(each)].items() for each in node.inputs))
        if isinstance(node, Union):
            known = self._common(node)
        match node:
            case Select():
                node = replace(node, predicate=simplify_filter(self._put_in(node.predicate, known)))
            case Join():
                left, right = (_vary(each, known) for each in (node.left_partition, node.right_partition))
                predicate = simplify_filter(self._put_in(node.predicate, known))
                node = replace(node, predicate=predicate, left_partition=left, right_partition=right)
            case Project():
                items = tuple(
                    Item(each.field, simplify(self._put_in(each.expr, known))) for each in node.items
                )
                node = replace(node, items=items)
                known = {each.field.column: each.expr for each in items if isinstance(each.expr, Literal)}
            case Aggregate():
                known = {each: known[each] for each in node.partition if each in known}
                node = _restore(replace(node, partition=_vary(node.partition, known)), known)
            case _:
                pass
        self._known[id(node)] = known
        return node

    def _put_in(self, expr: Expr, known: Mapping[Column, Expr]) -> Expr:
        return substitute(bind(expr, self._env), known)

    def _common(self, node: Union) -> dict[Column, Expr]:
        found: dict[Column, Expr] = {}
        for at, output in enumerate(node.outputs):
            values = {
                self._known[id(each)].get([f for f in each.fields if f.qualifier != "#window"][at].column)
                for each in node.branches
            }
            value = values.pop() if len(values) == 1 else None
            if value is not None:
                found[output.column] = value
        return found


def _restore(node: Aggregate, known: Mapping[Column, Expr]) -> Node:
    """With the columns that it need not be parted by any more as constants above it."""
    if not known:
        return node
    own = tuple(Item(each, each.column) for each in node.fields)
    return Project(node, (*own, *(Item(field_of(column), value) for column, value in known.items())))


def _vary(partition: tuple[Column, ...], known: Mapping[Column, Expr]) -> tuple[Column, ...]:
    return tuple(each for each in partition if each not in known)


class _Carrier:
    def __init__(self, target: str) -> None:
        self._target = target
        self._made: dict[int, Node] = {}
        self._times: dict[int, Column | None] = {}

    def carry(self, plan: AuthorizedPlan) -> Prepared:
        needed = _find_needed(plan.root)
        for node in walk(plan.root):
            new = self._carry(
                with_inputs(node, [self._made[id(each)] for each in node.inputs]), id(node) in needed
            )
            self._made[id(node)] = new
        return Prepared(replace(plan, root=self._made[id(plan.root)]), self._times)

    def _carry(self, node: Node, needed: bool) -> Node:
        time: Column | None = None
        match node:
            case Source(event_time=name) if name is not None:
                time = next(each.column for each in node.fields if each.name == name)
            case Select():
                time = self._times[id(node.input)]
            case Project():
                time = self._times[id(node.input)]
                passed = [each.field.column for each in node.items if each.expr == time]
                if passed:
                    time = passed[0]
                elif needed and time is not None:
                    carried = Field("#time", f"{time.qualifier}_{time.name}", TIMESTAMP)
                    node = replace(node, items=(*node.items, Item(carried, time)))
                    time = carried.column
                else:
                    time = None
            case _:
                pass
        if needed and time is None:
            message = "cannot express a window by time above a table, a join, an aggregate or a union"
            raise refuse(self._target, message)
        self._times[id(node)] = time
        return node


def _find_needed(root: Node) -> set[int]:
    """Nodes whose event time something above reads: a join, or a window by time."""
    needed: set[int] = set()
    for node in reversed(list(walk(root))):
        reads = isinstance(node, Join) or (
            isinstance(node, Aggregate) and isinstance(node.window, TimeWindow)
        )
        passes = id(node) in needed and isinstance(node, Select | Project)
        if reads or passes:
            needed.update(map(id, node.inputs))
    return needed

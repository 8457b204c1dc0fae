"""Authorized plans in one form: what two of them have in common is then equal, whoever wrote it and under whichever names.

Sources are called by their streams, computed columns by what they compute. Filters stand as low as they can, projections as
high: a plan is an operator tree without projections and one projection on top, except below unions and unfolds. What
commutes is put in order, unless an operator above goes by the order of rows (tuple windows, FIRST, LAST; D5).

π(a)(σ(k > 3)(π(a, k)(S AS x)))   and   π(a)(σ(3 < k)(S))   become   π(a)(σ(k > 3)(S))
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column, Expr, conjuncts
from sluicegate.expr.rebuild import substitute
from sluicegate.graph.operators import (
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
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.rewrite.sharing.filters import add_filter, rename_apart
from sluicegate.rewrite.sharing.idents import Idents, hash_text
from sluicegate.rewrite.sharing.join_order import order_tables
from sluicegate.rewrite.sharing.terms import order_expr, write_key
from sluicegate.rewrite.sharing.views import (
    BOUNDS,
    View,
    put_projection,
    take_bare,
    with_bare,
    without_bounds,
)


def canonicalize(plan: AuthorizedPlan, idents: Idents, bind: Callable[[Expr], Expr]) -> AuthorizedPlan:
    """The plan in canonical form; `bind` puts in what its expressions mean for its principal."""
    maker = _Maker(idents, bind, _find_ordered(plan.root))
    made: dict[int, View] = {}
    for node in walk(plan.root):
        made[id(node)] = maker.make(node, [made[id(each)] for each in node.inputs])
    view = made[id(plan.root)]
    used = [each for output in plan.outputs for each in (output.column, output.shown) if each is not None]
    used += [] if plan.label is None else [plan.label]
    used += [each for each in BOUNDS if each in view.exprs]
    root, names = put_projection(view, used, idents)
    outputs = tuple(
        OutputColumn(each.name, names[each.column], None if each.shown is None else names[each.shown])
        for each in plan.outputs
    )
    return AuthorizedPlan(root, outputs, None if plan.label is None else names[plan.label])


def _find_ordered(root: Node) -> frozenset[int]:
    """The nodes, by `id`, of whose rows the order matters to something above."""
    found: set[int] = set()
    for node in reversed(list(walk(root))):
        for below, counted in zip(node.inputs, _orders(node), strict=True):
            if counted or (id(node) in found and not isinstance(node, Aggregate)):
                found.add(id(below))
    return frozenset(found)


def _orders(node: Node) -> tuple[bool, ...]:
    match node:
        case Aggregate():
            by_order = any(each.function in (AggFunction.FIRST, AggFunction.LAST) for each in node.calls)
            return (by_order or isinstance(node.window, TupleWindow),)
        case Join():
            return isinstance(node.left_window, TupleWindow), isinstance(node.right_window, TupleWindow)
        case _:
            return tuple(False for _ in node.inputs)


class _Maker:
    def __init__(self, idents: Idents, bind: Callable[[Expr], Expr], ordered: frozenset[int]) -> None:
        self.idents = idents
        self.bind = bind
        self.ordered = ordered

    def make(self, node: Node, below: Sequence[View]) -> View:
        """The view of a node whose inputs have these."""
        match node:
            case Source():
                source = replace(node, alias=node.stream)
                return View(source, _pair(node.fields, source.fields))
            case Shield():
                return self._shield(node, below[0])
            case Select(predicate=predicate):
                parts = conjuncts(self._over(predicate, below[0].exprs))
                return View(add_filter(below[0].core, parts), below[0].exprs)
            case Project(items=items):
                exprs = {each.field.column: self._over(each.expr, below[0].exprs) for each in items}
                return View(below[0].core, exprs)
            case Aggregate():
                return self._aggregate(node, below[0])
            case Join():
                return self._join(node, *below)
            case Union():
                return self._union(node, below)
            case Unfold():
                return self._unfold(node, below[0])
            case _:
                raise InvariantError(f"a network has no {type(node).__name__}")

    def _over(self, expr: Expr, exprs: Mapping[Column, Expr]) -> Expr:
        return order_expr(substitute(self.bind(expr), exprs))

    def _shield(self, node: Shield, below: View) -> View:
        if not isinstance(below.core, Source):
            raise InvariantError("a shield stands directly above its source")
        told = tuple(sorted(node.told))
        shield = Shield(below.core, tuple(sorted(node.needed)), told, self.bind(node.who))
        source = len(node.input.fields)
        # the flags of told attributes are sorted with them; the roles come last in both
        flags = dict(zip(node.told, node.fields[source:-1], strict=True))
        old = (*node.fields[:source], *(flags[name] for name in told), node.fields[-1])
        return View(shield, _pair(old, shield.fields))

    def _aggregate(self, node: Aggregate, below: View) -> View:
        below = with_bare(below, node.partition, self.idents)
        keys = sorted(
            ((self._over(each.expr, below.exprs), each.field) for each in node.group_by), key=_by_text
        )
        calls = sorted(
            (
                (each.function, None if each.arg is None else self._over(each.arg, below.exprs), each.field)
                for each in node.calls
            ),
            key=lambda each: (each[0].value, "" if each[1] is None else write_key(each[1]), each[2].hidden),
        )
        partition = sorted((take_bare(below, each) for each in node.partition), key=write_key)
        texts = [[write_key(expr), field.hidden] for expr, field in keys]
        texts += [
            [function.value, "" if arg is None else write_key(arg), field.hidden]
            for function, arg, field in calls
        ]
        mark = self._mark(
            "aggregate", [below.core], [texts, repr(node.window), [write_key(each) for each in partition]]
        )
        names = [
            _fresh(field, mark, at)
            for at, field in enumerate([*(f for _, f in keys), *(f for _, _, f in calls)])
        ]
        items = tuple(Item(name, expr) for name, (expr, _) in zip(names, keys, strict=False))
        made = tuple(
            AggCall(function, arg, name)
            for name, (function, arg, _) in zip(names[len(keys) :], calls, strict=True)
        )
        core = Aggregate(below.core, made, node.window, items, tuple(partition))
        exprs: dict[Column, Expr] = {
            old.column: new.column
            for old, new in zip([*(f for _, f in keys), *(f for _, _, f in calls)], names, strict=True)
        }
        exprs |= {each: below.exprs[each] for each in node.partition}
        exprs |= {each: each for each in BOUNDS} if isinstance(node.window, TimeWindow) else {}
        return View(core, exprs)

    def _mark(self, kind: str, inputs: Sequence[Node], more: object) -> str:
        below = [self.idents.digest(each) for each in inputs]
        return "~" + hash_text(json.dumps([kind, below, more]))

    def _join(self, node: Join, left: View, right: View) -> View:
        sides = [
            (
                without_bounds(with_bare(left, node.left_partition, self.idents), self.idents),
                node.left_window,
                node.left_partition,
            ),
            (
                without_bounds(with_bare(right, node.right_partition, self.idents), self.idents),
                node.right_window,
                node.right_partition,
            ),
        ]
        if id(node) not in self.ordered:
            sides.sort(key=lambda each: (self.idents.skeleton(each[0].core), repr(each[1])))
        (one, one_window, one_parts), (two, two_window, two_parts) = sides
        renamed, names = rename_apart(two.core, (each.column for each in one.core.fields))
        two = View(renamed, {old: substitute(expr, names) for old, expr in two.exprs.items()})
        exprs = {**one.exprs, **two.exprs}
        predicate = self._over(node.predicate, exprs)
        join = Join(
            one.core,
            two.core,
            predicate,
            one_window,
            two_window,
            tuple(sorted((take_bare(one, each) for each in one_parts), key=write_key)),
            tuple(sorted((take_bare(two, each) for each in two_parts), key=write_key)),
        )
        core = add_filter(join, conjuncts(predicate))
        if isinstance(core, Join) and id(node) not in self.ordered:
            core = order_tables(core, self.idents)
        return View(core, exprs)

    def _union(self, node: Union, below: Sequence[View]) -> View:
        ordered = id(node) in self.ordered
        outputs = [each.column for each in node.outputs]
        views: list[View] = []
        for branch, view in zip(node.branches, below, strict=True):
            own = [each.column for each in branch.fields if each.column not in BOUNDS]
            bounds = {each: view.exprs[each] for each in BOUNDS if each in view.exprs}
            named = {new: view.exprs[old] for new, old in zip(outputs, own, strict=True)} | bounds
            views += self._flatten(View(view.core, named), ordered)
        if len(views) == 1 and not ordered:
            return views[0]
        branches = [put_projection(each, each.exprs, self.idents, in_order=True)[0] for each in views]
        if not ordered:
            branches.sort(key=self.idents.digest)
        mark = self._mark("union", branches, [each.hidden for each in node.outputs])
        fields = tuple(_fresh(each, mark, at) for at, each in enumerate(node.outputs))
        core = Union(tuple(branches), fields)
        bounded = {field.column: field.column for field in core.fields[len(fields) :]}
        return View(core, {**_pair(node.outputs, fields), **bounded})

    def _flatten(self, view: View, ordered: bool) -> list[View]:
        """A union of unions is one, where nothing counts on the order of branches."""
        if ordered or not isinstance(view.core, Union):
            return [view]
        found = []
        for branch in view.core.branches:
            inner = {each.column: each.column for each in branch.fields}
            core: Node = branch
            exprs: dict[Column, Expr] = dict(inner)
            if isinstance(branch, Project):
                core, exprs = branch.input, {each.field.column: each.expr for each in branch.items}
            if any(bound in view.exprs and bound not in exprs for bound in BOUNDS):
                return [view]
            own = [exprs[column] for column in inner if column not in BOUNDS]
            exprs |= zip((each.column for each in view.core.outputs), own, strict=True)
            found.append(View(core, {old: substitute(expr, exprs) for old, expr in view.exprs.items()}))
        return found

    def _unfold(self, node: Unfold, below: View) -> View:
        core, names = put_projection(below, below.exprs, self.idents)
        if {shown_field(names[each]) for each in node.variable} & set(core.fields):
            # what was unfolded before has that flag already
            core, names = put_projection(below, below.exprs, self.idents, renamed=frozenset(node.variable))
        exprs: dict[Column, Expr] = dict(names)
        cases = tuple(
            UnfoldCase(
                self._over(each.when, exprs),
                tuple(sorted((names[column] for column in each.shown), key=write_key)),
            )
            for each in node.cases
        )
        variable = tuple(sorted((names[each] for each in node.variable), key=write_key))
        shown = {shown_field(each).column: shown_field(names[each]).column for each in node.variable}
        return View(Unfold(core, variable, cases), {**exprs, **shown})


def _pair(old: Iterable[Field], new: Iterable[Field]) -> dict[Column, Expr]:
    return {one.column: other.column for one, other in zip(old, new, strict=True)}


def _fresh(old: Field, mark: str, at: int) -> Field:
    return Field(("#" if old.hidden else "") + mark, str(at), old.type)


def _by_text(entry: tuple[Expr, Field]) -> tuple[str, bool]:
    return write_key(entry[0]), entry[1].hidden

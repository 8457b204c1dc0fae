"""Asked and allowed as predicates: what decisions and notices compare (R9).

Facts that are not public, and profile attributes that follow a stream, stay in them as unknowns. Everything is a list of
conjuncts over leaf columns, and these have names of their own throughout a query, so that lists may be put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from sluicegate.expr.nodes import (
    Arith,
    ArithOp,
    Column,
    Compare,
    Expr,
    FactRef,
    IsNull,
    Literal,
    Not,
    Op,
    Or,
    SelfRef,
    Value,
    columns,
    conjoin,
    conjuncts,
    disjoin,
    walk,
)
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.solve import Answer, Sat, Unknown, Unsat, witness
from sluicegate.expr.types import BIGINT, INTERVAL
from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import TimeWindow, Window
from sluicegate.rewrite.blocks import (
    AggLeaf,
    Block,
    JoinTree,
    SourceLeaf,
    Tree,
    UnionLeaf,
    aliases,
    is_plain,
    joins,
    leaves,
)
from sluicegate.rewrite.candidates import Candidates, event_time
from sluicegate.rewrite.shorten import merge_equal, settle

Parts = tuple[Expr, ...]
"""Conjuncts."""

_MOST_TIED = 3
"""A choice that speaks of so many sources is taken apart."""
_COUNTS = frozenset({AggFunction.COUNT, AggFunction.COUNT_DISTINCT})


def asked(block: Block) -> Parts:
    """What a block asks of its joined tuples: selections, join predicates, and event times where windows need them."""
    parts = [*block.where]
    for join in joins(block.tree):
        parts += [*join.predicate, *join.left_where, *join.right_where]
    for leaf in leaves(block.tree):
        if isinstance(leaf, AggLeaf):
            parts += _counts(leaf, parts)
    return (*parts, *_timed(block.tree))


def input_of(leaf: AggLeaf) -> Parts:
    """What an aggregate asks of its input: a tuple without event time is in no window (D5)."""
    return (*asked(leaf.input), *(Not(IsNull(time)) for time in times_of(leaf.input.tree)))


def _counts(leaf: AggLeaf, parts: Sequence[Expr]) -> Iterator[Expr]:
    """An empty group gives no row."""
    used = {column for part in parts for column in columns(part)}
    for call in leaf.calls:
        if call.field.column in used and call.function in _COUNTS:
            least = 1 if call.arg is None else 0
            yield Compare(Op.GE, call.field.column, Literal(least, BIGINT))


def times_of(tree: Tree) -> Iterator[Column]:
    """The event times of the sources joined here."""
    for leaf in leaves(tree):
        time = event_time(leaf.source) if isinstance(leaf, SourceLeaf) else None
        if time is not None:
            yield time


def _has_time(tree: Tree) -> bool:
    return any(
        not isinstance(leaf, SourceLeaf) or event_time(leaf.source) is not None for leaf in leaves(tree)
    )


def _timed(tree: Tree) -> Iterator[Expr]:
    """Streams that are joined have event time; a table is joined whatever the time."""
    if isinstance(tree, JoinTree):
        if _has_time(tree.left) and _has_time(tree.right):
            yield from (Not(IsNull(time)) for time in times_of(tree))
        else:
            yield from _timed(tree.left)
            yield from _timed(tree.right)


def window_conditions(tree: Tree, used: frozenset[Column], widest: Mapping[frozenset[str], Window]) -> Parts:
    """How far apart joined tuples may be, for joins whose sides' event times other conditions speak of.

    `widest` has the windows of joins that grants widen.
    """
    found: list[Expr] = []
    for join in joins(tree):
        left, right = tuple(times_of(join.left)), tuple(times_of(join.right))
        if not is_plain(join) or used.isdisjoint(left) or used.isdisjoint(right):
            continue
        sides = ((join.left_window, left, right), (join.right_window, right, left))
        for window, earlier, later in sides:
            if isinstance(window, TimeWindow):
                size = max(window.size, getattr(widest.get(aliases(join)), "size", 0))
                found += _within(earlier, later, size)
    return tuple(found)


def _within(earlier: Sequence[Column], later: Sequence[Column], size: int) -> Iterator[Expr]:
    """A side's event time is the latest of its tuples'."""
    for late in later:
        apart = (Arith(ArithOp.SUB, late, early) for early in earlier)
        yield disjoin(*(Compare(Op.LT, each, Literal(size, INTERVAL)) for each in apart))


def keys_of(leaf: AggLeaf) -> dict[Column, Expr]:
    """What a group's row says of each of its tuples."""
    return {item.field.column: item.expr for item in leaf.group_by}


def branch_items(leaf: UnionLeaf, branch: Block) -> dict[Column, Expr]:
    """What a union's row is in one of its branches."""
    return {each.column: item.expr for each, item in zip(leaf.fields, branch.items, strict=True)}


def put_in(parts: Iterable[Expr], mapping: Mapping[Column, Expr]) -> Parts:
    return tuple(substitute(part, mapping) for part in parts)


def find(parts: Iterable[Expr], prefer: Sequence[Column] = ()) -> Answer:
    """A row on which all parts are TRUE."""
    same, told = merge_equal([part for given in parts for part in conjuncts(given)])
    wanted = tuple(dict.fromkeys(same.get(column, column) for column in prefer))
    answer = _by_cases(told, wanted)
    if not isinstance(answer, Sat):
        return answer
    row = dict(answer.row)
    return Sat({**row, **{each: row[kept] for each, kept in same.items() if kept in row}}, answer.unknowns)


def _by_cases(parts: list[Expr], prefer: tuple[Column, ...]) -> Answer:
    """A choice between conditions on different tuples ties all of them together: each of its cases does not."""
    ties = next((part for part in parts if isinstance(part, Or) and _spans(part) >= _MOST_TIED), None)
    if not isinstance(ties, Or):
        return _in_groups(parts, prefer)
    answer: Answer = Unsat()
    for case in ties.args:
        found = _in_groups([*(part for part in parts if part is not ties), *conjuncts(case)], prefer)
        if isinstance(found, Sat):
            return found
        answer = found if isinstance(found, Unknown) else answer
    return answer


def _spans(part: Expr) -> int:
    return len({column.qualifier for column in columns(part)})


def _in_groups(parts: Iterable[Expr], prefer: tuple[Column, ...]) -> Answer:
    """Parts that have no column or unknown in common are solved apart."""
    row: dict[Column, Value] = {}
    unknowns: dict[Expr, Value] = {}
    doubt: Unknown | None = None
    for group, used in _split(parts):
        answer = _ask(tuple(group), tuple(each for each in prefer if each in used))
        if isinstance(answer, Unsat):
            return answer
        if isinstance(answer, Unknown):
            doubt = answer
        else:
            row.update(answer.row)
            unknowns.update(answer.unknowns)
    if doubt is not None:
        return doubt
    free = tuple(each for each in prefer if each not in row)
    rest = _ask((), free) if free else None
    return Sat({**row, **(rest.row if isinstance(rest, Sat) else {})}, unknowns)


@lru_cache(maxsize=4096)
def _ask(group: Parts, prefer: tuple[Column, ...]) -> Answer:
    """Of one query most questions share most groups."""
    return witness(conjoin(*group), prefer)


def contradicts(parts: Iterable[Expr]) -> bool:
    """Whether it is proven that no row satisfies all parts."""
    return isinstance(find(parts), Unsat)


def _split(parts: Iterable[Expr]) -> list[tuple[list[Expr], frozenset[Expr]]]:
    """Parts in groups that share nothing, each with what it speaks of."""
    groups: list[tuple[list[Expr], frozenset[Expr]]] = []
    for part in dict.fromkeys(map(settle, parts)):
        used: frozenset[Expr] = frozenset(
            node for node in walk(part) if isinstance(node, Column | FactRef | SelfRef)
        )
        together, apart = [part], []
        for group, known in groups:
            if known & used:
                together, used = [*group, *together], used | known
            else:
                apart.append((group, known))
        groups = [*apart, (together, used)]
    return groups


def could_apply(tree: Tree, candidates: Candidates) -> bool:
    """Whether grants, valid here or not, name everything that the tree reads; if not, the query is denied."""
    return not any(denied_streams(tree, candidates))


def denied_streams(tree: Tree, candidates: Candidates) -> Iterator[str]:
    """The streams that no grant names in their place; a union is denied where every branch is (R5)."""
    match tree:
        case SourceLeaf(source):
            if not candidates.reads.get(tree.alias):
                yield source.stream
        case JoinTree():
            if not candidates.joins.get(aliases(tree)):
                yield from denied_streams(tree.left, candidates)
                yield from denied_streams(tree.right, candidates)
        case AggLeaf():
            if not candidates.aggregates.get(tree.name):
                yield from denied_streams(tree.input.tree, candidates)
        case UnionLeaf():
            denied = [list(denied_streams(branch.tree, candidates)) for branch in tree.branches]
            if all(denied):
                yield from (stream for each in denied for stream in each)

"""Find out what a query needs of each leaf column, by lineage (R1).

Required: in a predicate, a join key, a group-by or a computed expression; a grant that hides it is of no use.
Optional: only in the output, bare or under an aggregate; it is left out where hidden. Unused: drops out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from sluicegate.expr.nodes import Column, Expr, columns
from sluicegate.rewrite.blocks import AggLeaf, Block, JoinTree, UnionLeaf, joins, leaves


class Need(IntEnum):
    UNUSED = 0
    OPTIONAL = 1
    REQUIRED = 2


@dataclass(frozen=True)
class Usage:
    """The need of every leaf column and of every block's items."""

    needs: Mapping[Column, Need] = field(default_factory=dict)
    items: Mapping[int, tuple[Need, ...]] = field(default_factory=dict)
    """For each block (by identity) the need of its items."""
    above: frozenset[Column] = frozenset()
    """Columns required by more than their own block's predicates: by outputs, keys, aggregates or what follows."""
    told: frozenset[Column] = frozenset()
    """Columns whose values leave their block, bare or computed: what a row shows is said of these (R4)."""

    def need(self, column: Column) -> Need:
        return self.needs.get(column, Need.UNUSED)

    def item_needs(self, block: Block) -> tuple[Need, ...]:
        return self.items[id(block)]


def set_usage(block: Block) -> Usage:
    """Usage for a query all of whose items are output."""
    collector = _Collector()
    collector.block(block, tuple(Need.OPTIONAL for _ in block.items))
    return Usage(collector.needs, collector.items, frozenset(collector.above), frozenset(collector.told))


class _Collector:
    def __init__(self) -> None:
        self.needs: dict[Column, Need] = {}
        self.items: dict[int, tuple[Need, ...]] = {}
        self.above: set[Column] = set()
        self.told: set[Column] = set()

    def _raise(self, used: Iterable[Column], need: Need) -> None:
        for column in used:
            self.needs[column] = max(need, self.needs.get(column, Need.UNUSED))

    def _use(self, expr: Expr, need: Need) -> None:
        """A bare column passes the need on; whatever is computed requires its columns."""
        if need is Need.UNUSED:
            return
        used = columns(expr)
        passed = need if isinstance(expr, Column) else Need.REQUIRED
        self._raise(used, passed)
        self.told |= used
        if passed is Need.REQUIRED:
            self.above |= used

    def block(self, block: Block, needs: tuple[Need, ...]) -> None:
        self.items[id(block)] = needs
        for item, need in zip(block.items, needs, strict=True):
            self._use(item.expr, need)
        for predicate in (*block.where, *(part for join in joins(block.tree) for part in _predicates(join))):
            self._raise(columns(predicate), Need.REQUIRED)
        for leaf in leaves(block.tree):
            if isinstance(leaf, AggLeaf):
                self._aggregate(leaf)
            elif isinstance(leaf, UnionLeaf):
                self._union(leaf)

    def _aggregate(self, leaf: AggLeaf) -> None:
        used = any(self.needs.get(call.field.column, Need.UNUSED) for call in leaf.calls)
        if not used:
            self._raise([call.field.column for call in leaf.calls], Need.OPTIONAL)
        for call in leaf.calls:
            if call.arg is not None:
                self._use(call.arg, self.needs.get(call.field.column, Need.UNUSED))
        for item in leaf.group_by:
            self._raise(columns(item.expr), Need.REQUIRED)
            self.above |= columns(item.expr)
            self.told |= columns(item.expr)
        # The input's items were inlined into calls and keys: they add no need of their own.
        self.block(leaf.input, tuple(Need.UNUSED for _ in leaf.input.items))

    def _union(self, leaf: UnionLeaf) -> None:
        needs = tuple(self.needs.get(each.column, Need.UNUSED) for each in leaf.fields)
        for branch in leaf.branches:
            self.block(branch, needs)


def _predicates(join: JoinTree) -> tuple[Expr, ...]:
    return (*join.predicate, *join.left_where, *join.right_where)

"""The normal form that rewriting works on: blocks of select-project-join over leaves.

A leaf is a source, an aggregate over a block, or a union of blocks. Nested queries are inlined (D4), so that
`block.where` and the joins' predicates speak of leaf columns only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from sluicegate.expr.nodes import Column, Expr
from sluicegate.graph.operators import AggCall, Field, Item, Source
from sluicegate.graph.windows import TupleWindow, Window


@dataclass(frozen=True, slots=True)
class SourceLeaf:
    source: Source

    @property
    def alias(self) -> str:
        return self.source.alias

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.source.fields


@dataclass(frozen=True, slots=True)
class AggLeaf:
    """Σ over a block; its output columns have the qualifier `name`, which is unique in the query."""

    name: str
    input: Block
    calls: tuple[AggCall, ...]
    window: Window
    group_by: tuple[Item, ...]

    @property
    def alias(self) -> str:
        return self.name

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*(item.field for item in self.group_by), *(call.field for call in self.calls))


@dataclass(frozen=True, slots=True)
class UnionLeaf:
    """∪ of blocks whose items agree with `fields` by position."""

    name: str
    branches: tuple[Block, ...]
    fields: tuple[Field, ...]

    @property
    def alias(self) -> str:
        return self.name


Leaf: TypeAlias = SourceLeaf | AggLeaf | UnionLeaf


@dataclass(frozen=True, slots=True)
class JoinTree:
    """⋈ of two trees. Selections stay below a side only where that side's window counts tuples."""

    left: Tree
    right: Tree
    predicate: tuple[Expr, ...]
    left_window: Window | None
    right_window: Window | None
    left_where: tuple[Expr, ...] = ()
    right_where: tuple[Expr, ...] = ()
    over_union: bool = False
    """A branch of what was written as a join over a union: no select-project-join to R2 and R3."""

    @property
    def counts_tuples(self) -> bool:
        return isinstance(self.left_window, TupleWindow) or isinstance(self.right_window, TupleWindow)


Tree: TypeAlias = Leaf | JoinTree


@dataclass(frozen=True, slots=True)
class Block:
    """π(items)(σ(where)(tree))."""

    tree: Tree
    where: tuple[Expr, ...]
    items: tuple[Item, ...]


def leaves(tree: Tree) -> Iterator[Leaf]:
    """From left to right."""
    if isinstance(tree, JoinTree):
        yield from leaves(tree.left)
        yield from leaves(tree.right)
    else:
        yield tree


def joins(tree: Tree) -> Iterator[JoinTree]:
    """Every join of the tree, inner ones first."""
    if isinstance(tree, JoinTree):
        yield from joins(tree.left)
        yield from joins(tree.right)
        yield tree


def aliases(tree: Tree) -> frozenset[str]:
    """The qualifiers of the tree's leaves: they name it, since no two trees of a query share them."""
    return frozenset(leaf.alias for leaf in leaves(tree))


def is_plain(tree: Tree) -> bool:
    """Whether only sources are joined, by time: what R2 and R3 ask of an input's shape."""
    return all(isinstance(leaf, SourceLeaf) for leaf in leaves(tree)) and not any(
        join.counts_tuples or join.left_where or join.right_where or join.over_union for join in joins(tree)
    )


def sub_blocks(block: Block) -> Iterator[Block]:
    """The blocks directly inside this one."""
    for leaf in leaves(block.tree):
        if isinstance(leaf, AggLeaf):
            yield leaf.input
        elif isinstance(leaf, UnionLeaf):
            yield from leaf.branches


def all_blocks(block: Block) -> Iterator[Block]:
    """The block and all inside it, outer ones first."""
    yield block
    for inner in sub_blocks(block):
        yield from all_blocks(inner)


def streams_read(tree: Tree) -> frozenset[str]:
    """Every stream below the tree, through aggregates and unions too."""
    found: set[str] = set()
    for leaf in leaves(tree):
        match leaf:
            case SourceLeaf(source):
                found.add(source.stream)
            case AggLeaf():
                found |= streams_read(leaf.input.tree)
            case UnionLeaf():
                for branch in leaf.branches:
                    found |= streams_read(branch.tree)
    return frozenset(found)


def linked_streams(tree: Tree) -> frozenset[str]:
    """Streams that meet themselves in this tree's joins: there all occurrences use one grant (R4)."""
    seen: set[str] = set()
    twice: set[str] = set()
    for leaf in leaves(tree):
        own = streams_read(leaf)
        twice |= seen & own
        seen |= own
    return frozenset(twice)


def own_columns(expr_columns: frozenset[Column], alias: str) -> frozenset[Column]:
    return frozenset(column for column in expr_columns if column.qualifier == alias)

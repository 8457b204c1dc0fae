"""What the shields of a query's punctuated sources are asked: which attributes a tuple is needed with, which it only tells.

Told: in the output alone, bare, and not under an aggregate; where its policy hides it, it is left out. All else that is
used is needed, and a tuple that hides any of it is dropped (R15): an aggregate over part of what it counts would lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sluicegate.expr.nodes import Call, Column, Compare, Expr, Literal, Not, Op, conjoin
from sluicegate.expr.roles import ALL_ROLES, COMMON_ROLES
from sluicegate.expr.types import BIGINT, BOOLEAN, STRING
from sluicegate.graph.operators import Field as GraphField
from sluicegate.graph.operators import Item, Node, Project, Select, Shield, Unfold, UnfoldCase, allowed_field
from sluicegate.policy.bind import Binder
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.verdict import servers_on, standing_of
from sluicegate.policy.who import Who, write_who
from sluicegate.rewrite.blocks import AggLeaf, Block, SourceLeaf, UnionLeaf, leaves
from sluicegate.rewrite.passes.set_usage import Need, Usage

EVERY_ROLE = Literal(ALL_ROLES, BIGINT)
NO_ROLE = Literal(0, BIGINT)


@dataclass(frozen=True)
class Shields:
    """The shields of a query, by the alias of the source."""

    of: Mapping[str, Shield] = field(default_factory=dict)

    def flags(self, alias: str) -> tuple[Column, ...]:
        """The columns that a shield adds; none where the source has no shield."""
        shield = self.of.get(alias)
        return () if shield is None else tuple(each.column for each in shield.fields if each.hidden)

    def roles(self, alias: str) -> tuple[Column, ...]:
        return self.flags(alias)[-1:]

    def allowed(self, alias: str) -> dict[Column, Column]:
        """For each attribute that is only told, the flag that tells whether the tuple's policy allows it."""
        shield = self.of.get(alias)
        if shield is None:
            return {}
        own = {each.name: each.column for each in shield.input.fields}
        return {own[name]: allowed_field(own[name]).column for name in shield.told}


def make_shields(block: Block, usage: Usage, binder: Binder) -> Shields:
    """One for each source of the query whose stream is punctuated."""
    found = _find(block, usage, binder.catalog, aggregated=False)
    return Shields(
        {each.input.alias: replace(each, who=who_asks(binder, each.input.stream)) for each in found}
    )


def who_asks(binder: Binder, stream: str) -> Literal:
    """For whom a shield judges the stream's tuples: the principal with its roles, and what the server adds."""
    standing = standing_of(binder.catalog, binder.user.name)
    return Literal(write_who(Who(standing, servers_on(binder.catalog, stream), binder.delegating)), STRING)


def _find(block: Block, usage: Usage, catalog: Catalog, *, aggregated: bool) -> Iterator[Shield]:
    for leaf in leaves(block.tree):
        match leaf:
            case SourceLeaf(source):
                stream = catalog.streams.get(source.stream)
                if stream is not None and stream.carries_policies:
                    yield _make(leaf, usage, aggregated=aggregated)
            case AggLeaf():
                yield from _find(leaf.input, usage, catalog, aggregated=True)
            case UnionLeaf():
                for branch in leaf.branches:
                    yield from _find(branch, usage, catalog, aggregated=aggregated)


def _make(leaf: SourceLeaf, usage: Usage, *, aggregated: bool) -> Shield:
    needs = {each.name: usage.need(each.column) for each in leaf.fields}
    told = tuple(name for name, need in needs.items() if need is Need.OPTIONAL and not aggregated)
    needed = tuple(name for name, need in needs.items() if need is not Need.UNUSED and name not in told)
    return Shield(leaf.source, needed, told)


def common(roles: tuple[Expr, ...]) -> Expr | None:
    """What the policies behind a row allow together; None where no policy is."""
    distinct = tuple(dict.fromkeys(roles))
    if not distinct:
        return None
    return distinct[0] if len(distinct) == 1 else Call(COMMON_ROLES, distinct, BIGINT)


def keep_common(node: Node, roles: tuple[Expr, ...]) -> Node:
    """Rows whose policies have a role in common: one with none is never output (R15)."""
    shared = common(roles)
    return node if shared is None else Select(node, Compare(Op.NE, shared, NO_ROLE))


def hide(node: Node, column: Column, allowed: Column, shown: Expr | None) -> tuple[Node, Column]:
    """Leave the column out of rows whose policy hides it; `shown` tells where a grant shows it, if not everywhere."""
    if isinstance(shown, Column):
        seen = GraphField("#seen:" + column.qualifier, column.name, BOOLEAN)
        passed = (Item(each, each.column) for each in node.fields if each.column != shown)
        node = Project(node, (*passed, Item(seen, shown)))
        shown = seen.column
    when = allowed if shown is None else conjoin(allowed, shown)
    cases = (UnfoldCase(when, (column,)), UnfoldCase(Not(when), ()))
    made = Unfold(node, (column,), cases)
    return made, made.fields[-1].column

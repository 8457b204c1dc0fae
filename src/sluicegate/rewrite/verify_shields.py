"""Proves that no tuple of a punctuated stream leaves but through its shield (I1 for R13–R15).

What is used of it the shield was asked for; what is only told is not shown where the policy hides it; and rows made of
several tuples are released only where their policies have a role in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Call, Column, Compare, Expr, Literal, Op
from sluicegate.expr.roles import ALL_ROLES, COMMON_ROLES
from sluicegate.expr.types import STRING
from sluicegate.graph.operators import AggFunction, Aggregate, Shield, allowed_field, roles_field
from sluicegate.policy.bind import Binder
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.verdict import servers_on, standing_of
from sluicegate.policy.who import Who, write_who
from sluicegate.rewrite.verify_atoms import Atoms, Key, key_of, resolve
from sluicegate.rewrite.verify_region import Region, Shielded, Uses, own_column


def shield_region(node: Shield, number: int, atoms: Atoms, binder: Binder) -> Region:
    """The rows of a source that pass its shield."""
    source = node.input
    stream = binder.catalog.streams.get(source.stream)
    if stream is None or not stream.carries_policies:
        raise InvariantError(f"I1: `{source.stream}` is not punctuated, and the plan has a shield for it")
    standing = standing_of(binder.catalog, binder.user.name)
    asks = write_who(Who(standing, servers_on(binder.catalog, source.stream), binder.delegating))
    if node.who != Literal(asks, STRING):
        raise InvariantError(f"I1: the shield of `{source.stream}` judges for somebody else")
    env: dict[Key, Expr] = {}
    allowed: dict[str, int] = {}
    for name, of in source.attributes:
        if name in node.told:
            flag = allowed_field(Column(source.alias, name, of)).column
            env[key_of(flag)] = own_column(number, flag)
            allowed[name] = atoms.number(own_column(number, flag))
    roles = roles_field(source.alias).column
    env[key_of(roles)] = own_column(number, roles)
    made = Shielded(frozenset(node.needed), allowed, key_of(own_column(number, roles)))
    return Region({source.alias: source}, env=env, shields={source.alias: made})


def is_roles_check(predicate: Expr, region: Region) -> bool:
    """Whether it asks only that the region's policies have a role in common: that chooses no population."""
    checked = _checked_roles(resolve(predicate, region.env))
    known = {each.roles for each in region.shields.values()} | {leaf.roles for leaf in region.leaves}
    return checked is not None and checked <= known


def _checked_roles(predicate: Expr) -> frozenset[Key] | None:
    match predicate:
        case Compare(Op.NE, roles, Literal(0)):
            return roles_in(roles)
        case _:
            return None


def roles_in(expr: Expr) -> frozenset[Key] | None:
    """The role columns of which this is what they have in common; None for all else."""
    match expr:
        case Column():
            return frozenset({key_of(expr)})
        case Call(function, args) if function == COMMON_ROLES:
            parts = [roles_in(each) for each in args]
            known = [each for each in parts if each is not None]
            return frozenset[Key]().union(*known) if len(known) == len(parts) else None
        case _:
            return None


@dataclass(frozen=True)
class ShieldCheck:
    """For one region, where rows leave it."""

    region: Region
    atoms: Atoms
    catalog: Catalog

    def check(self, uses: Uses) -> None:
        """Raises unless all that is used passed a shield, and the roles have something in common."""
        if self.region.dead:
            return
        for alias, source in self.region.sources.items():
            if not self.catalog.streams[source.stream].carries_policies:
                continue
            shield = self.region.shields.get(alias)
            if shield is None:
                raise InvariantError(
                    f"I1: `{source.stream}` is punctuated, and the plan has no shield for it"
                )
            self._check_uses(alias, source.stream, shield, uses)
        self._check_common()

    def _check_uses(self, alias: str, stream: str, shield: Shielded, uses: Uses) -> None:
        for name in sorted(uses.all_of(alias) - shield.needed):
            raise InvariantError(f"I1: the shield of `{stream}` was not asked for `{name}`, which is used")
        for name, masks in uses.masked.get(alias, ()):
            if name not in shield.needed and not self._is_hidden(shield.allowed.get(name), masks):
                raise InvariantError(f"I1: `{name}` of `{stream}` is shown where its policy may hide it")

    def _is_hidden(self, allowed: int | None, masks: frozenset[Key]) -> bool:
        """Whether every row that shows the column is one whose policy allows it."""
        return any(
            all(not masks.isdisjoint(each.nulled) or allowed in each.facts for each in clause.options)
            for clause in self.region.option.clauses
            if clause.decides
        )

    def roles(self) -> frozenset[Key]:
        """The role columns of all that has policies in the region; raises where some were lost on the way."""
        found = {each.roles for each in self.region.shields.values()}
        for leaf in self.region.leaves:
            if leaf.shielded and leaf.roles is None:
                raise InvariantError("I1: rows of punctuated streams meet others without their policies")
            if leaf.roles is not None:
                found.add(leaf.roles)
        return frozenset(found)

    def _check_common(self) -> None:
        """One tuple's roles were checked by its shield, those of a union's row in its branch."""
        leaves = self.region.leaves
        if len(self.region.shields) + len(leaves) < 2 and not any(leaf.unchecked for leaf in leaves):
            return
        wanted = self.roles()
        alone = len(wanted) < 2 and not any(leaf.unchecked for leaf in leaves)
        if wanted and not alone and not any(wanted <= each for each in self._checked()):
            raise InvariantError("I1: rows are released whose policies may have no role in common")

    def _checked(self) -> Iterator[frozenset[Key]]:
        for number in self.region.option.facts:
            known = _checked_roles(self.atoms.exprs[number])
            if known is not None:
                yield known

    def merged(self, node: Aggregate, number: int) -> Key | None:
        """The aggregate's own role column; raises where its rows have policies and it has none."""
        wanted = frozenset[Key]() if self.region.dead else self.roles()
        if not wanted:
            return None
        for call in node.calls:
            if call.function is not AggFunction.COMMON_ROLES or call.arg is None:
                continue
            if wanted <= (roles_in(resolve(call.arg, self.region.env)) or frozenset()):
                return key_of(own_column(number, call.field.column))
        raise InvariantError("I1: an aggregate mixes tuples whose policies may have no role in common")

    @property
    def is_shielded(self) -> bool:
        """Whether tuples with policies are behind the rows."""
        return not self.region.dead and bool(
            self.region.shields or any(leaf.shielded for leaf in self.region.leaves)
        )

    def is_carried_by(self, expr: Expr) -> bool:
        """Whether the expression is what the policies behind the rows have in common: all roles where there are none."""
        if not self.is_shielded:
            return isinstance(expr, Literal) and expr.value == ALL_ROLES
        return self.roles() <= (roles_in(expr) or frozenset())

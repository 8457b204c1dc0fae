"""Rows that an aggregate grant gave carry its name, and what the grant asks for above the aggregate is there (R4, R8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sluicegate.errors import InvariantError
from sluicegate.expr.labels import LABEL_JOINT, LABEL_MARK, LABEL_NAMES, MERGE_LABELS
from sluicegate.expr.nodes import Call, Column, Expr, Literal
from sluicegate.rewrite.verify_aggregates import is_enough
from sluicegate.rewrite.verify_atoms import key_of
from sluicegate.rewrite.verify_grants import Grants
from sluicegate.rewrite.verify_region import Leaf, Proof, Region


@dataclass(frozen=True)
class Owed:
    """The names that a region's rows owe; reading them checks the rest of the grants' conditions."""

    region: Region
    grants: Grants

    @cached_property
    def _leaves(self) -> tuple[tuple[Leaf, frozenset[str]], ...]:
        """Leaves whose rows grants gave, with the names of those that allow it."""
        return tuple(
            (leaf, frozenset(self._names(leaf)))
            for leaf in self.region.leaves
            if leaf.owes and not self.region.dead
        )

    @property
    def is_owed(self) -> bool:
        return bool(self._leaves)

    def _names(self, leaf: Leaf) -> list[str]:
        if not leaf.proofs:
            return []
        names = [proof.piece.grant.name for proof in leaf.proofs if self._is_complete(proof)]
        if not names:
            tried = ", ".join(sorted({f"`{proof.piece.grant.name}`" for proof in leaf.proofs}))
            raise InvariantError(
                f"I1: rows of {tried} are released without its DURING or MIN GROUP above the aggregate"
            )
        return names

    def _is_complete(self, proof: Proof) -> bool:
        option = self.region.option
        if not all(number in option.facts for number in proof.covers):
            return False
        if not proof.piece.grant.min_group:
            return True
        exprs = self.grants.atoms.exprs
        return is_enough(option, proof, exprs) or any(
            all(is_enough(each, proof, exprs) for each in clause.options) for clause in option.clauses
        )

    def carriers(self, labels: Sequence[Expr]) -> list[int]:
        """Which of the expressions carry all names; an error when names are owed and none does."""
        found = [index for index, label in enumerate(labels) if self._carries(label)]
        if self.is_owed and not found:
            raise InvariantError("I1: rows that an aggregate grant gave do not carry its name")
        return found

    def _carries(self, label: Expr) -> bool:
        parts = list(_parts(label))
        names = {name for part in parts for name in _names(part)}
        keys = {key_of(part) for part in parts if isinstance(part, Column)}
        return all(names & allowed if leaf.proofs else keys & leaf.carriers for leaf, allowed in self._leaves)

    def check_names(self, labels: Iterable[Expr]) -> None:
        """No row is labelled by a grant that did not give it."""
        given = frozenset[str]().union(*(allowed for _, allowed in self._leaves))
        for label in labels:
            wrong = {name for part in _parts(label) for name in _names(part)} - given
            if wrong and not self.region.dead:
                raise InvariantError(f"I1: rows are labelled {sorted(wrong)}, which did not give them")


def _parts(label: Expr) -> Iterator[Expr]:
    """The literals and columns of a label; nothing of an expression that is no label."""
    if isinstance(label, Call) and label.function in (MERGE_LABELS, LABEL_NAMES):
        for arg in label.args:
            yield from _parts(arg)
    elif isinstance(label, Literal | Column):
        yield label


def _names(part: Expr) -> set[str]:
    """The grants that a literal label names."""
    if not isinstance(part, Literal) or not isinstance(part.value, str):
        return set()
    return {name.split(LABEL_MARK)[0] for name in part.value.split(LABEL_JOINT)}

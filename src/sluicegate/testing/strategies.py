"""Hypothesis strategies: the generators of `testing.cases`, with every choice drawn so that failures shrink."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from sluicegate.expr.nodes import Column, Expr
from sluicegate.testing.case_worlds import ATTRIBUTES, World, random_predicate, random_world
from sluicegate.testing.cases import Case, describe, random_case

__all__ = ["Case", "cases", "describe", "predicates", "random_case", "worlds"]

_CHOICES: st.SearchStrategy[Random] = st.randoms(use_true_random=False)


def cases() -> st.SearchStrategy[Case]:
    """Whole cases: catalog, user, query, data."""
    return _CHOICES.map(random_case)


def worlds() -> st.SearchStrategy[World]:
    """Streams with their tuples, a user with roles and profile, facts."""
    return _CHOICES.map(random_world)


def predicates(qualifier: str = "S", policy: bool = False) -> st.SearchStrategy[Expr]:
    """Predicates over an attribute of each type; a policy's may name the profile and facts."""
    columns = [Column(qualifier, name, of) for name, of in ATTRIBUTES]
    return _CHOICES.map(lambda rng: random_predicate(rng, columns, policy))

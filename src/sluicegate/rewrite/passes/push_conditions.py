"""What a grant on a join demands of one side alone is demanded below the join already.

    σ(a.x > 3 AND a.k = b.k)(A ⋈ B)   needs of A only   σ(x > 3)(A)

The condition is necessary, never sufficient: the grant's whole predicate still stands above the join (I1). It is what
makes rewriting cheaper than filtering results.
"""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.expr.nodes import TRUE, Expr, columns, conjoin, conjuncts


def split_sides(predicate: Expr) -> dict[str, Expr]:
    """For each source the conjuncts that speak of it alone; a source that has none is left out."""
    sides: dict[str, list[Expr]] = {}
    for part in conjuncts(predicate):
        used = {column.qualifier for column in columns(part)}
        if len(used) == 1:
            sides.setdefault(used.pop(), []).append(part)
    return {alias: conjoin(*parts) for alias, parts in sides.items()}


def needed_of(alias: str, predicates: Iterable[Expr]) -> tuple[Expr, ...]:
    """What each of several predicates demands of one source; TRUE where it demands nothing."""
    return tuple(split_sides(predicate).get(alias, TRUE) for predicate in predicates)


def is_trivial(conditions: Iterable[Expr]) -> bool:
    """Whether some alternative demands nothing, so that no row may be dropped early."""
    return any(condition == TRUE for condition in conditions)

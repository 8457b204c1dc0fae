"""Decide predicates: satisfiable, implied, equivalent, with a row as witness.

"Unsatisfiable" comes only from what holds for every row, "satisfiable" only with a row that the evaluator confirmed; the rest is
unknown, and unknown never proves an implication (R7). `self.x` and facts are unknowns that may be NULL, equal where they are
written alike. Comparisons with constants are decided in `intervals`; z3 is loaded only for what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from sluicegate.expr.nodes import And, Column, Expr, IsNull, Not, Or, Value, conjoin, walk
from sluicegate.expr.solve.answers import Answer, Sat, Unknown, Unsat, Verdict
from sluicegate.expr.solve.confirm import confirm
from sluicegate.expr.solve.domains import DOMAINS
from sluicegate.expr.solve.intervals import BASE, Box, decide_implies, decide_satisfiable
from sluicegate.expr.solve.pick import pick_value

__all__ = ["Answer", "Sat", "Unknown", "Unsat", "Verdict", "equivalent", "implies", "satisfiable", "witness"]

TIMEOUT_MS = 2_000
"""How long z3 may think about one question."""


def satisfiable(pred: Expr, timeout_ms: int = TIMEOUT_MS) -> Verdict:
    """Whether some row makes the predicate TRUE."""
    match witness(pred, timeout_ms=timeout_ms):
        case Sat():
            return Verdict.SAT
        case Unsat():
            return Verdict.UNSAT
        case Unknown():
            return Verdict.UNKNOWN


def implies(p: Expr, q: Expr, timeout_ms: int = TIMEOUT_MS) -> bool:
    """True only when it is proven that every row where p is TRUE makes q TRUE; unknown is no (R7)."""
    decided = decide_implies(p, q)
    if decided is not None:
        return decided
    # "q is not TRUE" has to count NULL in
    return isinstance(_solve(And((p, Or((Not(q), IsNull(q))))), timeout_ms), Unsat)


def equivalent(p: Expr, q: Expr, timeout_ms: int = TIMEOUT_MS) -> bool:
    """True only when it is proven that both are TRUE on the same rows."""
    return implies(p, q, timeout_ms) and implies(q, p, timeout_ms)


def witness(pred: Expr, prefer: Sequence[Column] = (), timeout_ms: int = TIMEOUT_MS) -> Answer:
    """A row on which the predicate is TRUE. Preferred columns are not NULL where that is possible, and always in the row."""
    if prefer:
        filled = _witness(conjoin(pred, *(Not(IsNull(column)) for column in prefer)), timeout_ms)
        if isinstance(filled, Sat):
            return filled
    answer = _witness(pred, timeout_ms)
    if not isinstance(answer, Sat):
        return answer
    return Sat({**dict.fromkeys(prefer, None), **answer.row}, answer.unknowns)


def _witness(pred: Expr, timeout_ms: int) -> Answer:
    decided, box = decide_satisfiable(pred)
    if decided is False:
        return Unsat()
    if box is not None:
        answer = confirm(pred, _fill(pred, box))
        if answer is not None:
            return answer
    return _solve(pred, timeout_ms)


def _fill(pred: Expr, box: Box) -> Mapping[Expr, Value]:
    """A point of an exact box; what it leaves open gets an ordinary value."""
    values: dict[Expr, Value] = {}
    for node in walk(pred):
        if isinstance(node, BASE) and node not in values:
            domain = DOMAINS.get(node.type.kind)
            values[node] = pick_value(box.sets.get(node, domain.full), domain) if domain is not None else None
    return values


@lru_cache(maxsize=2048)
def _solve(pred: Expr, timeout_ms: int) -> Answer:
    from sluicegate.expr.solve.smt import solve  # z3 takes a while to load, and few predicates need it

    return solve(pred, timeout_ms)

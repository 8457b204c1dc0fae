"""`ON RESULT (INSERT SP …)` of a named result: what may be stated for its tuples (R15), and what is refused."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.statements import InsertSP
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.punctuation import Anything, Constant, OneOf, Pattern

MOST_STATED = 100


def read_stated(
    name: str | None, on_result: Iterable[Hashable], attributes: Iterable[str]
) -> tuple[Punctuation, ...]:
    """As one policy: its sequence numbers count them. `name` is the result's, None where it has none."""
    found = [each for each in on_result if isinstance(each, InsertSP)]
    known = frozenset(attributes)
    for each in found:
        _check(each, name, known)
    if len(found) > MOST_STATED:
        raise _refuse(found[0], f"ON RESULT states at most {MOST_STATED} punctuations", "put them together")
    return tuple(
        Punctuation("", 0, sn, each.ddp, each.srp, each.positive, each.immutable)
        for sn, each in enumerate(found, start=1)
    )


def _check(statement: InsertSP, name: str | None, attributes: frozenset[str]) -> None:
    if statement.query is not None:
        raise _refuse(statement, "ON RESULT states policies for tuples, not for a query", "leave QUERY out")
    if statement.stream is not None and statement.stream.text != name:
        message = f"ON RESULT is for the result, not for `{statement.stream.text}`"
        raise _refuse(statement, message, "write INTO STREAM LET …")
    if statement.ddp.tuples != Anything():
        help_ = "write TUPLES:ALL, and choose the tuples in the query, by WHERE"
        raise _refuse(statement, "ON RESULT is for all tuples of the result", help_)
    unknown = sorted(_list_names(statement.ddp.attributes) - attributes)
    if unknown:
        listed = ", ".join(f"`{each}`" for each in sorted(attributes))
        raise _refuse(statement, f"the result has no attribute `{unknown[0]}`", f"it has {listed}")


def _list_names(pattern: Pattern) -> frozenset[str]:
    match pattern:
        case Constant(value):
            return frozenset({str(value)})
        case OneOf(values):
            return frozenset(map(str, values))
        case _:
            return frozenset()


def _refuse(statement: InsertSP, message: str, help_: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("on-result", message, statement.span, help_)])

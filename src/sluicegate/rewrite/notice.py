"""What a principal is told about a decision (R9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sluicegate.errors import Diagnostic
from sluicegate.expr.nodes import Value

NOTICE_CODES = {
    "DENY": "no grant applies to a stream that the query reads",
    "NAME": "a name of the query was taken for an attribute that differs from it in case alone",
    "WINDOW": "a join of the query names no windows, and pairs only tuples of the same instant",
    "EMPTY": "the query contradicts itself: no tuple can satisfy it",
    "NR": "grants apply, but nothing that the query asks for can come back",
    "PR": "something asked for is or may be withheld: rows, attributes, a function, a finer window, a branch",
}


@dataclass(frozen=True)
class Notice:
    """`kind` says what a PR is about: rows, attributes, function, window, branch."""

    code: str
    kind: str
    message: str
    witness: Mapping[str, Value] | None = None


def tell_warnings(warnings: Iterable[Diagnostic]) -> tuple[Notice, ...]:
    """How the query was read, where that is not as it was written."""
    return tuple(
        Notice("WINDOW", "window", each.message)
        if each.code == "xml-no-window"
        else Notice("NAME", "name", each.message)
        for each in warnings
    )

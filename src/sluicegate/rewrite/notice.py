"""What a principal is told about a decision (R9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.expr.nodes import Value

NOTICE_CODES = {
    "DENY": "no grant applies to a stream that the query reads",
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

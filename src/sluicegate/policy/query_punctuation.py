"""Query-level punctuations (seed 003, R16): who may have a query's results from here on, and who no longer."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.errors import InvariantError


@dataclass(frozen=True, slots=True)
class QueryPunctuation:
    """Opens or closes the switches of a query for users; `ts` is in microseconds since 1970 UTC.

    `users` is None for everybody, which only a closing one may say: an opening one names whom it lets in.
    """

    query: str
    users: frozenset[str] | None
    positive: bool
    ts: int

    def __post_init__(self) -> None:
        if self.positive and self.users is None:
            raise InvariantError("a punctuation that opens a switch names its users")

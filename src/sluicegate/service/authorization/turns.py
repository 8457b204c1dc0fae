"""From proofs to switches: exactly the difference between what is open and what is proven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.service.authorization.state import Key


@dataclass(frozen=True, slots=True)
class Opened:
    """An open switch: of which run of the query, in which streams, and until when its proof holds by itself."""

    handle: str
    number: int
    streams: tuple[str, ...]
    until: int

    def is_same(self, other: Opened | None) -> bool:
        """Whether the punctuations that opened one are those of the other: a longer proof tells nothing anew."""
        return other is not None and (self.number, self.streams) == (other.number, other.streams)


@dataclass(frozen=True, slots=True)
class Turns:
    """Switches to turn; all that close come first."""

    closing: tuple[Key, ...]
    opening: tuple[Key, ...]


def find_turns(before: Mapping[Key, Opened], after: Mapping[Key, Opened]) -> Turns:
    """What runs anew, or reads other streams than before, is closed and opened: one stream without the opening keeps it shut."""
    closing = [key for key, each in before.items() if not each.is_same(after.get(key))]
    opening = [key for key, each in after.items() if not each.is_same(before.get(key))]
    return Turns(tuple(sorted(closing)), tuple(sorted(opening)))

"""The table of verdicts of a punctuated stream: a row for each (principal, policy class) that lets anything through.

The verdict on a pair is made once and kept; a tick then only lists them. Columns as `targets.spark_shield` describes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.policy.classes import PolicyClass
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import Anything, Pattern, ServerPunctuation
from sluicegate.policy.verdict import mask_attributes, narrow_attributes
from sluicegate.policy.who import Who, read_who
from sluicegate.targets.spark_shield import CLASS, WHO

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_KEPT = 1_000_000
_UNTOUCHED = -1


@dataclass(frozen=True, slots=True)
class Verdicts:
    """`numbers`: what each principal is called in the table; `patterns`: what the server's columns are for."""

    table: pa.Table
    numbers: dict[str, int]
    patterns: tuple[Pattern, ...]


class Judge:
    """Of one stream. Several threads may ask it: what two of them find out at once is the same."""

    def __init__(self, stream: Stream) -> None:
        self._names = tuple(name for name, _ in stream.attributes)
        self._masks: dict[tuple[str, PolicyClass], tuple[int, ...]] = {}

    def judge(self, classes: Sequence[PolicyClass], asked: Iterable[str]) -> Verdicts:
        """`classes` by their numbers, `asked` as `policy.who` writes it. A text that cannot be read is allowed nothing."""
        known = {text: who for text in dict.fromkeys(asked) if (who := _read(text)) is not None}
        numbers = {text: number for number, text in enumerate(known)}
        servers = list(dict.fromkeys(each for who in known.values() for each in _patterned(who)))
        rows = [
            (numbers[text], number, *masks, *self._narrow(who, policy, servers))
            for text, who in known.items()
            for number, policy in enumerate(classes)
            if any(masks := self._find(text, who, policy))
        ]
        return Verdicts(self._table(rows, len(servers)), numbers, tuple(each.ddp.tuples for each in servers))

    def _find(self, text: str, who: Who, policy: PolicyClass) -> tuple[int, ...]:
        found = self._masks.get((text, policy))
        if found is None:
            everywhere = [each for each in who.servers if each.ddp.tuples == Anything()]
            masks = mask_attributes(policy, everywhere, who.standing, self._names, option=who.option)
            found = tuple(masks[name] for name in self._names)
            if len(self._masks) >= _MOST_KEPT:
                self._masks.clear()
            self._masks[text, policy] = found
        return found

    def _narrow(self, who: Who, policy: PolicyClass, servers: Sequence[ServerPunctuation]) -> list[int]:
        own = set() if policy.immutable else set(_patterned(who))
        found: list[int] = []
        for server in servers:
            masks = (
                narrow_attributes(server, who.standing, self._names, option=who.option)
                if server in own
                else {}
            )
            found += [masks.get(name, _UNTOUCHED) for name in self._names]
        return found

    def _table(self, rows: Sequence[tuple[int, ...]], servers: int) -> pa.Table:
        import pyarrow as pa

        places = range(len(self._names))
        names = [WHO, CLASS, *(f"m{at}" for at in places)]
        names += [f"s{number}_m{at}" for number in range(servers) for at in places]
        columns = zip(*rows, strict=True) if rows else ([] for _ in names)
        return pa.table({name: pa.array(each, pa.int64()) for name, each in zip(names, columns, strict=True)})


def _read(text: str) -> Who | None:
    try:
        return read_who(text)
    except ValueError:
        return None


def _patterned(who: Who) -> list[ServerPunctuation]:
    """Those that cover some tuples only."""
    return [each for each in who.servers if each.ddp.tuples != Anything()]

"""The Security Shield of seed 002, Fig. 10, as its text describes it; and, one by one, where R13 and R14 differ from it.

The figure's line 11 means overlap, as the text says: a tuple passes if its policy allows one of the operator's roles. Each
`Difference` is a switch: with none the machine is the paper's, with all of them it is ours (docs/papers.md lists them).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Stream
from sluicegate.testing.oracle_elements import Element, covers, holds


class Difference(Enum):
    """What we do otherwise."""

    POLICY_STAYS = "a wrong count denies the tuple and leaves the policy (line 16 discards both)"
    COVERED_ONLY = "a newer policy replaces older ones only for the tuples that it covers (case 3: the current one, wholly)"
    EACH_ONCE = "the sequence numbers are 1 to the count, each once and no other (section 5.1: the largest without a gap)"
    SENDER_ASKED = "a punctuation counts for its sender's tuples, the owner's for all (nobody asks)"
    HOLDER_DENIED = "a negative punctuation denies whoever holds its role (it takes the role from the policy)"
    ROLES_INHERIT = "a senior role has what its juniors are allowed (roles are flat)"


OURS = frozenset(Difference)
Inherited = Mapping[str, frozenset[str]]
"""Each role with itself and all that it inherits."""


@dataclass
class Shield10:
    """The state L of one operator: its roles (APR), and the current policy (CP) with its flag for the first tuple."""

    stream: Stream
    apr: frozenset[str]
    inherited: Inherited
    differences: frozenset[Difference] = frozenset()
    ts: int = 0
    current: list[Punctuation] = field(default_factory=list)
    kept: dict[int, list[Punctuation]] = field(default_factory=dict)
    """Instead of the current policy, where a newer one replaces only what it covers."""

    def take_punctuation(self, sp: Punctuation) -> None:
        """Lines 1 to 4."""
        if Difference.COVERED_ONLY in self.differences:
            self.kept.setdefault(sp.ts, []).append(sp)
        elif self.ts in (0, sp.ts):
            self.current.append(sp)
            self.ts = sp.ts
        elif self.ts < sp.ts:
            self.current = [sp]
            self.ts = sp.ts

    def take_tuple(self, element: Element) -> bool:
        """Lines 5 to 18: whether the tuple is sent on. That of later tuples is the same as of the first."""
        policy = self._policy(element)
        if not policy:
            return False
        if not self._is_complete(policy, element):
            self._discard(element)
            return False
        if self._is_replaced(element):
            return False
        return self._overlaps([sp for sp in policy if covers(sp, self.stream.name, element.key)])

    def _policy(self, element: Element) -> list[Punctuation]:
        if Difference.COVERED_ONLY in self.differences:
            return self.kept.get(element.ts or 0, [])
        return self.current

    def _is_complete(self, policy: list[Punctuation], element: Element) -> bool:
        """Line 10: `L.CP.ts.csn = t.ts.csn`."""
        if element.ts is None or element.count is None or policy[0].ts != element.ts:
            return False
        if Difference.SENDER_ASKED in self.differences and len({sp.sender for sp in policy}) > 1:
            return False
        numbers = sorted(sp.sn for sp in policy)
        if Difference.EACH_ONCE in self.differences:
            return numbers == list(range(1, element.count + 1))
        return count_without_gap(numbers) == element.count

    def _discard(self, element: Element) -> None:
        """Line 16."""
        if Difference.POLICY_STAYS in self.differences:
            return
        self.current, self.ts = [], 0
        self.kept.pop(element.ts or 0, None)

    def _is_replaced(self, element: Element) -> bool:
        """Where several policies are kept: whether a newer one covers the tuple."""
        return any(
            ts > (element.ts or 0) and any(covers(sp, self.stream.name, element.key) for sp in sps)
            for ts, sps in self.kept.items()
        )

    def _overlaps(self, policy: list[Punctuation]) -> bool:
        """Line 11."""
        denied = [sp for sp in policy if not sp.positive]
        if Difference.HOLDER_DENIED in self.differences:
            held = self._held() if Difference.ROLES_INHERIT in self.differences else self.apr
            if any(holds(sp.srp.subjects, role) for sp in denied for role in held):
                return False
            denied = []
        return any(
            any(self._names(sp, role) for sp in policy if sp.positive)
            and not any(self._names(sp, role) for sp in denied)
            for role in self.apr
        )

    def _held(self) -> frozenset[str]:
        return frozenset[str]().union(*(self.inherited[role] for role in self.apr))

    def _names(self, sp: Punctuation, role: str) -> bool:
        named = self.inherited[role] if Difference.ROLES_INHERIT in self.differences else (role,)
        return any(holds(sp.srp.subjects, each) for each in named)


def count_without_gap(numbers: Iterable[int]) -> int:
    """Line 8: the largest cumulative sequence number, with no gaps below it."""
    known = set(numbers)
    count = 0
    while count + 1 in known:
        count += 1
    return count


def run_fig10(
    stream: Stream,
    elements: Sequence[Element],
    apr: frozenset[str],
    inherited: Inherited,
    differences: frozenset[Difference] = frozenset(),
) -> list[bool | None]:
    """Whether each tuple is sent on, None for a punctuation; an operator for each partition, since none sees two."""
    asks = Difference.SENDER_ASKED in differences
    producers = {each.producer for each in elements if each.punctuation is None} if asks else {""}
    settings = (stream, apr, inherited, differences)
    machines: dict[tuple[int, str | None], Shield10] = {}
    found: list[bool | None] = []
    for element in elements:
        sp = element.punctuation
        if sp is None:
            place = (element.partition, element.producer if asks else "")
            found.append(machines.setdefault(place, Shield10(*settings)).take_tuple(element))
            continue
        for producer in producers:
            if not asks or sp.sender in (producer, stream.owner):
                place = (element.partition, producer)
                machines.setdefault(place, Shield10(*settings)).take_punctuation(sp)
        found.append(None)
    return found

"""Finding those of many rules or policies that can apply to a request, by the values that their targets ask for.

Exactly as if all were evaluated: one is left out only where its target is certain not to match (7.7: a part
that does not match decides, whatever the others are), and every algorithm passes over what is not applicable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from sluicegate.policy.xacml.functions_scalar import name_function
from sluicegate.policy.xacml.lookup import Lookup
from sluicegate.policy.xacml.model import AllOf, AnyOf, Designator, Match, Target
from sluicegate.policy.xacml.names import DataType

# With fewer there is nothing to gain.
MIN_SIZE: Final = 8

_EQUALITIES = {name_function("1.0", "string-equal"), name_function("1.0", "anyURI-equal")}


@dataclass(frozen=True, slots=True)
class Term:
    """An attribute that has to have a value; `None` stands for its being absent."""

    category: str
    attribute_id: str
    type: DataType
    issuer: str | None
    value: str | None


# Nothing applies unless one of the terms holds.
Needs = frozenset[Term]


class Indexed(Protocol):
    """What can be indexed: it has a target, and perhaps parts without which it does not apply."""

    @property
    def target(self) -> Target: ...

    @property
    def needed(self) -> Sequence[Indexed] | None:
        """Those of which one has to apply, or `None` if it can apply without."""
        ...


Item = TypeVar("Item", bound=Indexed)


class Index(Generic[Item]):
    """Items by the terms that they need; `by_targets` where a target that matches counts by itself."""

    def __init__(self, items: Sequence[Item], by_targets: bool = False) -> None:
        self._deep = not by_targets
        self._items = items
        self._always: list[int] = []
        self._by_term: dict[Term, list[int]] = {}
        if len(items) < MIN_SIZE:
            self._always = list(range(len(items)))
        else:
            self._sort(items)
        self._absent = [term for term in self._by_term if term.value is None]
        self._read = frozenset((term.category, term.attribute_id) for term in self._by_term)

    def choose(self, lookup: Lookup) -> Iterator[Item]:
        """The items that may apply, in their order."""
        if not self._by_term:
            yield from self._items
            return
        lookup.spend(lookup.given)
        lookup.read |= self._read
        chosen = set(self._always)
        for term in self._hold(lookup):
            chosen.update(self._by_term.get(term, ()))
        for at in sorted(chosen):
            yield self._items[at]

    def _sort(self, items: Sequence[Item]) -> None:
        counts = Counter(term for item in items for term in set(_list_terms(item)))
        for at, item in enumerate(items):
            needs = _choose_needs(item, counts, self._deep)
            if needs is None:
                self._always.append(at)
                continue
            for term in needs:
                self._by_term.setdefault(term, []).append(at)

    def _hold(self, lookup: Lookup) -> Iterator[Term]:
        """The terms that hold: for what the request gives, and for what it lacks and must not."""
        for category, attribute in lookup.list_given():
            for value in attribute.values:
                if value.type in (DataType.STRING, DataType.ANY_URI):
                    for issuer in {None, attribute.issuer}:
                        yield Term(category, attribute.attribute_id, value.type, issuer, value.content)
        for term in self._absent:
            wanted = Designator(term.category, term.attribute_id, term.type, False, term.issuer)
            if not lookup.find(wanted):
                yield term


def _list_terms(item: Indexed) -> Iterator[Term]:
    for part in item.target.parts:
        for way in part.ways:
            for match in way.matches:
                yield from _read_match(match)[:1]
    for each in item.needed or ():
        yield from _list_terms(each)


def _choose_needs(item: Indexed, counts: Counter[Term], deep: bool = True) -> Needs | None:
    """The needs that the fewest items share; nothing if it may apply without any that we know of."""
    ways = [needs for part in item.target.parts if (needs := _need_any(part, counts)) is not None]
    if deep and item.needed is not None:
        parts = [_choose_needs(each, counts) for each in item.needed]
        known = [each for each in parts if each is not None]
        if len(known) == len(parts):
            ways.append(frozenset().union(*known))
    return min(ways, key=lambda needs: _weigh(needs, counts), default=None)


def _need_any(part: AnyOf, counts: Counter[Term]) -> Needs | None:
    found: set[Term] = set()
    for way in part.ways:
        needs = _need_all(way, counts)
        if needs is None:
            return None
        found |= needs
    return frozenset(found)


def _need_all(way: AllOf, counts: Counter[Term]) -> Needs | None:
    """One match that has to hold is enough to know; the rarest."""
    known = [frozenset(terms) for match in way.matches if (terms := _read_match(match))]
    return min(known, key=lambda needs: _weigh(needs, counts), default=None)


def _weigh(needs: Needs, counts: Counter[Term]) -> int:
    return sum(counts[term] for term in needs)


def _read_match(match: Match) -> tuple[Term, ...]:
    """The terms of which one holds unless the match is certainly false; none if we cannot say."""
    wanted = match.attribute
    if match.function_id not in _EQUALITIES or not isinstance(wanted, Designator):
        return ()
    known = (wanted.category, wanted.attribute_id, wanted.type, wanted.issuer)
    equal = Term(*known, match.value.content)
    return (equal, Term(*known, None)) if wanted.must_be_present else (equal,)

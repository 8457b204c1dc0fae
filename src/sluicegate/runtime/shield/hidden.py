"""What the policies in given elements hide from a principal's query, counted by reason and punctuation: for owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.graph.operators import Shield
from sluicegate.language.punctuations import print_pattern
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.classes import Member, PolicyClass
from sluicegate.policy.hiding import Hiding, Why, find_drop, find_hiding
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import Anything
from sluicegate.policy.verdict import Standing, servers_covering, servers_on, standing_of
from sluicegate.runtime.feed.log_files import POLICY
from sluicegate.runtime.shield.bounded import Released, judge_elements

if TYPE_CHECKING:
    import pyarrow as pa

NOTHING = "nothing that allows it"


@dataclass(frozen=True, slots=True)
class HiddenTuples:
    """Of one punctuated source of a query."""

    stream: str
    shown: int
    denied: tuple[tuple[str, int], ...]
    """Elements that nobody is shown, by the reason of R13 or the code of a refused punctuation."""
    hidden: tuple[tuple[str, str, int], ...]
    """Tuples that this query does not get: why, by which punctuation, how many."""
    left_out: tuple[tuple[str, str, str, int], ...]
    """Attributes that it does not get of tuples that it gets: which, why, by which punctuation, of how many."""

    def to_json(self) -> dict[str, object]:
        return {
            "stream": self.stream,
            "shown": self.shown,
            "denied": dict(self.denied),
            "hidden": [{"why": why, "by": by, "tuples": n} for why, by, n in self.hidden],
            "left_out": [
                {"attribute": name, "why": why, "by": by, "tuples": n} for name, why, by, n in self.left_out
            ],
        }


def count_hidden(catalog: Catalog, user: str, shield: Shield, elements: pa.Table) -> HiddenTuples:
    """`elements` as an input file has them, in order of arrival."""
    stream = catalog.streams[shield.input.stream]
    released = judge_elements(stream, catalog, elements)
    found = _Tally(stream, catalog, standing_of(catalog, user), shield)
    for policy, key, count in _group(stream, released):
        found.add(released.classes[policy], key, count)
    return HiddenTuples(
        stream.name,
        found.shown,
        tuple(sorted(released.denied.items())),
        tuple((*key, n) for key, n in sorted(found.hidden.items())),
        tuple((*key, n) for key, n in sorted(found.left_out.items())),
    )


def _group(stream: Stream, released: Released) -> Iterable[tuple[int, object, int]]:
    """Tuples of one class and key are judged at once."""
    key = stream.punctuated_by or ""
    counted = released.rows.select([POLICY, key]).group_by([POLICY, key]).aggregate([([], "count_all")])
    columns = (counted[POLICY].to_pylist(), counted[key].to_pylist(), counted["count_all"].to_pylist())
    return zip(*columns, strict=True)


class _Tally:
    def __init__(self, stream: Stream, catalog: Catalog, standing: Standing, shield: Shield) -> None:
        self._names = [name for name, _ in stream.attributes]
        self._servers, self._standing, self._shield = servers_on(catalog, stream.name), standing, shield
        self.shown = 0
        self.hidden: Counter[tuple[str, str]] = Counter()
        self.left_out: Counter[tuple[str, str, str]] = Counter()

    def add(self, policy: PolicyClass, key: object, count: int) -> None:
        known = key if isinstance(key, bool | int | float | str) else None
        servers, shield = servers_covering(self._servers, known), self._shield
        drop = find_drop(policy, servers, self._standing, self._names, shield.needed, shield.told)
        if drop is not None:
            self.hidden.update({(drop.why.value, by): count for by in _tell(drop)})
            return
        self.shown += count
        for name in shield.told:
            hiding = find_hiding(policy, servers, self._standing, name)
            if hiding is not None:
                self.left_out.update({(name, hiding.why.value, by): count for by in _tell(hiding)})


def _tell(hiding: Hiding) -> list[str]:
    """The punctuations as people write them."""
    named = [each.name for each in hiding.servers] or [_write(each) for each in hiding.members]
    if hiding.why is Why.TOGETHER:
        return ["several punctuations"]
    return sorted(set(named)) or [NOTHING]


def _write(member: Member) -> str:
    subjects = f"{member.srp.model}:{print_pattern(member.srp.subjects, names=True)}"
    of = "" if member.attributes == Anything() else f" on {print_pattern(member.attributes, names=True)}"
    return f"{'+' if member.positive else '-'}{subjects}{of}"

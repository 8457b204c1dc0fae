"""The model's judgement of a governed tuple for a principal: who may see which attribute, under which query (R14, R15)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sluicegate.expr.nodes import Column, Scalar, Value
from sluicegate.expr.values import conform
from sluicegate.graph.operators import Aggregate, Node, Source
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import Restriction, ServerPunctuation
from sluicegate.testing.oracle_elements import Element, Governed, covers, govern, holds
from sluicegate.testing.oracle_usage import Usage, usage_below

Subjects = frozenset[str]
"""Those of a principal's roles, and itself (`user:`), that a policy allows."""
SP, SP_TS, SP_COUNT, SENDER, PARTITION = "_sp", "_sp_ts", "_sp_count", "_sender", "_partition"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query wants of a source's tuples: needed to be dropped or kept, or only told (R15)."""

    needed: frozenset[str]
    told: frozenset[str]


@dataclass(frozen=True, slots=True)
class Judged:
    """What a tuple's policy leaves of it: the subjects that may have it, and the attributes that it does not tell."""

    subjects: Subjects
    hidden: frozenset[str]


def read_element(stream: Stream, row: Mapping[str, object]) -> Element:
    """An entry of the input: a punctuation under `_sp`, or a tuple."""
    partition = row.get(PARTITION, 0)
    if not isinstance(partition, int):
        raise ValueError("a partition is a number")
    punctuation = row.get(SP)
    if isinstance(punctuation, Punctuation):
        return Element(partition, punctuation)
    types = dict(stream.attributes)
    key = conform(_value(row.get(stream.punctuated_by or "")), types[stream.punctuated_by or ""])
    time = conform(_value(row.get(stream.event_time or "")), types[stream.event_time or ""])
    return Element(
        partition,
        None,
        str(row.get(SENDER, "")),
        key if isinstance(key, bool | int | float | str) else None,
        time if isinstance(time, int) else None,
        _whole(row.get(SP_TS)),
        _whole(row.get(SP_COUNT)),
    )


def _value(found: object) -> Value:
    return found if isinstance(found, bool | int | float | str) else None


def _whole(found: object) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def attributes_asked(root: Node, usage: Usage) -> dict[str, Asked]:
    """For each source, by alias; whatever goes into an aggregate is needed."""
    found: dict[str, Asked] = {}
    _ask(root, usage, False, found)
    return found


def _ask(node: Node, usage: Usage, counted: bool, found: dict[str, Asked]) -> None:
    if isinstance(node, Source):
        needed = frozenset(column.name for column, required in usage.items() if required or counted)
        told = frozenset(column.name for column in usage) - needed
        found[node.alias] = Asked(needed, told)
    for each, below in zip(node.inputs, usage_below(node, usage), strict=True):
        _ask(each, below, counted or isinstance(node, Aggregate), found)


class Policies:
    """The tuples of punctuated streams, as their own policies show them to one user, or let it pass them on."""

    def __init__(
        self,
        catalog: Catalog,
        user: str,
        data: Mapping[str, Sequence[Mapping[str, object]]],
        delegating: bool = False,
    ) -> None:
        self.catalog = catalog
        self.user = user
        self.delegating = delegating
        known = catalog.users.get(user)
        self.roles = _with_inherited(catalog, known.roles) if known and not known.disabled else frozenset()
        self.is_known = known is not None and not known.disabled
        self.elements = {
            name: [read_element(stream, row) for row in data.get(name, ())]
            for name, stream in catalog.streams.items()
            if stream.punctuated_by is not None
        }
        self.governed = {name: govern(catalog.streams[name], found) for name, found in self.elements.items()}
        for name, stream in catalog.streams.items():
            if stream.stated:
                self._state(stream, len(data.get(name, ())))

    def _state(self, stream: Stream, count: int) -> None:
        """`ON RESULT`: one policy for all tuples, whatever they are."""
        key = "of any"
        covering = tuple(each for each in stream.stated if covers(each, stream.name, key))
        immutable = any(each.immutable for each in stream.stated)
        self.elements[stream.name] = [Element(key=key)] * count
        self.governed[stream.name] = [Governed(covering, immutable)] * count

    def judge(self, source: Source, position: int, asked: Asked) -> Judged | None:
        """What is left of the tuple; None for a punctuation, and for what is denied."""
        found = self.governed[source.stream][position]
        if found is None or found.reason is not None:
            return None
        key = self.elements[source.stream][position].key
        names = [name for name, _ in source.attributes]
        allowed = {name: self._subjects(source.stream, key, found, name) for name in names}
        if asked.needed:
            subjects = frozenset.intersection(*(allowed[name] for name in asked.needed))
        else:
            subjects = Subjects().union(*(allowed[name] for name in asked.told or names))
        return (
            Judged(subjects, frozenset(name for name in asked.told if not allowed[name]))
            if subjects
            else None
        )

    def _subjects(self, stream: str, key: Scalar | None, policy: Governed, attribute: str) -> Subjects:
        named = [each for each in policy.covering if holds(each.ddp.attributes, attribute)]
        if any(not each.positive and self._is_denied(each.srp) for each in named):
            return frozenset()
        allowed = Subjects().union(*(self._allowed(each.srp) for each in named if each.positive))
        for server in self._servers(stream, key, attribute) if not policy.immutable else ():
            if server.positive:
                allowed &= self._allowed(server.srp)
            elif self._is_denied(server.srp):
                return frozenset()
        return allowed

    def _servers(self, stream: str, key: Scalar | None, attribute: str) -> Iterable[ServerPunctuation]:
        return [
            each
            for each in self.catalog.punctuations.values()
            if each.stream == stream
            and holds(each.ddp.streams, stream)
            and holds(each.ddp.tuples, key)
            and holds(each.ddp.attributes, attribute)
        ]

    def _allowed(self, srp: Restriction) -> Subjects:
        """A senior role may do all that its juniors may (D2)."""
        if not self.is_known or (self.delegating and not srp.grant_option):
            return frozenset()
        if srp.model in ("dac", "user"):
            return frozenset({"user:" + self.user}) if holds(srp.subjects, self.user) else frozenset()
        if srp.model != "frbac":
            return frozenset()
        return frozenset(
            role
            for role in self.roles
            if any(holds(srp.subjects, each) for each in _with_inherited(self.catalog, (role,)))
        )

    def _is_denied(self, srp: Restriction) -> bool:
        if srp.model in ("dac", "user"):
            return holds(srp.subjects, self.user)
        return srp.model != "frbac" or any(holds(srp.subjects, role) for role in self.roles)


def _with_inherited(catalog: Catalog, roles: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    todo = list(roles)
    while todo:
        name = todo.pop()
        if name in catalog.roles and name not in found:
            found.add(name)
            todo += catalog.roles[name].inherits
    return frozenset(found)


def hidden_columns(source: Source, judged: Judged) -> frozenset[Column]:
    return frozenset(each.column for each in source.fields if each.name in judged.hidden)

"""The model's reading of grants: who holds them, which tuples they admit, and where they are valid (R1–R3, R6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Any

from sluicegate.expr.evaluate import Environment, evaluate, is_true
from sluicegate.expr.functions import FUNCTIONS
from sluicegate.expr.nodes import (
    NULL,
    Arith,
    Call,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    IsNull,
    Literal,
    Not,
    Op,
    SelfRef,
    Value,
    arith_type,
    columns,
    conjoin,
    conjuncts,
)
from sluicegate.expr.rebuild import map_children, substitute
from sluicegate.expr.solve import implies
from sluicegate.expr.types import TIMESTAMP, comparable
from sluicegate.expr.values import conform
from sluicegate.graph.operators import AggCall, AggFunction, Aggregate, Join, Node, Source
from sluicegate.graph.windows import TimeWindow
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import During, Grant, Privilege, Stream, StreamRef, Subject
from sluicegate.testing.oracle_policies import Policies
from sluicegate.testing.oracle_usage import (
    Usage,
    considered_calls,
    is_select_project_join,
    join_conditions,
    joins_by_rows,
    leaves,
    lineage,
    selections,
    source_usage,
)

Data = Mapping[str, Sequence[Mapping[str, Any]]]
Attributes = frozenset[tuple[str, str]]
"""Source attributes: (alias of the occurrence, attribute)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A grant on several streams with its aliases tied to source occurrences, one of the ways this can be done."""

    grant: Grant
    number: int
    sources: tuple[tuple[str, Source], ...]

    def place(self, attribute: Column) -> tuple[str, str]:
        return dict(self.sources)[attribute.qualifier].alias, attribute.name

    def places(self, attributes: Sequence[Column]) -> Attributes:
        return frozenset(map(self.place, attributes))

    def over_sources(self, expr: Expr) -> Expr:
        """The grant's expression in the columns of the source occurrences."""
        at = dict(self.sources)
        mapping = {each: Column(at[each.qualifier].alias, each.name, each.of) for each in columns(expr)}
        return substitute(expr, mapping)


def _provided(stream: Stream, user: str) -> Grant:
    """`GOVERNED BY PROVIDER`: everybody may ask for everything, and the tuples' policies alone decide (R14)."""
    attributes = tuple(Column(stream.name, name, of) for name, of in stream.attributes)
    refs = (StreamRef(stream.name, stream.name),)
    return Grant(f"provided {stream.name}", Subject(user, True), Privilege.READ, refs, attributes)


@lru_cache(maxsize=50_000)
def _follows(premise: Expr, conclusion: Expr) -> bool:
    return conclusion in conjuncts(premise) or implies(premise, conclusion)


class Principal:
    """A user with the grants it holds, over given data."""

    def __init__(
        self, catalog: Catalog, user: str, data: Data, delegating: bool = False, paper: bool = False
    ) -> None:
        known = catalog.users.get(user)
        if known is not None and known.follow is not None:
            raise ValueError("the model does not know profile attributes that follow a stream")
        self.catalog, self.delegating, self.paper = catalog, delegating, paper
        self.profile = dict(known.profile) if known is not None else {}
        facts = {key: fact.value.value for key, fact in catalog.facts.items()}
        self.env = Environment({name: value.value for name, value in self.profile.items()}, facts)
        self.grants = [] if known is None or known.disabled else self._held(user)
        self.user = None if known is None or known.disabled else known
        self.unsettled = catalog.claimed | frozenset(known.varying if known is not None else ())
        self.by_name = {grant.name: grant for grant in self.grants}
        self.policies = Policies(catalog, user, data, delegating)
        self._data = {name: self._rows_in_force(name, rows) for name, rows in data.items()}
        self._tuples: dict[tuple[str, int], dict[str, Value]] = {}
        self._personals: dict[str, Expr] = {}
        self._premises: dict[tuple[str, int, tuple[str, ...]], Expr] = {}
        self._joins: dict[tuple[int, Attributes], list[Reading]] = {}
        self._aggregates: dict[tuple[int, frozenset[tuple[Column, bool]]], list[Reading]] = {}
        self._admitted: dict[tuple[str, tuple[tuple[str, str, int], ...]], bool] = {}

    def _held(self, user: str) -> list[Grant]:
        roles = self.catalog.roles_of(user)
        held = [
            grant
            for name, grant in sorted(self.catalog.grants.items())
            if grant.closed is None
            and (grant.subject.name == user if grant.subject.is_user else grant.subject.name in roles)
        ]
        provided = {name: each for name, each in self.catalog.streams.items() if each.governed_by_provider}
        if self.delegating:
            held = [each for each in held if each.grant_option or self._is_owner(user, each)]
        kept = [grant for grant in held if provided.keys().isdisjoint(grant.stream_names)]
        return kept + [_provided(stream, user) for stream in provided.values()]

    @cached_property
    def could_read_by(self) -> list[Grant]:
        """With every role that it holds, activated or not, and whether they may be passed on or not (R8)."""
        user = self.user
        if user is None:
            return []
        if (user.inactive or self.unsettled) and self.catalog.policies:
            raise ValueError("the model does not know what policies permit in another session")
        roles: set[str] = set()
        todo = [*user.roles, *user.inactive]
        while todo:
            name = todo.pop()
            if name in self.catalog.roles and name not in roles:
                roles.add(name)
                todo += self.catalog.roles[name].inherits
        provided = [each for each in self.catalog.streams.values() if each.governed_by_provider]
        found = [
            grant
            for grant in self.catalog.grants.values()
            if grant.closed is None
            and grant.privilege is Privilege.READ
            and (grant.subject.name == user.name if grant.subject.is_user else grant.subject.name in roles)
            and not {stream.name for stream in provided} & set(grant.stream_names)
        ]
        return found + [_provided(stream, user.name) for stream in provided]

    def _is_owner(self, user: str, grant: Grant) -> bool:
        return {self.catalog.streams[name].owner for name in grant.stream_names} == {user}

    def on(self, privilege: Privilege, streams: Sequence[str]) -> list[Grant]:
        """Grants that name exactly these streams, as a multiset."""
        wanted = tuple(sorted(streams))
        return [each for each in self.grants if each.privilege is privilege and each.stream_names == wanted]

    def naming(self, stream: str) -> list[str]:
        """Names of the read grants, on one stream or several, that a stream may be read under."""
        return [
            grant.name
            for grant in self.grants
            if grant.privilege is Privilege.READ and stream in grant.stream_names
        ]

    def _rows_in_force(
        self, stream: str, rows: Sequence[Mapping[str, Value]]
    ) -> Sequence[Mapping[str, Value]]:
        """Of a table with a key, what nothing after it replaces (D1)."""
        key = self.catalog.streams[stream].key if stream in self.catalog.streams else ()
        kept = []
        for at, row in enumerate(rows):
            own = [row.get(name) for name in key]
            later = ([other.get(name) for name in key] for other in rows[at + 1 :])
            if not key or (all(part is not None for part in own) and own not in later):
                kept.append(row)
        return kept

    def count(self, stream: str) -> int:
        return len(self._data.get(stream, ()))

    def tuple_at(self, source: Source, position: int) -> dict[str, Value]:
        key = (source.alias, position)
        if key not in self._tuples:
            given = self._data[source.stream][position]
            self._tuples[key] = {name: conform(given.get(name), of) for name, of in source.attributes}
        return self._tuples[key]

    def time_of(self, source: Source, position: int) -> int | None:
        if source.event_time is None:
            return None
        time = self.tuple_at(source, position)[source.event_time]
        return time if isinstance(time, int) else None

    def interval(self, during: During | None) -> tuple[int | None, int | None] | None:
        """The bounds of DURING, None for an open one; no interval at all means no access (R6)."""
        if during is None:
            return None, None
        lower, upper = (evaluate(bound, {}, self.env) for bound in (during.lower, during.upper))
        lower_open, upper_open = is_null(during.lower), is_null(during.upper)
        if not lower_open and not isinstance(lower, int):
            return None
        if upper is None and not upper_open:
            upper_open = not lower_open and self._is_named(during.upper)
        if not upper_open and not isinstance(upper, int):
            return None
        return (lower if isinstance(lower, int) else None), (upper if isinstance(upper, int) else None)

    def _is_named(self, bound: Expr) -> bool:
        """Whether it is clear which fact is meant: of one whose argument is missing nobody knows that it is not set."""
        return all(evaluate(arg, {}, self.env) is not None for arg in bound.children)

    def admits(self, grant: Grant, at: Mapping[str, tuple[Source, int]]) -> bool:
        """Whether predicate and DURING are TRUE of these source tuples, by the grant's aliases."""
        key = (grant.name, tuple(sorted((alias, source.alias, n) for alias, (source, n) in at.items())))
        if key not in self._admitted:
            self._admitted[key] = self._judge(grant, at)
        return self._admitted[key]

    def _judge(self, grant: Grant, at: Mapping[str, tuple[Source, int]]) -> bool:
        bounds = self.interval(grant.during)
        if bounds is None:
            return False
        for source, position in at.values():
            if grant.during is not None and source.event_time is not None:
                time = self.time_of(source, position)
                if time is None or not contains(bounds, time, time):
                    return False
        row = {
            column: self.tuple_at(*at[column.qualifier])[column.name] for column in columns(grant.predicate)
        }
        return is_true(self._personal(grant), row, self.env)

    def _personal(self, grant: Grant) -> Expr:
        """The predicate with the profile's values; where their types do not fit it is NULL (R7)."""
        if grant.name not in self._personals:
            self._personals[grant.name] = _fitting(substitute_profile(grant.predicate, self.profile))
        return self._personals[grant.name]

    def is_settled(self, expr: Expr) -> bool:
        """Whether it means the same in every session of the user: it names nothing that a sign-in decides."""
        if isinstance(expr, SelfRef):
            return expr.name not in self.unsettled
        return all(map(self.is_settled, expr.children))

    def is_settled_grant(self, grant: Grant) -> bool:
        during = () if grant.during is None else (grant.during.lower, grant.during.upper)
        return all(map(self.is_settled, (grant.predicate, *during)))

    def _may_last(self, grant: Grant, node: Source, position: int) -> bool:
        """Whether in some session of the user DURING holds of the tuple, as far as that is known."""
        during = grant.during
        if during is None or not (self.is_settled(during.lower) and self.is_settled(during.upper)):
            return True
        bounds, time = self.interval(during), self.time_of(node, position)
        if bounds is None or node.event_time is None:
            return bounds is not None
        return time is not None and contains(bounds, time, time)

    def glimpses(self, grant: Grant, node: Source, position: int) -> bool:
        """Whether the grant could show the tuple in some session, whatever it is joined with: all that it says of that
        place alone, and that no sign-in decides, holds."""
        if not self._may_last(grant, node, position):
            return False
        given = self.tuple_at(node, position)
        settled = filter(self.is_settled, conjuncts(grant.predicate))
        parts = [_fitting(substitute_profile(part, self.profile)) for part in settled]
        for ref in grant.streams:
            if ref.stream == node.stream:
                own = [part for part in parts if all(each.qualifier == ref.alias for each in columns(part))]
                rows = [{each: given[each.name] for each in columns(part)} for part in own]
                if all(is_true(part, row, self.env) for part, row in zip(own, rows, strict=True)):
                    return True
        return False

    def admits_reading(self, reading: Reading, positions: Mapping[str, int]) -> bool:
        at = {alias: (source, positions[source.alias]) for alias, source in reading.sources}
        return self.admits(reading.grant, at)

    def known(self, expr: Expr) -> Expr:
        """With profile values and public facts in place; other facts stay as unknowns (R9)."""
        if isinstance(expr, SelfRef):
            return self.profile.get(expr.name, NULL)
        changed = map_children(expr, self.known)
        if isinstance(changed, FactRef) and all(isinstance(arg, Literal) for arg in changed.args):
            args = tuple(arg.value for arg in changed.args if isinstance(arg, Literal))
            fact = self.catalog.facts.get((changed.name, args))  # type: ignore[arg-type]
            if fact is not None and fact.public:
                return fact.value
        return changed

    def premise(self, reading: Reading) -> Expr:
        """What is sure of every tuple that the grant admits, over source columns."""
        parts = [self.known(reading.over_sources(reading.grant.predicate))]
        during = reading.grant.during
        if during is not None:
            lower, upper = self.known(during.lower), self.known(during.upper)
            for source in (each for _, each in reading.sources if each.event_time is not None):
                time = Column(source.alias, source.event_time or "", TIMESTAMP)
                # a tuple without event time lies in no interval
                parts.append(Not(IsNull(time)))
                if not is_null(lower):
                    parts.append(Compare(Op.GE, time, lower))
                # an upper fact that is not set is open, so one that is not known says nothing
                if isinstance(upper, Literal) and not is_null(upper):
                    parts.append(Compare(Op.LE, time, upper))
        return conjoin(*parts)

    def implied(self, reading: Reading, conclusion: Expr) -> bool:
        key = (reading.grant.name, reading.number, tuple(source.alias for _, source in reading.sources))
        if key not in self._premises:
            self._premises[key] = self.premise(reading)
        return _follows(self._premises[key], conclusion)

    def join_readings(self, node: Join, required: Attributes) -> list[Reading]:
        """The ways in which join grants authorize a join whose attributes `required` are used (R2)."""
        key = (id(node), required)
        if key not in self._joins:
            self._joins[key] = self._find_join_readings(node, required)
        return self._joins[key]

    def _find_join_readings(self, node: Join, required: Attributes) -> list[Reading]:
        if not is_select_project_join(node) or joins_by_rows(node):
            return []
        conditions = join_conditions(node)
        found = []
        for reading in self.readings(Privilege.READ, node):
            shown = reading.places(reading.grant.attributes)
            least = reading.grant.least
            if not required <= shown or (least is not None and least.rows):
                continue
            if all(attributes_of(part) <= shown or self.implied(reading, part) for part in conditions):
                found.append(reading)
        return found

    def readings(self, privilege: Privilege, node: Node) -> Iterator[Reading]:
        occurrences = list(leaves(node))
        for grant in self.on(privilege, [each.stream for each in occurrences]):
            number = 0
            for order in permutations(occurrences):
                if all(ref.stream == each.stream for ref, each in zip(grant.streams, order, strict=True)):
                    aliases = (ref.alias for ref in grant.streams)
                    yield Reading(grant, number, tuple(zip(aliases, order, strict=True)))
                    number += 1

    def aggregate_readings(self, node: Aggregate, usage: Usage) -> list[Reading]:
        """The ways in which aggregate grants authorize an aggregate (R3)."""
        key = (id(node), frozenset(usage.items()))
        if key not in self._aggregates:
            self._aggregates[key] = self._find_aggregate_readings(node, usage)
        return self._aggregates[key]

    def _find_aggregate_readings(self, node: Aggregate, usage: Usage) -> list[Reading]:
        if not is_select_project_join(node.input) or joins_by_rows(node.input):
            return []
        return [
            reading
            for reading in self.readings(Privilege.AGGREGATE, node.input)
            if self._covers(reading, node, usage)
            and self._keeps_population(reading, node.input)
            and not (self.paper and _is_finer(reading, node, usage))
        ]

    def _covers(self, reading: Reading, node: Aggregate, usage: Usage) -> bool:
        least = reading.grant.least
        if least is not None and least.rows is isinstance(node.window, TimeWindow):
            return False
        if reading.grant.min_group and len(reading.sources) > 1:
            return False
        origin = lineage(node.input)
        by = reading.places(reading.grant.by)
        for item in node.group_by:
            key = origin.get(item.expr) if isinstance(item.expr, Column) else None
            if not isinstance(key, Column) or (key.qualifier, key.name) not in by:
                return False
        covered = covered_calls(reading, node, usage)
        required = [call for call in node.calls if usage.get(call.field.column)]
        return bool(covered) and all(call in covered for call in required)

    def _keeps_population(self, reading: Reading, node: Node) -> bool:
        narrow, least = reading.places(reading.grant.narrow_by), reading.grant.least
        if least is not None and not least.rows and max(least.size, least.step) > 0:
            narrow -= {(source.alias, source.event_time or "") for _, source in reading.sources}
        parts = [*selections(node), *join_conditions(node)]
        return all(attributes_of(part) <= narrow or self.implied(reading, part) for part in parts)


def substitute_profile(expr: Expr, profile: Mapping[str, Literal]) -> Expr:
    """`self.x` as the literal that it is, with its type; NULL where the profile lacks it."""
    if isinstance(expr, SelfRef):
        return profile.get(expr.name, NULL)
    return map_children(expr, lambda child: substitute_profile(child, profile))


def _fitting(expr: Expr) -> Expr:
    made = map_children(expr, _fitting)
    match made:
        case Compare(_, left, right):
            fits = comparable(left.type, right.type)
        case Arith(op, left, right):
            fits = arith_type(op, left.type, right.type) is not None
        case In(arg, items):
            return In(arg, tuple(each if comparable(arg.type, each.type) else NULL for each in items))
        case Call(name, args):
            of = FUNCTIONS[name].result_type([arg.type for arg in args])
            return NULL if of is None else Call(name, args, of)
        case _:
            fits = True
    return made if fits else NULL


def is_null(expr: Expr) -> bool:
    """A literal NULL: an open bound (R6)."""
    return isinstance(expr, Literal) and expr.value is None


def attributes_of(expr: Expr) -> Attributes:
    return frozenset((column.qualifier, column.name) for column in columns(expr))


def covered_calls(reading: Reading, node: Aggregate, usage: Usage) -> list[AggCall]:
    """The functions of a node that an aggregate grant allows: on bare source attributes, by lineage (R3)."""
    rights: set[tuple[AggFunction, tuple[str, str] | None]] = {
        (right.function, None if right.attribute is None else reading.place(right.attribute))
        for right in reading.grant.rights
    }
    origin = lineage(node.input)
    found = []
    for call in considered_calls(node, usage):
        source = origin.get(call.arg) if isinstance(call.arg, Column) else None
        if call.arg is None:
            allowed = (call.function, None) in rights
        else:
            bare = isinstance(source, Column)
            allowed = bare and (call.function, (source.qualifier, source.name)) in rights  # type: ignore[union-attr]
        if allowed:
            found.append(call)
    return found


def _is_finer(reading: Reading, node: Aggregate, usage: Usage) -> bool:
    """Rules (1), (2) and (4) of eXACML+, section 3.5."""
    least, window = reading.grant.least, node.window
    if reading.grant.min_group and window.step < window.size:
        return True
    if least is not None and (window.size < least.size or window.step < least.step):
        return True
    aggregated = {
        reading.place(right.attribute) for right in reading.grant.rights if right.attribute is not None
    }
    covered, origin = covered_calls(reading, node, usage), lineage(node.input)
    for call in considered_calls(node, usage):
        source = origin.get(call.arg) if isinstance(call.arg, Column) else None
        if (
            call not in covered
            and isinstance(source, Column)
            and (source.qualifier, source.name) in aggregated
        ):
            return True
    return False


def contains(bounds: tuple[int | None, int | None], first: int, last: int) -> bool:
    """Whether the closed interval holds all of `first … last`."""
    lower, upper = bounds
    return (lower is None or lower <= first) and (upper is None or last <= upper)


def required_attributes(node: Node, usage: Usage, join_predicates: bool = True) -> Attributes:
    """The source attributes below a node that something requires."""
    return frozenset(
        (alias, column.name)
        for alias, used in source_usage(node, usage, join_predicates).items()
        for column, required in used.items()
        if required
    )

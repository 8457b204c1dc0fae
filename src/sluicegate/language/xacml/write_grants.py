"""Grants as XACML policies with stream obligations, where these say exactly the same; else why they cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from sluicegate.expr.nodes import TRUE, Column, Expr, FactRef, SelfRef, walk
from sluicegate.expr.rebuild import transform
from sluicegate.graph.operators import AggFunction
from sluicegate.language.print_expression import print_expression
from sluicegate.language.xacml.decisions import READ, ROLE_ID
from sluicegate.language.xacml.obligations import (
    ATTRIBUTE,
    CONDITION,
    FILTER,
    FUNCTION,
    MAP,
    SIZE,
    STEP,
    TYPE,
    WINDOW,
    Refusal,
    fulfil,
)
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Grant, Privilege
from sluicegate.policy.xacml.combine import DENY_OVERRIDES
from sluicegate.policy.xacml.context import Assignment, Notice
from sluicegate.policy.xacml.functions_scalar import name_function
from sluicegate.policy.xacml.model import (
    AllOf,
    AnyOf,
    AssignmentExpression,
    Designator,
    Effect,
    Match,
    NoticeExpression,
    Policy,
    PolicySet,
    Rule,
    Target,
)
from sluicegate.policy.xacml.names import (
    ACTION,
    ACTION_ID,
    RESOURCE,
    RESOURCE_ID,
    SUBJECT,
    SUBJECT_ID,
    URN,
    DataType,
)
from sluicegate.policy.xacml.values import Value, read_value

EXPORT_ID: Final = "sluicegate:catalog"
_RULES: Final = URN + "3.0:rule-combining-algorithm:deny-overrides"
_PREFIX: Final = "exacml:obligation:"
_EQUAL: Final = name_function("1.0", "string-equal")
_FUNCTIONS: Final = {
    AggFunction.AVG: "avg",
    AggFunction.MAX: "max",
    AggFunction.MIN: "min",
    AggFunction.COUNT: "count",
    AggFunction.SUM: "sum",
    AggFunction.LAST: "lastval",
    AggFunction.FIRST: "firstval",
}


@dataclass(frozen=True, slots=True)
class Exported:
    """The grants that policies can say, and of the others why they cannot, by name."""

    policies: tuple[Policy, ...]
    left_out: tuple[tuple[str, str], ...]

    def join(self) -> PolicySet:
        """All in one document."""
        return PolicySet(EXPORT_ID, "1.0", DENY_OVERRIDES, self.policies)


def export_grants(catalog: Catalog) -> Exported:
    """Every grant by itself, and none beside which another would restrict it: policies are fulfilled together."""
    found = {name: write_grant_policy(grant, catalog) for name, grant in sorted(catalog.grants.items())}
    rivals = dict(_find_rivals(catalog, [name for name, each in found.items() if isinstance(each, Policy)]))
    left_out = {name: each for name, each in found.items() if isinstance(each, str)} | rivals
    kept = [each for name, each in found.items() if isinstance(each, Policy) and name not in rivals]
    return Exported(tuple(kept), tuple(sorted(left_out.items())))


def _find_rivals(catalog: Catalog, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    wanted = set(names)
    for user in sorted(catalog.users):
        held: dict[str, list[str]] = {}
        for grant in catalog.grants_to(user):
            if grant.name in wanted:
                held.setdefault(grant.stream_names[0], []).append(grant.name)
        for group in held.values():
            for name in group if len(group) > 1 else ():
                others = ", ".join(f"`{each}`" for each in group if each != name)
                yield name, f"`{user}` holds {others} besides: policies restrict each other, grants add up"


def write_grant_policy(grant: Grant, catalog: Catalog) -> Policy | str:
    """The policy that allows exactly what the grant does, or why there is none."""
    reason = _find_obstacle(grant)
    if reason is not None:
        return reason
    notices = tuple(_write_obligations(grant))
    if not _says_the_same(grant, notices, catalog):
        return "obligations on the stream would not say the same"
    named = ROLE_ID if not grant.subject.is_user else SUBJECT_ID
    matches = (
        _match(SUBJECT, named, grant.subject.name),
        _match(RESOURCE, RESOURCE_ID, grant.streams[0].stream),
        _match(ACTION, ACTION_ID, READ),
    )
    target = Target((AnyOf((AllOf(matches),)),))
    rule = Rule("permit", Effect.PERMIT)
    return Policy(f"sluicegate:grant:{grant.name}", "1.0", _RULES, (rule,), target, (), notices)


def _find_obstacle(grant: Grant) -> str | None:
    named = any(isinstance(node, SelfRef | FactRef) for node in walk(grant.predicate))
    obstacles = {
        "it allows nothing": grant.closed is not None,
        "it lets its holder write": grant.privilege is Privilege.APPEND,
        "it is on several streams": len(grant.streams) != 1,
        "its condition names the profile or facts": named,
        "it has DURING": grant.during is not None,
        "it has BY": bool(grant.by),
        "it has MIN GROUP": grant.min_group > 0,
        "it may be passed on": grant.grant_option,
    }
    aggregate = grant.privilege is Privilege.AGGREGATE
    known = all(each.function in _FUNCTIONS and each.attribute is not None for each in grant.rights)
    obstacles["it has a function that obligations do not have"] = aggregate and not known
    obstacles["it has no least window"] = aggregate and (
        grant.least is None or not grant.least.size or not grant.least.step
    )
    narrow = {each.name for each in grant.narrow_by}
    hidden = [
        each for each in grant.rights if each.attribute is not None and each.attribute.name not in narrow
    ]
    obstacles["its NARROW BY leaves out what it aggregates, and a map would take that away"] = bool(
        narrow and hidden
    )
    return next((reason for reason, holds in obstacles.items() if holds), None)


def _write_obligations(grant: Grant) -> Iterator[NoticeExpression]:
    if grant.predicate != TRUE:
        yield _oblige(FILTER, [(CONDITION, print_expression(_unqualify(grant.predicate)))])
    mapped = grant.narrow_by if grant.privilege is Privilege.AGGREGATE else grant.attributes
    if mapped:
        yield _oblige(MAP, [(ATTRIBUTE, each.name) for each in mapped])
    least = grant.least
    if grant.privilege is Privilege.AGGREGATE and least is not None:
        kind = "tuple" if least.rows else "time"
        size, step = (_write_extent(each, least.rows) for each in (least.size, least.step))
        functions = [
            (FUNCTION, f"{each.attribute.name}:{_FUNCTIONS[each.function]}")
            for each in grant.rights
            if each.attribute is not None
        ]
        yield _oblige(WINDOW, [(TYPE, kind), (SIZE, size), (STEP, step), *functions])


def _write_extent(extent: int, rows: bool) -> str:
    """Rows, or seconds where they are whole."""
    if rows or extent % 1_000_000 == 0:
        return str(extent if rows else extent // 1_000_000)
    return f"{extent} microseconds"


def _unqualify(predicate: Expr) -> Expr:
    """Attributes by their bare names, as eXACML+ writes them."""
    return transform(
        predicate, lambda node: replace(node, qualifier="") if isinstance(node, Column) else None
    )


def _oblige(obligation: str, values: list[tuple[str, str]]) -> NoticeExpression:
    assigned = tuple(AssignmentExpression(_PREFIX + part, _text(value)) for part, value in values)
    return NoticeExpression(obligation, Effect.PERMIT, assigned, binding=True)


def _text(text: str) -> Value:
    return read_value(DataType.STRING, text)


def _match(category: str, attribute_id: str, value: str) -> Match:
    return Match(_EQUAL, _text(value), Designator(category, attribute_id, DataType.STRING, False))


def _says_the_same(grant: Grant, notices: tuple[NoticeExpression, ...], catalog: Catalog) -> bool:
    stream = catalog.streams[grant.streams[0].stream]
    given = [_bind(each) for each in notices]
    found = fulfil(given, stream, grant.subject.name)
    return not isinstance(found, Refusal) and _normalize(found) == _normalize(grant)


def _bind(notice: NoticeExpression) -> Notice:
    assigned = tuple(
        Assignment(each.attribute_id, each.expression)
        for each in notice.assignments
        if isinstance(each.expression, Value)
    )
    return Notice(notice.notice_id, assigned, binding=True)


def _normalize(grant: Grant) -> tuple[object, ...]:
    """What it allows, whatever it is called, whoever it is to, and in whatever order it is written."""
    stream = grant.streams[0].stream

    def name(column: Column | None) -> str | None:
        return None if column is None else column.name

    def rename(node: Expr) -> Expr | None:
        return replace(node, qualifier=stream) if isinstance(node, Column) else None

    return (
        grant.privilege,
        stream,
        frozenset(name(each) for each in grant.attributes),
        frozenset((each.function, name(each.attribute)) for each in grant.rights),
        transform(grant.predicate, rename),
        grant.least,
        frozenset(name(each) for each in grant.narrow_by),
    )

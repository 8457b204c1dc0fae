"""XACML policies with stream obligations, from a few words: corpus files and tests write many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sluicegate.language.xacml.decisions import PROFILE, ROLE_ID
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
)
from sluicegate.language.xacml.write_policies import write_policy
from sluicegate.policy.xacml.functions_scalar import name_function
from sluicegate.policy.xacml.model import (
    AllOf,
    AnyOf,
    Apply,
    AssignmentExpression,
    Designator,
    Effect,
    Match,
    NoticeExpression,
    Policy,
    Rule,
    Target,
)
from sluicegate.policy.xacml.names import (
    CURRENT_TIME,
    ENVIRONMENT,
    RESOURCE,
    RESOURCE_ID,
    SUBJECT,
    SUBJECT_ID,
    URN,
    DataType,
)
from sluicegate.policy.xacml.values import Value, read_value

KEYS: Final = frozenset(
    {"id", "stream", "user", "role", "profile", "effect", "hours", "filter", "map", "window", "oblige"}
)
_PREFIX: Final = "exacml:obligation:"
_RULES: Final = URN + "3.0:rule-combining-algorithm:deny-overrides"


def write_stream_policy(given: Mapping[str, Any]) -> str:
    """The XML of a policy. Of `KEYS` only `id` has to be there.

    `effect` is `permit` or `deny`; `hours` two times of the day in UTC; `filter` one condition or several; `map` names of
    attributes; `window` has `type`, `size`, `step` and `functions`; `oblige` is the id of any other obligation.
    """
    unknown = sorted(set(given) - KEYS)
    if unknown:
        raise ValueError(f"a policy has no `{unknown[0]}`; it has {', '.join(sorted(KEYS))}")
    effect = Effect(str(given.get("effect", "permit")).capitalize())
    rule = Rule("rule", effect, condition=_make_condition(given.get("hours")))
    target = Target((AnyOf((AllOf(matches),)),)) if (matches := tuple(_make_matches(given))) else Target()
    notices = tuple(_make_obligations(given))
    return write_policy(Policy(str(given["id"]), "1.0", _RULES, (rule,), target, (), notices))


def _make_matches(given: Mapping[str, Any]) -> Iterator[Match]:
    if "stream" in given:
        yield _match(RESOURCE, RESOURCE_ID, given["stream"])
    if "user" in given:
        yield _match(SUBJECT, SUBJECT_ID, given["user"])
    if "role" in given:
        yield _match(SUBJECT, ROLE_ID, given["role"])
    for name, value in given.get("profile", {}).items():
        yield _match(SUBJECT, PROFILE + name, value)


def _match(category: str, attribute_id: str, value: object) -> Match:
    about = Designator(category, attribute_id, DataType.STRING, must_be_present=False)
    return Match(name_function("1.0", "string-equal"), _text(str(value)), about)


def _make_condition(hours: Sequence[str] | None) -> Apply | None:
    if hours is None:
        return None
    clock = Designator(ENVIRONMENT, CURRENT_TIME, DataType.TIME, must_be_present=True)
    now = Apply(name_function("1.0", "time-one-and-only"), (clock,))
    bounds = tuple(read_value(DataType.TIME, f"{each}Z") for each in hours)
    return Apply(name_function("2.0", "time-in-range"), (now, *bounds))


def _make_obligations(given: Mapping[str, Any]) -> Iterator[NoticeExpression]:
    if "filter" in given:
        for each in _several(given["filter"]):
            yield _oblige(FILTER, [(CONDITION, each)])
    if "map" in given:
        yield _oblige(MAP, [(ATTRIBUTE, each) for each in given["map"]])
    if "window" in given:
        window = given["window"]
        parts = [(TYPE, window["type"]), (SIZE, window["size"]), (STEP, window["step"])]
        yield _oblige(WINDOW, [*parts, *((FUNCTION, each) for each in window["functions"])])
    if "oblige" in given:
        yield _oblige(given["oblige"], [])


def _several(given: object) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _oblige(obligation: str, values: Sequence[tuple[str, object]]) -> NoticeExpression:
    assigned = tuple(AssignmentExpression(_PREFIX + part, _text(str(value))) for part, value in values)
    return NoticeExpression(obligation, Effect.PERMIT, assigned, binding=True)


def _text(text: str) -> Value:
    return read_value(DataType.STRING, text)

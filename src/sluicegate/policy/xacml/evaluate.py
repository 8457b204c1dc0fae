"""Evaluating expressions and targets for one request. What cannot be evaluated raises `UndeterminedError`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from sluicegate.policy.xacml.context import Assignment, Notice, Status
from sluicegate.policy.xacml.functions import (
    CONTENT_FUNCTIONS,
    FUNCTIONS,
    HIGHER_ORDER,
    NODE_COUNT,
    NODE_EQUAL,
    HigherOrder,
)
from sluicegate.policy.xacml.functions_scalar import FALSE, TRUE
from sluicegate.policy.xacml.lookup import Lookup
from sluicegate.policy.xacml.model import (
    AllOf,
    AnyOf,
    Apply,
    AssignmentExpression,
    Designator,
    Effect,
    Expression,
    FunctionName,
    Match,
    NoticeExpression,
    Selector,
    Target,
    VariableReference,
)
from sluicegate.policy.xacml.names import DataType, StatusCode
from sluicegate.policy.xacml.signature import Found, Function, UndeterminedError, cannot
from sluicegate.policy.xacml.values import BadValueError, Value, make_value


class Scope:
    """What an expression can refer to; a variable is evaluated once."""

    __slots__ = ("known", "lookup", "variables")

    def __init__(self, lookup: Lookup, variables: Mapping[str, Expression] | None = None) -> None:
        self.lookup = lookup
        self.variables = variables or {}
        self.known: dict[str, Found | UndeterminedError] = {}


def evaluate(expression: Expression, scope: Scope) -> Found:
    """The value, or the bag of values, of an expression."""
    match expression:
        case Value():
            return expression
        case Designator():
            return scope.lookup.find(expression)
        case Apply(function_id, arguments):
            return _apply(function_id, arguments, scope)
        case VariableReference(variable_id):
            return _recall(variable_id, scope)
        case Selector():
            return _guard(scope.lookup.select, expression)
        case FunctionName():
            raise cannot("a function stands where a value is needed")
        case _:
            raise TypeError(f"no such expression: {expression!r}")


def holds(expression: Expression, scope: Scope) -> bool:
    """Whether a condition is true."""
    found = evaluate(expression, scope)
    if not isinstance(found, Value) or found.type is not DataType.BOOLEAN:
        raise cannot("a condition is not a boolean")
    return found.content is True


def _recall(variable_id: str, scope: Scope) -> Found:
    found = scope.known.get(variable_id)
    if found is None:
        try:
            found = evaluate(scope.variables[variable_id], scope)
        except UndeterminedError as error:
            found = error
        scope.known[variable_id] = found
    if isinstance(found, UndeterminedError):
        raise found
    return found


def _apply(function_id: str, arguments: Sequence[Expression], scope: Scope) -> Found:
    function = FUNCTIONS.get(function_id)
    if function is None:
        return _apply_special(function_id, arguments, scope)
    if function.lazy:
        return _guard(function.run, *(partial(evaluate, each, scope) for each in arguments))
    return call(function, [evaluate(each, scope) for each in arguments], scope.lookup)


def _apply_special(function_id: str, arguments: Sequence[Expression], scope: Scope) -> Found:
    if function_id in HIGHER_ORDER:
        return _apply_higher(HIGHER_ORDER[function_id], arguments, scope)
    if function_id not in CONTENT_FUNCTIONS:
        raise cannot(f"the function `{function_id}` is not known")
    return _apply_to_content(function_id, [evaluate(each, scope) for each in arguments], scope)


def call(function: Function, given: Sequence[Found], lookup: Lookup) -> Found:
    """A function applied to values, its failures told as the standard's status."""
    lookup.spend(_weigh(function, given))
    return _guard(function.run, *given)


def _weigh(function: Function, given: Sequence[Found]) -> int:
    work = 1
    for each in given:
        if not isinstance(each, Value):
            work += len(each)
        elif function.slow:
            work += 5 * len(each.text)
    return work


def _guard(run: Any, *given: Any) -> Found:
    try:
        found: Found = run(*given)
        return found
    except BadValueError as error:
        raise cannot(str(error), StatusCode.SYNTAX_ERROR) from None
    except (ValueError, ArithmeticError) as error:
        raise cannot(str(error) or "arithmetic failed") from None


def _apply_higher(function: HigherOrder, arguments: Sequence[Expression], scope: Scope) -> Found:
    name, *rest = arguments
    inner = FUNCTIONS.get(name.function_id) if isinstance(name, FunctionName) else None
    if inner is None:
        raise cannot("a higher-order function is given no function that it can use")
    run = _call_lazy if inner.lazy else call

    def use(chosen: Sequence[Value]) -> Value:
        found = run(inner, chosen, scope.lookup)
        assert isinstance(found, Value)  # its type was checked when the policy was read
        return found

    return function.run(use, [evaluate(each, scope) for each in rest])


def _call_lazy(function: Function, given: Sequence[Value], lookup: Lookup) -> Found:
    lookup.spend(1)
    return _guard(function.run, *(partial(_itself, each) for each in given))


def _itself(found: Found) -> Found:
    return found


def _apply_to_content(function_id: str, given: Sequence[Found], scope: Scope) -> Value:
    nodes = [scope.lookup.select_nodes(each) for each in given if isinstance(each, Value)]
    if function_id == NODE_COUNT:
        return make_value(DataType.INTEGER, len(nodes[0]))
    first, second = nodes
    scope.lookup.spend(len(first) * len(second))
    if function_id == NODE_EQUAL:
        return TRUE if any(one == other for one in first for other in second) else FALSE
    return TRUE if any(one.contains(other) for one in first for other in second) else FALSE


class Matched(Enum):
    YES = "match"
    NO = "no match"
    UNKNOWN = "indeterminate"


@dataclass(frozen=True, slots=True)
class Matching:
    """Whether a target applies; when that is unknown, why."""

    matched: Matched
    status: Status | None = None


YES, NO = Matching(Matched.YES), Matching(Matched.NO)


def match_target(target: Target, scope: Scope) -> Matching:
    """All parts have to match; one that does not decides, whatever the others are (7.7)."""
    return _conclude((_match_any(part, scope) for part in target.parts), NO, YES)


def _match_any(part: AnyOf, scope: Scope) -> Matching:
    return _conclude((_match_all(way, scope) for way in part.ways), YES, NO)


def _match_all(way: AllOf, scope: Scope) -> Matching:
    return _conclude((_match_one(each, scope) for each in way.matches), NO, YES)


def _conclude(found: Iterable[Matching], decisive: Matching, otherwise: Matching) -> Matching:
    """The decisive answer if it is among them, else the first that is unknown."""
    unknown: Matching | None = None
    for each in found:
        if each.matched is decisive.matched:
            return decisive
        if each.matched is Matched.UNKNOWN:
            unknown = unknown or each
    return unknown or otherwise


def _match_one(match: Match, scope: Scope) -> Matching:
    """True for some value of the bag; an error counts only if no value is (7.6)."""
    try:
        bag = evaluate(match.attribute, scope)
    except UndeterminedError as error:
        return Matching(Matched.UNKNOWN, error.status)
    unknown = None
    for value in () if isinstance(bag, Value) else bag:
        try:
            found = _compare(match, value, scope)
        except UndeterminedError as error:
            unknown = unknown or Matching(Matched.UNKNOWN, error.status)
            continue
        if isinstance(found, Value) and found.content is True:
            return YES
    return unknown or NO


def _compare(match: Match, value: Value, scope: Scope) -> Found:
    if match.function_id in CONTENT_FUNCTIONS:
        return _apply_to_content(match.function_id, (match.value, value), scope)
    return call(FUNCTIONS[match.function_id], (match.value, value), scope.lookup)


def fulfil(notices: Sequence[NoticeExpression], effect: Effect, scope: Scope) -> tuple[Notice, ...]:
    """The obligations and advice of one effect with their values, or `UndeterminedError`."""
    return tuple(
        Notice(each.notice_id, tuple(_assign_all(each.assignments, scope)), each.binding)
        for each in notices
        if each.applies_to is effect
    )


def _assign_all(assignments: Sequence[AssignmentExpression], scope: Scope) -> list[Assignment]:
    """A bag gives an assignment for each of its values; an empty one gives none (5.40)."""
    made: list[Assignment] = []
    for each in assignments:
        found = evaluate(each.expression, scope)
        for value in (found,) if isinstance(found, Value) else found:
            made.append(Assignment(each.attribute_id, value, each.category, each.issuer))
    return made

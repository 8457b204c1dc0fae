"""Functions of single values: equality, arithmetic, order, conversion and logic (A.3.1–A.3.6)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from sluicegate.policy.xacml.names import URN, DataType
from sluicegate.policy.xacml.signature import Function, Kind, Lazy, LimitError, cannot
from sluicegate.policy.xacml.values import Value, make_value

T = DataType
# A product that can still be written.
_MOST_BITS = 13_300
# Of what is put together: a policy can keep as many texts as it has variables.
MOST_CHARACTERS = 64 * 1024
BOOLEAN, INTEGER, DOUBLE = Kind(T.BOOLEAN), Kind(T.INTEGER), Kind(T.DOUBLE)
TRUE, FALSE = make_value(T.BOOLEAN, True), make_value(T.BOOLEAN, False)

WITH_EQUALITY = (
    *(T.STRING, T.BOOLEAN, T.INTEGER, T.DOUBLE, T.TIME, T.DATE, T.DATE_TIME, T.ANY_URI),
    *(T.HEX_BINARY, T.BASE64_BINARY, T.RFC822_NAME, T.X500_NAME, T.DAY_TIME_DURATION, T.YEAR_MONTH_DURATION),
)
DURATIONS = (T.DAY_TIME_DURATION, T.YEAR_MONTH_DURATION)


def name_function(version: str, name: str) -> str:
    return f"{URN}{version}:function:{name}"


def names_by_type(kind: DataType, name: str) -> tuple[str, ...]:
    """The ids of `<type>-<name>`: durations came with 3.0, and keep what they were called before."""
    versions = ("3.0", "1.0") if kind in DURATIONS else ("1.0",)
    return tuple(name_function(each, f"{kind.short}-{name}") for each in versions)


def lift(run: Callable[..., Any], gives: DataType) -> Callable[..., Value]:
    """A function of contents as one of values."""
    if gives is T.BOOLEAN:
        return lambda *given: TRUE if run(*(each.content for each in given)) else FALSE
    return lambda *given: make_value(gives, _bound(run(*(each.content for each in given))))


def _bound(content: Any) -> Any:
    """Variables can double what they refer to: no number may grow beyond what can be written."""
    if isinstance(content, int) and content.bit_length() > _MOST_BITS:
        raise LimitError("a number is too large")
    return content


def same(one: Any, other: Any) -> bool:
    """Equal contents; not-a-number, being one object, equals itself."""
    return bool(one is other or one == other)


def list_scalar_functions() -> Iterator[Function]:
    yield from _list_equalities()
    yield from _list_arithmetic()
    yield from _list_orders()
    yield from _list_logic()
    takes, gives = (DOUBLE,), INTEGER
    yield Function(name_function("1.0", "double-to-integer"), takes, gives, lift(int, T.INTEGER))
    yield Function(name_function("1.0", "integer-to-double"), (INTEGER,), DOUBLE, lift(float, T.DOUBLE))


def _list_equalities() -> Iterator[Function]:
    for kind in WITH_EQUALITY:
        for function_id in names_by_type(kind, "equal"):
            yield Function(function_id, (Kind(kind), Kind(kind)), BOOLEAN, lift(same, T.BOOLEAN))


def _list_arithmetic() -> Iterator[Function]:
    for kind in (INTEGER, DOUBLE):
        for name, run in (("add", _add), ("multiply", _multiply)):
            function_id = name_function("1.0", f"{kind.type.short}-{name}")
            yield Function(function_id, (kind, kind), kind, lift(run, kind.type), rest=kind)
        divide = _divide if kind is INTEGER else operator.truediv
        for name, work in (("subtract", operator.sub), ("divide", divide)):
            function_id = name_function("1.0", f"{kind.type.short}-{name}")
            yield Function(function_id, (kind, kind), kind, lift(work, kind.type))
        yield Function(name_function("1.0", f"{kind.type.short}-abs"), (kind,), kind, lift(abs, kind.type))
    yield Function(
        name_function("1.0", "integer-mod"), (INTEGER, INTEGER), INTEGER, lift(_remainder, T.INTEGER)
    )
    yield Function(name_function("1.0", "round"), (DOUBLE,), DOUBLE, lift(_round, T.DOUBLE))
    yield Function(name_function("1.0", "floor"), (DOUBLE,), DOUBLE, lift(_floor, T.DOUBLE))


def _add(*numbers: float) -> float:
    total = numbers[0]
    for each in numbers[1:]:
        total += each
    return total


def _multiply(*numbers: float) -> float:
    total = numbers[0]
    for each in numbers[1:]:
        total *= each
        if isinstance(total, int) and total.bit_length() > _MOST_BITS:
            raise LimitError("a number is too large")
    return total


def _divide(one: int, other: int) -> int:
    """Towards zero."""
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _remainder(one: int, other: int) -> int:
    return one - other * _divide(one, other)


def _round(number: float) -> float:
    """Half to even (7.5)."""
    return float(round(number)) if math.isfinite(number) else number


def _floor(number: float) -> float:
    return float(math.floor(number)) if math.isfinite(number) else number


def _list_orders() -> Iterator[Function]:
    orders: dict[str, Callable[[Any, Any], bool]] = {
        "greater-than": operator.gt,
        "greater-than-or-equal": operator.ge,
        "less-than": operator.lt,
        "less-than-or-equal": operator.le,
    }
    for kind in (T.INTEGER, T.DOUBLE, T.STRING, T.DATE, T.DATE_TIME):
        for name, run in orders.items():
            function_id = name_function("1.0", f"{kind.short}-{name}")
            yield Function(function_id, (Kind(kind), Kind(kind)), BOOLEAN, lift(run, T.BOOLEAN))
    for name, run in orders.items():
        takes = (Kind(T.TIME), Kind(T.TIME))
        yield Function(name_function("1.0", f"time-{name}"), takes, BOOLEAN, lift(_on_times(run), T.BOOLEAN))


def _on_times(run: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """The standard calls it illegal to order a time with a zone and one without (A.3.8)."""

    def compare(one: Any, other: Any) -> bool:
        if (one.zone is None) != (other.zone is None):
            raise ValueError("a time with a time zone is compared with one without; `time-in-range` can")
        return run(one, other)

    return compare


def _list_logic() -> Iterator[Function]:
    yield Function(name_function("1.0", "or"), (), BOOLEAN, _or, rest=BOOLEAN, lazy=True)
    yield Function(name_function("1.0", "and"), (), BOOLEAN, _and, rest=BOOLEAN, lazy=True)
    yield Function(name_function("1.0", "n-of"), (INTEGER,), BOOLEAN, _n_of, rest=BOOLEAN, lazy=True)
    yield Function(name_function("1.0", "not"), (BOOLEAN,), BOOLEAN, lift(operator.not_, T.BOOLEAN))


def _ask(argument: Lazy) -> Any:
    found = argument()
    assert isinstance(found, Value)  # the types were checked when the policy was read
    return found.content


def _or(*given: Lazy) -> Value:
    return TRUE if any(_ask(each) for each in given) else FALSE


def _and(*given: Lazy) -> Value:
    return TRUE if all(_ask(each) for each in given) else FALSE


def _n_of(count: Lazy, *given: Lazy) -> Value:
    """Stops when enough are true, or when too few are left."""
    needed = _ask(count)
    if needed < 0 or needed > len(given):
        raise cannot(f"`n-of` asks for {needed} of {len(given)} arguments")
    for at, each in enumerate(given):
        if needed == 0 or needed > len(given) - at:
            break
        needed -= _ask(each)
    return TRUE if needed == 0 else FALSE

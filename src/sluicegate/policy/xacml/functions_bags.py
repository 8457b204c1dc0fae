"""Functions of bags and sets (A.3.10, A.3.11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sluicegate.policy.xacml.functions_scalar import (
    BOOLEAN,
    INTEGER,
    WITH_EQUALITY,
    name_function,
    names_by_type,
)
from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.signature import Bag, Function, Kind, LimitError
from sluicegate.policy.xacml.values import Value, make_value

T = DataType
MOST_MEMBERS: Final = 10_000


def list_bag_functions() -> Iterator[Function]:
    for kind in WITH_EQUALITY:
        one, bag = Kind(kind), Kind(kind, bag=True)
        yield from _list_basic(kind, {name: names_by_type(kind, name) for name in _BASIC})
        for function_id in names_by_type(kind, "is-in"):
            yield Function(function_id, (one, bag), BOOLEAN, _is_in)
        for name, (run, gives) in _SETS.items():
            for function_id in names_by_type(kind, name):
                yield Function(function_id, (bag, bag), gives or bag, run)
    for kind in (T.IP_ADDRESS, T.DNS_NAME):  # they have no equality, so no sets
        yield from _list_basic(
            kind, {name: (name_function("2.0", f"{kind.short}-{name}"),) for name in _BASIC}
        )


_BASIC = ("one-and-only", "bag-size", "bag")


def _list_basic(kind: DataType, ids: dict[str, tuple[str, ...]]) -> Iterator[Function]:
    one, bag = Kind(kind), Kind(kind, bag=True)
    for function_id in ids["one-and-only"]:
        yield Function(function_id, (bag,), one, _only)
    for function_id in ids["bag-size"]:
        yield Function(function_id, (bag,), INTEGER, _size)
    for function_id in ids["bag"]:
        yield Function(function_id, (), bag, _collect, rest=one)


def _only(bag: Bag) -> Value:
    if len(bag) != 1:
        raise ValueError(f"a bag of {len(bag)} values has no one and only")
    return bag[0]


def _size(bag: Bag) -> Value:
    return make_value(T.INTEGER, len(bag))


def _collect(*values: Value) -> Bag:
    return values


def _is_in(value: Value, bag: Bag) -> Value:
    return make_value(T.BOOLEAN, value.content in _distinct(bag))


def _intersect(one: Bag, other: Bag) -> Bag:
    known = _distinct(other)
    return tuple(value for content, value in _distinct(one).items() if content in known)


def _unite(one: Bag, other: Bag) -> Bag:
    return tuple(_distinct(one + other).values())


def _distinct(bag: Bag) -> dict[Any, Value]:
    if len(bag) > MOST_MEMBERS and bag[0].type not in (T.STRING, T.ANY_URI):
        # numbers can be chosen so that all are found in one place
        raise LimitError("a bag has too many values")
    found: dict[Any, Value] = {}
    for each in bag:
        found.setdefault(each.content, each)
    return found


def _meets(one: Bag, other: Bag) -> Value:
    return make_value(T.BOOLEAN, bool(_intersect(one, other)))


def _is_subset(one: Bag, other: Bag) -> Value:
    known = _distinct(other)
    return make_value(T.BOOLEAN, all(each.content in known for each in one))


def _same_set(one: Bag, other: Bag) -> Value:
    return make_value(T.BOOLEAN, _distinct(one).keys() == _distinct(other).keys())


_SETS = {
    "intersection": (_intersect, None),
    "union": (_unite, None),
    "at-least-one-member-of": (_meets, BOOLEAN),
    "subset": (_is_subset, BOOLEAN),
    "set-equals": (_same_set, BOOLEAN),
}

"""All functions of the standard by id, and the higher-order ones apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Final

from sluicegate.policy.xacml.functions_bags import list_bag_functions
from sluicegate.policy.xacml.functions_scalar import (
    BOOLEAN,
    FALSE,
    TRUE,
    list_scalar_functions,
    name_function,
)
from sluicegate.policy.xacml.functions_text import list_text_functions
from sluicegate.policy.xacml.functions_time import list_time_functions
from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.signature import (
    Bag,
    Found,
    Function,
    Kind,
    LimitError,
    MisuseError,
    cannot,
    shorten_id,
)
from sluicegate.policy.xacml.values import Value

# Of combinations of values in one call of a higher-order function.
MAX_COMBINATIONS: Final = 100_000

_listed = chain(list_scalar_functions(), list_text_functions(), list_time_functions(), list_bag_functions())
FUNCTIONS: Final[dict[str, Function]] = {each.function_id: each for each in _listed}

_XPATH = Kind(DataType.XPATH_EXPRESSION)
NODE_COUNT = name_function("3.0", "xpath-node-count")
NODE_EQUAL = name_function("3.0", "xpath-node-equal")
NODE_MATCH = name_function("3.0", "xpath-node-match")


def _need_content(*_: Found) -> Found:
    raise cannot("an XPath needs the content of a request")


# They look into the request's content, so whoever evaluates runs them.
CONTENT_FUNCTIONS: Final[dict[str, Function]] = {
    NODE_COUNT: Function(NODE_COUNT, (_XPATH,), Kind(DataType.INTEGER), _need_content),
    NODE_EQUAL: Function(NODE_EQUAL, (_XPATH, _XPATH), BOOLEAN, _need_content),
    NODE_MATCH: Function(NODE_MATCH, (_XPATH, _XPATH), BOOLEAN, _need_content),
}

Call = Callable[[Sequence[Value]], Value]


@dataclass(frozen=True, slots=True)
class HigherOrder:
    """`bags` is how many of the arguments after the function are bags: exactly one, both of two, or any number."""

    function_id: str
    bags: str
    run: Callable[[Call, Sequence[Found]], Found]
    maps: bool = False

    def check(self, inner: Function, given: Sequence[Kind]) -> Kind:
        """The type of its result, when it can be applied so."""
        short = shorten_id(self.function_id)
        count = sum(kind.bag for kind in given)
        fits = {"one": count == 1, "two": count == len(given) == 2, "any": count >= 1}[self.bags]
        if not fits:
            raise MisuseError(
                "xacml-argument-type", f"`{short}` is given {count} bags of {len(given)} arguments"
            )
        inner.check([Kind(kind.type) for kind in given])
        if inner.gives.bag or (not self.maps and inner.gives != BOOLEAN):
            raise MisuseError(
                "xacml-argument-type", f"`{short}` cannot use a function that gives {inner.gives}"
            )
        return Kind(inner.gives.type, bag=True) if self.maps else BOOLEAN


def find_function(function_id: str) -> Function | HigherOrder:
    """The function of this id, or `MisuseError`."""
    found = FUNCTIONS.get(function_id) or HIGHER_ORDER.get(function_id) or CONTENT_FUNCTIONS.get(function_id)
    if found is None:
        raise MisuseError("xacml-function", f"the function `{function_id}` is not known")
    return found


def find_first_order(function_id: str) -> Function:
    """As `find_function`, for a place where a higher-order function cannot stand."""
    found = find_function(function_id)
    if isinstance(found, HigherOrder):
        raise MisuseError("xacml-function", f"`{shorten_id(function_id)}` cannot be used here")
    return found


def _combine(given: Sequence[Found]) -> Iterator[tuple[Value, ...]]:
    """Every choice of one value from each bag."""
    for at, chosen in enumerate(product(*((each,) if isinstance(each, Value) else each for each in given))):
        if at >= MAX_COMBINATIONS:
            raise LimitError("a higher-order function would try too many combinations")
        yield chosen


def _any(call: Call, given: Sequence[Found]) -> Value:
    return TRUE if any(call(chosen).content for chosen in _combine(given)) else FALSE


def _all(call: Call, given: Sequence[Found]) -> Value:
    return TRUE if all(call(chosen).content for chosen in _combine(given)) else FALSE


def _map(call: Call, given: Sequence[Found]) -> Bag:
    return tuple(call(chosen) for chosen in _combine(given))


def _all_of_any(call: Call, given: Sequence[Found]) -> Value:
    first, second = _take_two(given)
    return TRUE if all(_any(call, (each, second)).content for each in first) else FALSE


def _any_of_all(call: Call, given: Sequence[Found]) -> Value:
    first, second = _take_two(given)
    return TRUE if any(_all(call, (each, second)).content for each in first) else FALSE


def _take_two(given: Sequence[Found]) -> tuple[Bag, Bag]:
    first, second = ((each,) if isinstance(each, Value) else each for each in given)
    if len(first) * len(second) > MAX_COMBINATIONS:
        raise LimitError("a higher-order function would try too many combinations")
    return first, second


def _list_higher_order() -> Iterator[HigherOrder]:
    for version in ("3.0", "1.0"):
        yield HigherOrder(name_function(version, "any-of"), "one", _any)
        yield HigherOrder(name_function(version, "all-of"), "one", _all)
        yield HigherOrder(name_function(version, "any-of-any"), "any", _any)
        yield HigherOrder(name_function(version, "map"), "one", _map, maps=True)
    yield HigherOrder(name_function("1.0", "all-of-any"), "two", _all_of_any)
    yield HigherOrder(name_function("1.0", "any-of-all"), "two", _any_of_all)
    yield HigherOrder(name_function("1.0", "all-of-all"), "two", _all)


HIGHER_ORDER: Final[dict[str, HigherOrder]] = {each.function_id: each for each in _list_higher_order()}

"""Types of expressions, what functions take and give, and the errors of both stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sluicegate.policy.xacml.context import MissingAttribute, Status
from sluicegate.policy.xacml.names import DataType, StatusCode
from sluicegate.policy.xacml.values import Value


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of an expression: a data type, or a bag of it."""

    type: DataType
    bag: bool = False

    def __str__(self) -> str:
        return f"a bag of {self.type.short}" if self.bag else self.type.short


# What evaluating an expression gives: one value, or the values of a bag.
Bag = tuple[Value, ...]
Found = Value | Bag

# A function at work: one call per argument, so that those not needed are not evaluated.
Lazy = Callable[[], Found]


class MisuseError(Exception):
    """A policy that cannot mean anything: found when it is read, before any decision."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class UndeterminedError(Exception):
    """Evaluation could not be finished; it becomes Indeterminate with this status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class LimitError(Exception):
    """More work than we do for one decision. No Indeterminate of a part: permit-unless-deny would make a Permit of it."""


def cannot(message: str, status: StatusCode = StatusCode.PROCESSING_ERROR) -> UndeterminedError:
    return UndeterminedError(Status(status, message))


def miss(missing: MissingAttribute) -> UndeterminedError:
    message = f"the attribute `{missing.attribute_id}` is missing"
    return UndeterminedError(Status(StatusCode.MISSING_ATTRIBUTE, message, (missing,)))


@dataclass(frozen=True, slots=True)
class Function:
    """A first-order function: the types of its arguments, of its result, and what it does.

    `rest` is the type of any number of further arguments. A strict function is given its arguments' values,
    a lazy one the means to ask for them.
    """

    function_id: str
    takes: tuple[Kind, ...]
    gives: Kind
    run: Callable[..., Any]
    rest: Kind | None = None
    lazy: bool = False
    slow: bool = False
    """Whether it takes long for long texts."""

    def check(self, given: Sequence[Kind]) -> None:
        """Whether it can be applied to arguments of these types."""
        short = shorten_id(self.function_id)
        if len(given) < len(self.takes) or (self.rest is None and len(given) > len(self.takes)):
            least = "at least " if self.rest else ""
            raise MisuseError(
                "xacml-argument-count",
                f"`{short}` takes {least}{len(self.takes)} arguments, not {len(given)}",
            )
        for at, kind in enumerate(given):
            wanted = self.takes[at] if at < len(self.takes) else self.rest
            if kind != wanted:
                raise MisuseError(
                    "xacml-argument-type", f"argument {at + 1} of `{short}` is {kind}; it has to be {wanted}"
                )


def shorten_id(identifier: str) -> str:
    """The last part of an identifier, for messages."""
    return identifier.rpartition(":")[2] or identifier

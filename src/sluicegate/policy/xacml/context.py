"""What is asked and what is answered: the request and response contexts of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from sluicegate.policy.xacml.names import DataType, StatusCode
from sluicegate.policy.xacml.values import Value


class Content(Protocol):
    """A category's XML, as far as a decision looks into it."""

    def select(
        self, path: str, namespaces: tuple[tuple[str, str], ...], within: Value | None
    ) -> Sequence[ContentNode]:
        """The nodes that an XPath finds, from the node that `within` finds if given; `ValueError` if it cannot."""
        ...


class ContentNode(Protocol):
    """A node of some content; equal nodes are one and the same node."""

    @property
    def text(self) -> str | None: ...

    def contains(self, other: ContentNode) -> bool:
        """Whether the other node is this one or lies below it."""
        ...


@dataclass(frozen=True, slots=True)
class Attribute:
    attribute_id: str
    values: tuple[Value, ...]
    issuer: str | None = None
    include_in_result: bool = False


@dataclass(frozen=True, slots=True)
class Category:
    """The attributes of one category, in the order given."""

    name: str
    attributes: tuple[Attribute, ...] = ()
    content: Content | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One decision request. A `fault` says why it cannot be decided: it is answered, with Indeterminate."""

    categories: tuple[Category, ...] = ()
    return_policy_ids: bool = False
    fault: Status | None = None


@dataclass(frozen=True, slots=True)
class MissingAttribute:
    category: str
    attribute_id: str
    type: DataType
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    code: StatusCode
    message: str | None = None
    missing: tuple[MissingAttribute, ...] = ()


OK = Status(StatusCode.OK)


class Decision(Enum):
    """With the extended values of Indeterminate (7.10): what it could have been without the error."""

    PERMIT = "Permit"
    DENY = "Deny"
    NOT_APPLICABLE = "NotApplicable"
    INDETERMINATE_P = "Indeterminate{P}"
    INDETERMINATE_D = "Indeterminate{D}"
    INDETERMINATE_DP = "Indeterminate{DP}"

    @property
    def standard(self) -> str:
        """One of the four values that a response may have."""
        return self.value.partition("{")[0]

    @property
    def indeterminate(self) -> bool:
        return self.value.startswith("Indeterminate")


@dataclass(frozen=True, slots=True)
class Assignment:
    attribute_id: str
    value: Value
    category: str | None = None
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """An obligation (binding) or an advice (not) with its values."""

    notice_id: str
    assignments: tuple[Assignment, ...]
    binding: bool


@dataclass(frozen=True, slots=True)
class PolicyIdentifier:
    policy_id: str
    version: str
    is_set: bool


@dataclass(frozen=True, slots=True)
class Result:
    """The answer, and what it rests on: whether the clock was read, and which (category, attribute) were."""

    decision: Decision
    status: Status = OK
    obligations: tuple[Notice, ...] = ()
    advice: tuple[Notice, ...] = ()
    attributes: tuple[Category, ...] = ()
    policies: tuple[PolicyIdentifier, ...] = ()
    read_clock: bool = False
    read_attributes: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Response:
    results: tuple[Result, ...]

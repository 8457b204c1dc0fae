"""Policies as XACML 3.0 has them; XACML 2.0 is read into the same. Frozen, without places in a text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.values import Value


class Effect(Enum):
    PERMIT = "Permit"
    DENY = "Deny"


@dataclass(frozen=True, slots=True)
class Designator:
    """The bag of a category's attribute values of one data type."""

    category: str
    attribute_id: str
    type: DataType
    must_be_present: bool
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class Selector:
    """The bag of what an XPath finds in a category's content."""

    category: str
    path: str
    type: DataType
    must_be_present: bool
    context_selector_id: str | None = None
    namespaces: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionName:
    """A function as an argument of a higher-order function."""

    function_id: str


@dataclass(frozen=True, slots=True)
class VariableReference:
    variable_id: str


@dataclass(frozen=True, slots=True)
class Apply:
    function_id: str
    arguments: tuple[Expression, ...]
    description: str | None = None


Expression = Value | Designator | Selector | FunctionName | VariableReference | Apply


@dataclass(frozen=True, slots=True)
class Match:
    function_id: str
    value: Value
    attribute: Designator | Selector


@dataclass(frozen=True, slots=True)
class AllOf:
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    ways: tuple[AllOf, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Applies when every `AnyOf` does; without any it applies to all requests."""

    parts: tuple[AnyOf, ...] = ()


@dataclass(frozen=True, slots=True)
class AssignmentExpression:
    attribute_id: str
    expression: Expression
    category: str | None = None
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class NoticeExpression:
    """An obligation (binding) or an advice (not), to be given with decisions of one effect."""

    notice_id: str
    applies_to: Effect
    assignments: tuple[AssignmentExpression, ...]
    binding: bool


@dataclass(frozen=True, slots=True)
class Rule:
    rule_id: str
    effect: Effect
    target: Target = Target()
    condition: Expression | None = None
    notices: tuple[NoticeExpression, ...] = ()
    description: str | None = None


@dataclass(frozen=True, slots=True)
class VariableDefinition:
    variable_id: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Policy:
    policy_id: str
    version: str
    algorithm: str
    rules: tuple[Rule, ...]
    target: Target = Target()
    variables: tuple[VariableDefinition, ...] = ()
    notices: tuple[NoticeExpression, ...] = ()
    description: str | None = None
    xpath_version: str | None = None
    max_delegation_depth: int | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """To a policy, or to a policy set, by id and patterns of versions (`1.*`, `2.+`)."""

    policy_id: str
    to_set: bool
    version: str | None = None
    earliest: str | None = None
    latest: str | None = None


@dataclass(frozen=True, slots=True)
class PolicySet:
    policy_id: str
    version: str
    algorithm: str
    members: tuple[Policy | PolicySet | Reference, ...]
    target: Target = Target()
    notices: tuple[NoticeExpression, ...] = ()
    description: str | None = None
    xpath_version: str | None = None
    max_delegation_depth: int | None = None


Document = Policy | PolicySet

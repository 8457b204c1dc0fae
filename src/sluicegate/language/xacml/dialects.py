"""What differs between XACML 3.0 and 2.0: targets, how attributes are named, obligations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sluicegate.language.xacml.cursor import Cursor
from sluicegate.language.xacml.read_expressions import (
    DesignatorReader,
    check_pattern,
    list_named,
    read_attribute,
    read_attribute_value,
)
from sluicegate.policy.xacml.functions import find_first_order
from sluicegate.policy.xacml.model import AllOf, AnyOf, Designator, Match, Selector, Target
from sluicegate.policy.xacml.names import ACTION, ENVIRONMENT, RESOURCE, SUBJECT, DataType
from sluicegate.policy.xacml.signature import Kind, MisuseError

NAMESPACE_3: Final = "urn:oasis:names:tc:xacml:3.0:core:schema:wd-17"
NAMESPACE_2: Final = "urn:oasis:names:tc:xacml:2.0:policy:schema:os"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one version of XACML is written. `sets`, `policies` and `rules` give the order of their parts."""

    read_target: Callable[[Cursor], Target]
    read_attribute: DesignatorReader
    sets: tuple[frozenset[str], ...]
    policies: tuple[frozenset[str], ...]
    rules: tuple[frozenset[str], ...]
    default_version: str | None


_CATEGORIES: Mapping[str, str] = {
    "Subject": SUBJECT,
    "Resource": RESOURCE,
    "Action": ACTION,
    "Environment": ENVIRONMENT,
}


def read_match(at: Cursor, read: DesignatorReader) -> Match:
    """One test of an attribute; the function has to suit both sides."""
    at.check_attributes("MatchId")
    parts = list(at.children())
    if len(parts) != 2 or parts[0].name != "AttributeValue":
        raise at.refuse("xacml-syntax", f"`{at.name}` needs a value and an attribute")
    value, attribute = read_attribute_value(parts[0]), read(parts[1])
    function_id = at.need("MatchId")
    try:
        function = find_first_order(function_id)
        function.check((Kind(value.type), Kind(attribute.type)))
        check_pattern(function, value)
    except MisuseError as error:
        raise at.blame(error) from None
    if function.gives != Kind(DataType.BOOLEAN) or function.rest is not None:
        raise at.refuse("xacml-condition", "the function of a match has to compare two values")
    return Match(function_id, value, attribute)


def _need_some(at: Cursor, parts: tuple[object, ...]) -> None:
    if not parts:
        raise at.refuse("xacml-syntax", f"`{at.name}` is empty")


def _read_target_3(at: Cursor) -> Target:
    return Target(tuple(_read_any_of(each) for each in list_named(at, "AnyOf")))


def _read_any_of(at: Cursor) -> AnyOf:
    ways = tuple(_read_all_of(each) for each in list_named(at, "AllOf"))
    _need_some(at, ways)
    return AnyOf(ways)


def _read_all_of(at: Cursor) -> AllOf:
    matches = tuple(read_match(each, read_attribute) for each in list_named(at, "Match"))
    _need_some(at, matches)
    return AllOf(matches)


def _read_target_2(at: Cursor) -> Target:
    names = [f"{each}s" for each in _CATEGORIES]
    return Target(tuple(_read_group_2(each) for each in list_named(at, *names)))


def _read_group_2(at: Cursor) -> AnyOf:
    """`Subjects` of which one has to match, and the like."""
    one = at.name.removesuffix("s")
    ways = []
    for each in list_named(at, one):
        matches = tuple(read_match(inner, read_attribute_2) for inner in list_named(each, f"{one}Match"))
        _need_some(each, matches)
        ways.append(AllOf(matches))
    _need_some(at, tuple(ways))
    return AnyOf(tuple(ways))


def read_attribute_2(at: Cursor) -> Designator | Selector:
    """A designator of XACML 2.0, whose name says its category."""
    what = at.name.removesuffix("AttributeDesignator")
    if at.name == "AttributeSelector":
        raise at.refuse("xacml-selector", "a selector of XACML 2.0 is not supported; XACML 3.0's is")
    if what == at.name or what not in _CATEGORIES:
        raise at.unexpected()
    at.check_attributes("AttributeId", "DataType", "MustBePresent", "Issuer", "SubjectCategory")
    category = at.get("SubjectCategory") if what == "Subject" else None
    return Designator(
        category or _CATEGORIES[what],
        at.need("AttributeId"),
        at.data_type(),
        at.flag("MustBePresent", otherwise=False),
        at.get("Issuer"),
    )


def _ranks(*parts: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(each.split()) for each in parts)


_NOTICES = ("ObligationExpressions", "AdviceExpressions")
_SET_PARTS = (
    "Policy PolicySet PolicyIdReference PolicySetIdReference "
    "CombinerParameters PolicyCombinerParameters PolicySetCombinerParameters"
)
_RULE_PARTS = "Rule VariableDefinition CombinerParameters RuleCombinerParameters"

DIALECTS: Final[Mapping[str, Dialect]] = {
    NAMESPACE_3: Dialect(
        _read_target_3,
        read_attribute,
        _ranks("Description", "PolicyIssuer", "PolicySetDefaults", "Target", _SET_PARTS, *_NOTICES),
        _ranks("Description", "PolicyIssuer", "PolicyDefaults", "Target", _RULE_PARTS, *_NOTICES),
        _ranks("Description", "Target", "Condition", *_NOTICES),
        default_version=None,
    ),
    NAMESPACE_2: Dialect(
        _read_target_2,
        read_attribute_2,
        _ranks("Description", "PolicySetDefaults", "Target", _SET_PARTS, "Obligations"),
        _ranks("Description", "PolicyDefaults", "CombinerParameters", "Target", _RULE_PARTS, "Obligations"),
        _ranks("Description", "Target", "Condition"),
        default_version="1.0",
    ),
}

"""Policies and policy sets from XML, of XACML 3.0 and 2.0, with all that can be checked before a request comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lxml import etree

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.xacml.cursor import Cursor
from sluicegate.language.xacml.dialects import DIALECTS, Dialect
from sluicegate.language.xacml.read_expressions import ExpressionReader
from sluicegate.language.xacml.read_notices import read_effect, read_notices
from sluicegate.language.xacml.xml import MAX_MESSAGE, MAX_SIZE, Tree, local_name, namespace_of, parse_xml
from sluicegate.policy.xacml.combine import ONLY_ONE_APPLICABLE, POLICY_ALGORITHMS, RULE_ALGORITHMS
from sluicegate.policy.xacml.link import LinkError, link
from sluicegate.policy.xacml.model import (
    Document,
    Expression,
    NoticeExpression,
    Policy,
    PolicySet,
    Reference,
    Rule,
    Target,
    VariableDefinition,
)
from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.nodes import Node
from sluicegate.policy.xacml.signature import Kind
from sluicegate.policy.xacml.versions import is_version, is_version_pattern
from sluicegate.source import Span

XACML_CODES: Final[dict[str, str]] = {
    "xacml-syntax": "the XML is not that of an XACML policy or request: a part is missing, or not expected there",
    "xacml-namespace": "the XML is of no version of XACML that is read: 3.0 and 2.0 are",
    "xacml-value": "a value is not one of its data type",
    "xacml-data-type": "the data type is not one of the standard",
    "xacml-function": "the function is not one of the standard, or cannot be used there",
    "xacml-argument-count": "a function is given too few or too many arguments",
    "xacml-argument-type": "a function is given an argument of another type than it takes",
    "xacml-condition": "a condition, or a match of a target, does not give a boolean",
    "xacml-constant": "an expression of constants alone fails, whatever is asked",
    "xacml-variable": "a variable is referred to that is not defined in the policy",
    "xacml-algorithm": "the combining algorithm is not one of the standard",
    "xacml-selector": "a selector of a kind that is not supported",
    "xacml-issuer": "the policy has an issuer: delegated administration of policies is not supported",
}

_XPATH_1: Final = "http://www.w3.org/tr/1999/rec-xpath-19991116"

# Standard algorithms have no parameters, so there is nothing to give them to.
_PARAMETERS: Final = frozenset(
    {
        "CombinerParameters",
        "RuleCombinerParameters",
        "PolicyCombinerParameters",
        "PolicySetCombinerParameters",
    }
)
_REPEATED: Final = frozenset({"Rule", "VariableDefinition", "Policy", "PolicySet"}) | _PARAMETERS
_SET_ALGORITHMS: Final = frozenset({*POLICY_ALGORITHMS, ONLY_ONE_APPLICABLE})


@dataclass(frozen=True)
class LoadedDocument:
    """A policy or policy set, and where its parts stand in the text."""

    document: Document
    tree: Tree
    places: Mapping[int, etree._Element]

    def place(self, about: Document | Reference) -> Span | None:
        element = self.places.get(id(about))
        return None if element is None else self.tree.place(element)


def read_policy(content: bytes | str, name: str, max_size: int = MAX_SIZE) -> LoadedDocument:
    """One document, or diagnostics."""
    tree = parse_xml(content, name, max_size)
    at = Cursor(tree, tree.root)
    dialect = DIALECTS.get(namespace_of(tree.root))
    if dialect is None:
        told = "`urn:oasis:names:tc:xacml:3.0:core:schema:wd-17` is the namespace of XACML 3.0"
        raise at.refuse("xacml-namespace", f"`{at.name}` is not of a namespace of XACML policies", told)
    reader = _DocumentReader(dialect)
    try:
        document = reader.read(at)
    except RecursionError:
        raise at.refuse("xml-too-large", "expressions and variables are too deep within each other") from None
    return LoadedDocument(document, tree, reader.places)


def link_documents(loaded: Sequence[LoadedDocument]) -> Node:
    """What decides by these documents; see `policy.xacml.link`."""
    try:
        return link([each.document for each in loaded])
    except LinkError as error:
        spans = (each.place(error.about) for each in loaded)
        span = next((each for each in spans if each is not None), None)
        raise DiagnosticError([Diagnostic(error.code, error.message[:MAX_MESSAGE], span)]) from None


class _DocumentReader:
    """Reads one document; `places` keeps where policies and references stand."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.places: dict[int, etree._Element] = {}

    def read(self, at: Cursor) -> Document:
        found: Document
        if at.name == "Policy":
            found = _PolicyReader(self._dialect, at).read()
        elif at.name == "PolicySet":
            found = self._read_set(at)
        else:
            raise at.unexpected()
        self.places[id(found)] = at.element
        return found

    def _read_set(self, at: Cursor) -> PolicySet:
        at.check_attributes("PolicySetId", "Version", "PolicyCombiningAlgId", "MaxDelegationDepth")
        parts = _sort_parts(at, self._dialect.sets)
        reader = ExpressionReader(_refuse_variable, self._dialect.read_attribute)
        head = _read_head(at, parts, reader, self._dialect)
        members = tuple(self._read_member(each) for each in at.children() if _is_member(each))
        algorithm = _read_algorithm(at, "PolicyCombiningAlgId", _SET_ALGORITHMS)
        return PolicySet(at.need("PolicySetId"), _read_version(at, self._dialect), algorithm, members, *head)

    def _read_member(self, at: Cursor) -> Document | Reference:
        if not at.name.endswith("IdReference"):
            return self.read(at)
        found = _read_reference(at)
        self.places[id(found)] = at.element
        return found


Head = tuple[Target, tuple[NoticeExpression, ...], str | None, str | None, int | None]
Parts = Mapping[str, Sequence[Cursor]]


class _PolicyReader:
    """Reads one policy; a variable is read when it is first referred to, wherever it is defined."""

    def __init__(self, dialect: Dialect, at: Cursor) -> None:
        at.check_attributes("PolicyId", "Version", "RuleCombiningAlgId", "MaxDelegationDepth")
        self._dialect = dialect
        self._at = at
        self._parts = _sort_parts(at, dialect.policies)
        self._defined = {each.need("VariableId"): each for each in self._parts.get("VariableDefinition", ())}
        self._read: dict[str, tuple[Expression, Kind]] = {}
        self._open: list[str] = []
        self._reader = ExpressionReader(self._find_variable, dialect.read_attribute)

    def read(self) -> Policy:
        at = self._at
        variables = tuple(
            self._read_variable(each) for each in self._list_once("VariableDefinition", "VariableId")
        )
        rules = tuple(self._read_rule(each) for each in self._list_once("Rule", "RuleId"))
        target, notices, described, xpath, depth = _read_head(at, self._parts, self._reader, self._dialect)
        return Policy(
            at.need("PolicyId"),
            _read_version(at, self._dialect),
            _read_algorithm(at, "RuleCombiningAlgId", frozenset(RULE_ALGORITHMS)),
            rules,
            target,
            variables,
            notices,
            described,
            xpath,
            depth,
        )

    def _list_once(self, name: str, id_name: str) -> Iterator[Cursor]:
        seen: set[str] = set()
        for each in self._parts.get(name, ()):
            if (found := each.need(id_name)) in seen:
                raise each.refuse("xacml-duplicate", f"`{found}` is there twice")
            seen.add(found)
            yield each

    def _read_rule(self, at: Cursor) -> Rule:
        at.check_attributes("RuleId", "Effect")
        parts = _sort_parts(at, self._dialect.rules)
        target = _only(parts, "Target")
        condition = _only(parts, "Condition")
        return Rule(
            at.need("RuleId"),
            read_effect(at, "Effect"),
            Target() if target is None else self._dialect.read_target(target),
            None if condition is None else self._read_condition(condition),
            _read_all_notices(parts, self._reader),
            _read_description(parts),
        )

    def _read_condition(self, at: Cursor) -> Expression:
        at.check_attributes()
        parts = list(at.children())
        if len(parts) != 1:
            raise at.refuse("xacml-syntax", "a condition needs one expression")
        return self._reader.read_boolean(parts[0])

    def _read_variable(self, at: Cursor) -> VariableDefinition:
        variable_id = at.need("VariableId")
        self._find_variable(at, variable_id)
        return VariableDefinition(variable_id, self._read[variable_id][0])

    def _find_variable(self, at: Cursor, variable_id: str) -> Kind:
        """The type of a variable; it is read now if it was not."""
        if variable_id in self._read:
            return self._read[variable_id][1]
        if variable_id not in self._defined:
            raise at.refuse("xacml-variable", f"the variable `{variable_id}` is not defined")
        if variable_id in self._open:
            raise at.refuse("xacml-cycle", f"the variable `{variable_id}` refers to itself")
        definition = self._defined[variable_id]
        parts = list(definition.children())
        if len(parts) != 1:
            raise definition.refuse("xacml-syntax", "a variable needs one expression")
        if len(self._open) >= _MAX_VARIABLES_OPEN:
            raise at.refuse("xacml-cycle", "too many variables refer to each other in a row")
        self._open.append(variable_id)
        self._read[variable_id] = self._reader.read(parts[0])
        self._open.pop()
        return self._read[variable_id][1]


# Each can be as deep as a document may be, and all are on the stack together.
_MAX_VARIABLES_OPEN: Final = 20


def _sort_parts(at: Cursor, ranks: Sequence[frozenset[str]]) -> dict[str, list[Cursor]]:
    """The children by name; they have to be known, in order, and once where they cannot be repeated."""
    parts: dict[str, list[Cursor]] = {}
    reached = 0
    for each in at.children():
        rank = next((number for number, names in enumerate(ranks) if each.name in names), None)
        if rank is None or rank < reached:
            raise each.unexpected()
        if each.name in parts and each.name not in _REPEATED and not each.name.endswith("IdReference"):
            raise each.refuse("xacml-syntax", f"`{each.name}` is there twice")
        reached = rank
        parts.setdefault(each.name, []).append(each)
    return parts


def _only(parts: Parts, name: str) -> Cursor | None:
    found = parts.get(name)
    return found[0] if found else None


def _read_head(at: Cursor, parts: Parts, reader: ExpressionReader, dialect: Dialect) -> Head:
    """What policies and policy sets have in common."""
    if issuer := _only(parts, "PolicyIssuer"):
        raise issuer.refuse("xacml-issuer", "a policy with an issuer is not supported")
    target = _only(parts, "Target")
    if target is None:
        raise at.refuse("xacml-syntax", f"`{at.name}` needs a `Target`")
    defaults = _only(parts, f"{at.name}Defaults")
    xpath = None if defaults is None else "".join(each.text().strip() for each in defaults.children())
    if xpath is not None and xpath.lower() != _XPATH_1:
        _refuse_paths(at, xpath)
    notices = _read_all_notices(parts, reader)
    return dialect.read_target(target), notices, _read_description(parts), xpath, _read_depth(at)


def _refuse_paths(at: Cursor, version: str) -> None:
    """A path of another version could mean something else, so there must be none."""
    for each in at.element.iter():
        if local_name(each) == "AttributeSelector" or each.get("DataType") == DataType.XPATH_EXPRESSION.value:
            found = Cursor(at.tree, each)
            raise found.refuse("xacml-selector", f"XPath `{version}` is not supported; XPath 1.0 is")


def _read_all_notices(parts: Parts, reader: ExpressionReader) -> tuple[NoticeExpression, ...]:
    groups = (_only(parts, name) for name in ("ObligationExpressions", "AdviceExpressions", "Obligations"))
    return tuple(notice for each in groups if each is not None for notice in read_notices(each, reader))


def _read_description(parts: Parts) -> str | None:
    found = _only(parts, "Description")
    return None if found is None else found.text()


def _read_depth(at: Cursor) -> int | None:
    told = at.get("MaxDelegationDepth")
    if told is not None and not (told.isascii() and told.isdigit() and len(told) < 10):
        raise at.refuse("xacml-syntax", f"`MaxDelegationDepth` is `{told}`, not a number")
    return None if told is None else int(told)


def _read_version(at: Cursor, dialect: Dialect) -> str:
    if at.get("Version") is None and dialect.default_version is not None:
        return dialect.default_version
    version = at.need("Version")
    if not is_version(version):
        raise at.refuse("xacml-syntax", f"`{version}` is not a version such as `1.0`")
    return version


def _read_algorithm(at: Cursor, name: str, known: frozenset[str]) -> str:
    algorithm = at.need(name)
    if algorithm not in known:
        raise at.refuse("xacml-algorithm", f"the combining algorithm `{algorithm}` is not known")
    return algorithm


def _is_member(at: Cursor) -> bool:
    return at.name in ("Policy", "PolicySet", "PolicyIdReference", "PolicySetIdReference")


def _read_reference(at: Cursor) -> Reference:
    at.check_attributes("Version", "EarliestVersion", "LatestVersion")
    patterns = [at.get(name) for name in ("Version", "EarliestVersion", "LatestVersion")]
    for each in patterns:
        if each is not None and not is_version_pattern(each):
            raise at.refuse("xacml-syntax", f"`{each}` is not a pattern of versions such as `1.*`")
    return Reference(at.text().strip(), at.name == "PolicySetIdReference", *patterns)


def _refuse_variable(at: Cursor, variable_id: str) -> Kind:
    raise at.refuse("xacml-variable", f"a policy set has no variables, so no `{variable_id}`")

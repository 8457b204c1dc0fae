"""Expressions from XML, each with its type: what does not fit is refused where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sluicegate.language.xacml.content import UnsupportedPathError, check_path
from sluicegate.language.xacml.cursor import Cursor
from sluicegate.language.xacml.xml import own_namespaces
from sluicegate.policy.xacml.context import Request
from sluicegate.policy.xacml.evaluate import Scope, evaluate
from sluicegate.policy.xacml.functions import HigherOrder, find_first_order, find_function
from sluicegate.policy.xacml.lookup import Lookup
from sluicegate.policy.xacml.model import (
    Apply,
    Designator,
    Expression,
    FunctionName,
    Selector,
    VariableReference,
)
from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.regex_syntax import PatternError, UnsupportedPatternError, compile_pattern
from sluicegate.policy.xacml.signature import Function, Kind, LimitError, MisuseError, UndeterminedError
from sluicegate.policy.xacml.values import BadValueError, Value, read_value

# How to find the type of a variable, which may stand further below.
Variables = Callable[[Cursor, str], Kind]
Typed = tuple[Expression, Kind]

# An attribute's category from the name of its designator, in XACML 2.0.
DesignatorReader = Callable[[Cursor], Designator | Selector]


def read_attribute_value(at: Cursor) -> Value:
    """An `AttributeValue` of a policy or a request."""
    kind = at.data_type()
    text = at.text()
    try:
        value = read_value(kind, text)
    except BadValueError as error:
        raise at.refuse("xacml-value", str(error)) from None
    if kind is not DataType.XPATH_EXPRESSION:
        return value
    category = at.need("XPathCategory")
    return replace(value, xpath_category=category, namespaces=own_namespaces(at.element, text))


def read_designator(at: Cursor) -> Designator:
    at.check_attributes("Category", "AttributeId", "DataType", "MustBePresent", "Issuer")
    return Designator(
        at.need("Category"),
        at.need("AttributeId"),
        at.data_type(),
        at.flag("MustBePresent"),
        at.get("Issuer"),
    )


def read_selector(at: Cursor) -> Selector:
    at.check_attributes("Category", "Path", "DataType", "MustBePresent", "ContextSelectorId")
    _check_path(at, at.need("Path"), at.get("ContextSelectorId") is None)
    return Selector(
        at.need("Category"),
        at.need("Path"),
        at.data_type(),
        at.flag("MustBePresent"),
        at.get("ContextSelectorId"),
        own_namespaces(at.element, at.need("Path")),
    )


def read_attribute(at: Cursor) -> Designator | Selector:
    """A designator or a selector of XACML 3.0."""
    if at.name == "AttributeDesignator":
        return read_designator(at)
    if at.name == "AttributeSelector":
        return read_selector(at)
    raise at.unexpected()


class ExpressionReader:
    """Reads the expressions of one policy."""

    def __init__(self, variables: Variables, read_attribute: DesignatorReader) -> None:
        self._variables = variables
        self._read_attribute = read_attribute

    def read(self, at: Cursor) -> Typed:
        """An expression that has a value, and its type."""
        match at.name:
            case "AttributeValue":
                value = read_attribute_value(at)
                if value.type is DataType.XPATH_EXPRESSION:
                    _check_path(at, value.content, from_document=True)
                return value, Kind(value.type)
            case "Apply":
                return self._read_apply(at)
            case "VariableReference":
                at.check_attributes("VariableId")
                variable_id = at.need("VariableId")
                return VariableReference(variable_id), self._variables(at, variable_id)
            case _:
                attribute = self._read_attribute(at)
                return attribute, Kind(attribute.type, bag=True)

    def read_boolean(self, at: Cursor) -> Expression:
        expression, kind = self.read(at)
        if kind != Kind(DataType.BOOLEAN):
            raise at.refuse("xacml-condition", f"a condition has to be a boolean; this is {kind}")
        return expression

    def _read_apply(self, at: Cursor) -> Typed:
        at.check_attributes("FunctionId")
        parts = list(at.children())
        described = parts.pop(0).text() if parts and parts[0].name == "Description" else None
        function_id = at.need("FunctionId")
        try:
            function = find_function(function_id)
            if isinstance(function, HigherOrder):
                arguments, kind = self._read_higher(at, function, parts)
            else:
                arguments, kind = self._read_first_order(function, parts)
        except MisuseError as error:
            raise at.blame(error) from None
        expression = Apply(function_id, arguments, described)
        _check_constant(at, expression)
        return expression, kind

    def _read_first_order(
        self, function: Function, parts: list[Cursor]
    ) -> tuple[tuple[Expression, ...], Kind]:
        read = [self.read(each) for each in parts]
        function.check([kind for _, kind in read])
        check_pattern(function, read[0][0] if read else None)
        return tuple(expression for expression, _ in read), function.gives

    def _read_higher(
        self, at: Cursor, function: HigherOrder, parts: list[Cursor]
    ) -> tuple[tuple[Expression, ...], Kind]:
        if not parts or parts[0].name != "Function":
            raise at.refuse("xacml-argument-type", "the first argument has to be a function")
        inner_id = parts[0].need("FunctionId")
        inner = find_first_order(inner_id)
        read = [self.read(each) for each in parts[1:]]
        kind = function.check(inner, [kind for _, kind in read])
        check_pattern(inner, read[0][0])
        return (FunctionName(inner_id), *(expression for expression, _ in read)), kind


def _check_path(at: Cursor, path: str, from_document: bool) -> None:
    """At once: as an Indeterminate of each request it would be a Permit to permit-unless-deny."""
    try:
        check_path(path, from_document)
    except UnsupportedPathError as error:
        raise at.refuse("xacml-selector", f"the XPath `{path}` cannot be used: {error}") from None


def check_pattern(function: Function, pattern: Expression | None) -> None:
    """Likewise a pattern that we do not read; one that is none is an error of each request, as the standard has it."""
    if not function.slow or not isinstance(pattern, Value):
        return
    try:
        compile_pattern(pattern.content)
    except UnsupportedPatternError as error:
        raise MisuseError("xacml-constant", f"the pattern is not supported: {error}") from None
    except PatternError:
        return


def _check_constant(at: Cursor, expression: Apply) -> None:
    """What is always an error is one of the policy, not of a request."""
    if not all(_is_constant(each) for each in expression.arguments):
        return
    try:
        evaluate(expression, Scope(Lookup(Request(), None)))
    except (UndeterminedError, LimitError) as error:
        raise at.refuse("xacml-constant", f"this can never be evaluated: {error}") from None


def _is_constant(expression: Expression) -> bool:
    match expression:
        case Value():
            return expression.type is not DataType.XPATH_EXPRESSION
        case FunctionName():
            return True
        case Apply(_, arguments):
            return all(_is_constant(each) for each in arguments)
        case _:
            return False


def list_named(at: Cursor, *names: str) -> Iterator[Cursor]:
    """The children, which have to be of these names."""
    for each in at.children():
        if each.name not in names:
            raise each.unexpected()
        yield each

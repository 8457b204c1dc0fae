"""One `<policy>` of an authorization catalog as CREATE GRANT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sluicegate.errors import Diagnostic, DiagnosticError, Severity
from sluicegate.expr.nodes import Expr, walk
from sluicegate.expr.types import BOOLEAN, NUMERIC, UNKNOWN, Type
from sluicegate.graph.operators import INTERNAL_FUNCTIONS, AggFunction
from sluicegate.language import syntax
from sluicegate.language.expressions import parse_expression
from sluicegate.language.lexing import Cursor
from sluicegate.language.print_expression import print_expression
from sluicegate.language.statements import (
    AggregateRight,
    AllAttributes,
    AppendRight,
    AttributeName,
    CreateGrant,
    ExpressionText,
    FunctionRight,
    Name,
    ReadRight,
    Right,
    StreamUse,
)
from sluicegate.language.xml.methods import PolicyLeaves, Surroundings
from sluicegate.language.xml.read_constraints import find_event, read_during, read_least
from sluicegate.language.xml.read_expression import read_predicate
from sluicegate.language.xml.reader import Element
from sluicegate.language.xml.shape import (
    check_attributes,
    check_children,
    fail,
    find,
    find_all,
    need,
    need_name,
    read_flag,
    read_whole_number,
    require,
)
from sluicegate.language.xml.words import FUNCTIONS
from sluicegate.source import SourceText, Span

_PARTS = {"predicate", "privilege", "gtc", "wtc"}
_OPTIONS = ("name", "grantoption", "mingroup", "grantor", "closed")


@dataclass(frozen=True, slots=True)
class Owner:
    """The role or user that a policy is for; `is_port` where `self` is a port."""

    name: str
    is_user: bool
    is_port: bool


@dataclass
class PolicyReader:
    """Reads a policy; what only closes it is collected, everything else is raised."""

    element: Element
    owner: Owner
    streams: Mapping[str, Mapping[str, Type]]
    notes: list[Diagnostic] = field(default_factory=list)
    closed: str | None = None

    def read(self) -> CreateGrant:
        """The statement; without a name where the document gives none."""
        element = self.element
        check_attributes(element, *_OPTIONS)
        check_children(element, _PARTS, many={"inputstream"})
        self._uses = [self._read_use(each) for each in find_all(element, "inputstream")]
        if not self._uses:
            raise fail("xml-element", "a policy names a stream", element.span)
        privilege = require(element, "privilege")
        check_attributes(privilege, "value", "function")
        check_children(privilege, {"wtc"}, many={"function", "groupby", "narrowby"})
        gtc = find(element, "gtc")
        leaves = PolicyLeaves(Surroundings(self.owner.is_port, find_event(gtc), self._types()))
        right = self._read_right(privilege)
        predicate = self._read_predicate(leaves)
        return CreateGrant(
            Name(need_name(element) if "name" in element.attributes else "", element.span),
            right,
            tuple(StreamUse(stream, alias) for stream, alias, _ in self._uses),
            Name(self.owner.name, element.span),
            self.owner.is_user,
            predicate,
            read_during(gtc, leaves),
            read_least(element, privilege),
            self._read_names(privilege, "groupby"),
            self._read_names(privilege, "narrowby"),
            read_whole_number(element, "mingroup") if "mingroup" in element.attributes else None,
            read_flag(element, "grantoption"),
            grantor=self._read_grantor(),
            # an empty reason closes too
            closed=element.attributes.get("closed", self.closed),
            span=element.span,
            notes=tuple(self.notes),
        )

    def _read_grantor(self) -> Name | None:
        given = "grantor" in self.element.attributes
        return Name(need_name(self.element, "grantor"), self.element.span) if given else None

    def _read_use(self, element: Element) -> tuple[Name, Name | None, list[Name] | None]:
        """The stream, its alias, and the attributes that are listed; None for all."""
        check_attributes(element, "name", "alias", "attributes")
        check_children(element, (), many={"attribute"})
        stream = Name(need_name(element), element.span)
        alias = Name(need_name(element, "alias"), element.span) if "alias" in element.attributes else None
        listed = [Name(need_name(each), each.span) for each in find_all(element, "attribute")]
        told = element.attributes.get("attributes")
        if told is not None and listed:
            message = "attributes are listed in one way, as an attribute or as elements"
            raise fail("xml-element", message, element.span)
        if told is not None and told.strip() != "*":
            listed = [Name(each.strip(), element.span) for each in told.split(",")]
            if not all(each.text for each in listed):
                raise fail("xml-value", "`attributes` is `*` or names between commas", element.span)
        for each in listed:
            self._check_known((alias or stream).text, stream.text, each.text, each.span)
        return stream, alias, None if told is not None and told.strip() == "*" else listed

    def _types(self) -> dict[tuple[str, str], Type]:
        return {
            ((alias or stream).text, name): of
            for stream, alias, _ in self._uses
            for name, of in self.streams.get(stream.text, {}).items()
        }

    def _check_known(self, alias: str, stream: str, name: str, span: Span | None) -> None:
        known = self.streams.get(stream)
        if known is None or name in known:
            return
        reason = f"`{stream}` has no attribute `{name}`"
        self._close(reason, span)

    def _close(self, reason: str, span: Span | None) -> None:
        message = f"the policy allows nothing: {reason[:200]}"
        self.notes.append(Diagnostic("xml-closed-policy", message, span, severity=Severity.WARNING))
        self.closed = self.closed or reason[:200]

    def _read_right(self, privilege: Element) -> Right:
        value = need(privilege, "value").strip().lower()
        functions = find_all(privilege, "function")
        if value != "aggregate" and (functions or "function" in privilege.attributes):
            help_ = 'write value="aggregate" where functions are named apart'
            raise fail("xml-element", f"`{value[:40]}` has no functions", privilege.span, help_)
        match value:
            case "read":
                return self._read_attributes()
            case "join":
                if len(self._uses) < 2:
                    raise fail("xml-element", "a join is granted on two streams or more", privilege.span)
                return self._read_attributes()
            case "append":
                return self._read_append(privilege)
            case "aggregate":
                return self._read_functions(privilege, functions)
            case _:
                return AggregateRight(tuple(self._grant(self._find_function(value, privilege), privilege)))

    def _read_append(self, privilege: Element) -> AppendRight:
        """Tuples are written whole: a list would look narrower than what is granted."""
        if any(listed for _, _, listed in self._uses):
            raise fail("xml-element", "`append` has no attributes", privilege.span, "leave the list out")
        return AppendRight()

    def _read_attributes(self) -> ReadRight:
        if all(listed is None for _, _, listed in self._uses):
            return ReadRight(AllAttributes())
        return ReadRight(tuple(self._list_attributes()))

    def _list_attributes(self) -> Iterator[AttributeName]:
        for stream, alias, listed in self._uses:
            known = [Name(each) for each in self.streams.get(stream.text, {})]
            for name in known if listed is None else listed:
                yield AttributeName(alias or stream, name)

    def _read_functions(self, privilege: Element, functions: list[Element]) -> Right:
        told = privilege.attributes.get("function")
        if told is not None and functions:
            message = "functions are named in one way, as an attribute or as elements"
            raise fail("xml-element", message, privilege.span)
        if told is not None:
            named = [self._find_function(each.strip().lower(), privilege) for each in told.split(",")]
            return AggregateRight(tuple(right for each in named for right in self._grant(each, privilege)))
        if functions:
            return AggregateRight(tuple(right for each in functions for right in self._read_function(each)))
        message = "an aggregate without a function is read as COUNT, which counts messages"
        help_ = 'name it: function="count_distinct" counts ships, where the attribute is the ship\'s'
        self.notes.append(Diagnostic("xml-count", message, privilege.span, help_, Severity.WARNING))
        return AggregateRight(tuple(self._grant(AggFunction.COUNT, privilege)))

    def _find_function(self, name: str, element: Element) -> AggFunction:
        found = FUNCTIONS.get(name)
        if found is None or found in INTERNAL_FUNCTIONS:
            message = f"unknown privilege or function `{name[:40]}`"
            help_ = "write read, join, append, aggregate or a function such as count"
            raise fail("xml-value", message, element.span, help_)
        return found

    def _read_function(self, element: Element) -> Iterator[FunctionRight]:
        check_attributes(element, "name", "attribute", "inputstream")
        check_children(element, ())
        function = self._find_function(need(element, "name"), element)
        told = element.attributes.get("attribute")
        if told is None:
            yield from self._grant(function, element)
        elif told == "*":
            yield FunctionRight(function, None)
        else:
            yield FunctionRight(function, self._read_name(element, "attribute"))

    def _grant(self, function: AggFunction, element: Element) -> Iterator[FunctionRight]:
        """The function of each attribute that is listed; of `*`, of each that it is defined for, and COUNT of tuples."""
        everything = all(listed is None for _, _, listed in self._uses)
        if everything and function is AggFunction.COUNT:
            yield FunctionRight(function, None)
        types = self._types()
        for name in self._list_attributes():
            of = types.get((name.qualifier.text if name.qualifier else "", name.name.text), UNKNOWN)
            if not everything or _is_defined(function, of):
                yield FunctionRight(function, name)

    def _read_names(self, privilege: Element, tag: str) -> tuple[AttributeName, ...]:
        for each in find_all(privilege, tag):
            check_attributes(each, "name", "inputstream")
            check_children(each, ())
        return tuple(self._read_name(each, "name") for each in find_all(privilege, tag))

    def _read_name(self, element: Element, attribute: str) -> AttributeName:
        name = Name(need_name(element, attribute), element.span)
        stream = element.attributes.get("inputstream")
        self._check_reference(stream or "", name.text, element.span)
        return AttributeName(None if stream is None else Name(stream, element.span), name)

    def _check_reference(self, alias: str, name: str, span: Span | None) -> None:
        """An attribute of one of the policy's streams; which one may be left out."""
        meant = [(a or s).text for s, a, _ in self._uses if alias in ("", (a or s).text)]
        streams = [s.text for s, a, _ in self._uses if alias in ("", (a or s).text)]
        if not meant:
            raise fail("xml-reference", f"the policy names no stream `{alias[:60]}`", span)
        if any(each not in self.streams or name in self.streams[each] for each in streams):
            return
        self._close(f"`{streams[0]}` has no attribute `{name}`", span)

    def _read_predicate(self, leaves: PolicyLeaves) -> ExpressionText | None:
        element = find(self.element, "predicate")
        if element is None:
            return None
        expr = read_predicate(element, leaves)
        for node in walk(expr):
            if isinstance(node, syntax.Name) and node.qualifier != "self":
                self._check_reference(node.qualifier, node.name, node.span)
        return write_text(expr, element.span)


def write_text(expr: Expr, span: Span) -> ExpressionText:
    """The expression as a statement has it; what no text could say is refused (I6)."""
    text = print_expression(expr)
    try:
        cursor = Cursor.over(SourceText("<predicate>", text))
        again = parse_expression(cursor)
    except DiagnosticError as error:
        raise fail(error.diagnostics[0].code, error.diagnostics[0].message, span) from None
    if again != expr or not cursor.done:
        raise fail("xml-value", "the predicate has no form as an expression", span)
    return ExpressionText(text, span, expr, elsewhere=True)


def _is_defined(function: AggFunction, of: Type) -> bool:
    if function in (AggFunction.AVG, AggFunction.SUM):
        return of in NUMERIC
    return of != BOOLEAN or function not in (AggFunction.MIN, AggFunction.MAX)

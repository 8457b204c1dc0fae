"""CREATE GRANT to a resolved grant (D6): names, types, and everything that could not be enforced refused here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.functions import lookup
from sluicegate.expr.nodes import (
    FALSE,
    TRUE,
    Call,
    Case,
    Column,
    Expr,
    FactRef,
    IsNull,
    Literal,
    SelfRef,
    walk,
)
from sluicegate.expr.types import BOOLEAN, NUMERIC, Kind
from sluicegate.graph.operators import INTERNAL_FUNCTIONS, AggFunction
from sluicegate.language import syntax
from sluicegate.language.expressions import read_expression, resolve_expression
from sluicegate.language.fold_state import State, check_distinct, check_name, fail, find
from sluicegate.language.lexing import MAX_PROBLEMS
from sluicegate.language.scope import Scope
from sluicegate.language.statements import (
    AggregateRight,
    AllAttributes,
    AppendRight,
    AttributeName,
    CreateGrant,
    ExpressionText,
    Name,
    ReadRight,
)
from sluicegate.policy.model import AggRight, During, Grant, Privilege, Stream, StreamRef, Subject
from sluicegate.source import SourceText, Span


def resolve_grant(state: State, statement: CreateGrant) -> Grant:
    """The grant that the statement means in this catalog; its `grantor` is the caller's to set."""
    check_name("grant", statement.name)
    streams = tuple(_resolve_use(state, use.stream, use.alias) for use in statement.streams)
    check_distinct("alias", [use.alias or use.stream for use in statement.streams])
    subject = _resolve_subject(state, statement)
    if statement.closed is not None:
        return close_grant(
            Grant(statement.name.text, subject, _privilege(statement), streams), statement.closed
        )
    uses = [(ref.alias, state.streams[ref.stream]) for ref in streams]
    return _resolve_open(state, statement, streams, subject, uses)


def _resolve_open(
    state: State,
    statement: CreateGrant,
    streams: tuple[StreamRef, ...],
    subject: Subject,
    uses: list[tuple[str, Stream]],
) -> Grant:
    scope = Scope.of_policy(uses, state.fact_types)
    attributes: tuple[Column, ...] = ()
    rights: tuple[AggRight, ...] = ()
    match statement.right:
        case ReadRight(AllAttributes()):
            attributes = tuple(each.column for relation in scope.relations for each in relation.fields)
        case ReadRight(tuple() as names):
            attributes = resolve_attributes(scope, names)
        case AggregateRight():
            rights = _resolve_rights(scope, statement.right)
        case AppendRight():
            pass
        case _:
            raise TypeError(f"unknown right {statement.right}")
    grant = Grant(
        statement.name.text,
        subject,
        _privilege(statement),
        streams,
        attributes,
        rights,
        TRUE if statement.predicate is None else resolve_predicate(scope, statement.predicate),
        None if statement.during is None else resolve_during(state, *statement.during),
        statement.least,
        resolve_attributes(scope, statement.by),
        resolve_attributes(scope, statement.narrow_by),
        statement.min_group or 0,
        statement.grant_option,
    )
    check_enforceable(grant, [stream for _, stream in uses], statement.name.span)
    return _hold_narrowing(grant, dict(uses), statement, state.recorded)


def _hold_narrowing(
    grant: Grant, uses: Mapping[str, Stream], statement: CreateGrant, recorded: bool
) -> Grant:
    """Pieces of event time, narrowed apart, would be windows below the least (R8).

    What is on record cannot be written otherwise any more: there the event time is no attribute to narrow by.
    """
    if grant.least is None or not grant.least.is_by_time:
        return grant
    times = {column for column in grant.narrow_by if uses[column.qualifier].event_time == column.name}
    for written, column in zip(statement.narrow_by, grant.narrow_by, strict=True):
        if column in times and not recorded:
            message = f"`{column.name}` is the event time, which the least window holds together"
            help_ = "leave it out of NARROW BY; a query chooses its event time by START AT and its window"
            fail("narrow-by-event-time", message, written.name.span, help_)
    return replace(grant, narrow_by=tuple(each for each in grant.narrow_by if each not in times))


def close_grant(grant: Grant, reason: str) -> Grant:
    """What is left of a grant that allows nothing: nobody who forgets to look at `closed` can use it."""
    return Grant(
        grant.name,
        grant.subject,
        grant.privilege,
        grant.streams,
        predicate=FALSE,
        grantor=grant.grantor,
        closed=reason,
    )


def _privilege(statement: CreateGrant) -> Privilege:
    match statement.right:
        case ReadRight():
            return Privilege.READ
        case AggregateRight():
            return Privilege.AGGREGATE
        case AppendRight():
            return Privilege.APPEND
        case _:
            raise TypeError(f"unknown right {statement.right}")


def _resolve_use(state: State, stream: Name, alias: Name | None) -> StreamRef:
    find("stream", stream, state.streams)
    if alias is not None:
        check_name("alias", alias)
    return StreamRef(stream.text, (alias or stream).text)


def _resolve_subject(state: State, statement: CreateGrant) -> Subject:
    if statement.to_user:
        find("user", statement.subject, state.users)
    elif statement.subject.text not in state.roles and statement.subject.text in state.users:
        name = statement.subject.text
        fail(
            "unknown-role", f"`{name}` is a user, not a role", statement.subject.span, f"write TO USER {name}"
        )
    else:
        find("role", statement.subject, state.roles)
    return Subject(statement.subject.text, statement.to_user)


def resolve_attributes(scope: Scope, names: Iterable[AttributeName]) -> tuple[Column, ...]:
    """Each to its column; all unknown ones are raised together."""
    found: dict[Column, None] = {}
    findings: list[Diagnostic] = []
    for name in names:
        if len(findings) >= MAX_PROBLEMS:
            break
        column = _find_column(scope, name)
        if isinstance(column, Diagnostic):
            findings.append(column)
        elif column in found:
            findings.append(Diagnostic("name-twice", f"`{name}` is given twice", name.name.span))
        else:
            found[column] = None
    if findings:
        raise DiagnosticError(findings)
    return tuple(found)


def _find_column(scope: Scope, name: AttributeName) -> Column | Diagnostic:
    qualifier = name.qualifier.text if name.qualifier else ""
    return scope.find(syntax.Name(qualifier, name.name.text, name.name.span))


def _resolve_rights(scope: Scope, right: AggregateRight) -> tuple[AggRight, ...]:
    found: list[AggRight] = []
    for each in right.rights:
        if each.attribute is None:
            made = AggRight(each.function, None)
            if each.function is not AggFunction.COUNT:
                fail("wildcard", f"{each.function.value} needs an attribute", None)
        else:
            (column,) = resolve_attributes(scope, [each.attribute])
            made = AggRight(each.function, column)
            check_function(made, str(each.attribute), each.attribute.name.span)
        if made in found:
            span = each.attribute.name.span if each.attribute else None
            fail("name-twice", f"{each.function.value} of `{each.attribute or '*'}` is given twice", span)
        found.append(made)
    return tuple(found)


def check_function(right: AggRight, name: str, span: Span | None = None) -> None:
    """Whether the function is defined for the attribute, and one that can be granted."""
    of = right.attribute.of if right.attribute else None
    numeric_only = right.function in (AggFunction.AVG, AggFunction.SUM)
    ordered_only = right.function in (AggFunction.MIN, AggFunction.MAX)
    if (numeric_only and of not in NUMERIC) or (ordered_only and of == BOOLEAN):
        message = f"{right.function.value} is not defined for `{name}`, which is {of}"
        fail("type-mismatch", message, span)
    if right.function in INTERNAL_FUNCTIONS:
        fail("unknown-function", f"{right.function.value} cannot be granted", span)


def read_text(text: ExpressionText, scope: Scope) -> Expr:
    """Resolve an expression; findings underline it at its place in the statement's own text."""
    if text.syntax is not None and (text.elsewhere or (text.span and text.span.text == text.text)):
        return resolve_expression(text.syntax, scope)
    return read_expression(SourceText("<statement>", text.text), scope)


def resolve_predicate(scope: Scope, text: ExpressionText) -> Expr:
    predicate = read_text(text, scope)
    if predicate.type.kind not in (Kind.BOOLEAN, Kind.UNKNOWN):
        fail("not-a-condition", f"a condition is needed here, this is of type {predicate.type}", text.span)
    check_null_tests(predicate, text)
    return predicate


def check_null_tests(predicate: Expr, text: ExpressionText) -> None:
    """An unset fact or a missing profile attribute must never open access (R7): nothing may ask whether it is there."""
    for node in walk(predicate):
        strict = not isinstance(node, IsNull | Case)
        if isinstance(node, Call):
            function = lookup(node.function)
            strict = function is not None and function.null_in_null_out
        if not strict and any(isinstance(each, SelfRef | FactRef) for each in walk(node)):
            help_ = "IS NULL, CASE, COALESCE and the like take attributes of streams only in a grant"
            fail("null-test", "a grant cannot ask whether `self` or a fact is set", text.span, help_)


def resolve_during(state: State, lower: ExpressionText, upper: ExpressionText) -> During:
    scope = Scope((), True, state.fact_types)
    during = During(_resolve_bound(scope, lower), _resolve_bound(scope, upper))
    match during:
        case During(Literal(int() as first), Literal(int() as last)) if first > last:
            fail("empty-during", "DURING ends before it begins", upper.span)
    return during


def _resolve_bound(scope: Scope, text: ExpressionText) -> Expr:
    bound = read_text(text, scope)
    is_bound = isinstance(bound, Literal | FactRef) and bound.type.kind in (Kind.TIMESTAMP, Kind.UNKNOWN)
    if not is_bound:
        help_ = "a bound is TIMESTAMP '…', NULL (open) or a fact that holds a timestamp"
        fail("bad-bound", f"`{text.text[:60]}` is not a bound of DURING", text.span, help_)
    return bound


def check_enforceable(grant: Grant, streams: list[Stream], span: Span | None = None) -> None:
    """What would be accepted and then not enforced, or never be of use, is refused."""
    tables = all(stream.event_time is None for stream in streams)
    least = grant.least
    if grant.min_group < 0:
        fail("bad-min-group", "MIN GROUP is below 0", span)
    if grant.min_group and len(streams) > 1:
        help_ = "a join repeats tuples, so that one hidden tuple could make a group of any size; grant on one stream"
        fail("min-group-on-join", "MIN GROUP cannot be kept over a join", span, help_)
    if least is not None and (least.size < 0 or least.step < 0):
        fail("mixed-window", "the least window is below 0", span)
    if least is not None and tables:
        fail(
            "window-on-table",
            "a table has no windows",
            span,
            "leave WINDOW AT LEAST out, or give it TIMESTAMP BY",
        )
    if grant.during is not None and tables:
        fail("during-on-table", "a table has no event time, DURING would not hold", span, "leave DURING out")
    single_read = grant.privilege is Privilege.READ and len(streams) == 1
    if single_read and least is not None and (least.size or least.step):
        help_ = "a reader of single tuples is not held by a window; grant a function such as AVG instead"
        fail("window-on-read", "a least window means nothing for reading one stream", span, help_)
    if grant.privilege is Privilege.APPEND and len(streams) != 1:
        fail("append-streams", "APPEND is granted on one stream", span)
    if grant.privilege is not Privilege.AGGREGATE and (grant.by or grant.narrow_by or grant.min_group):
        fail("aggregate-clause", "BY, NARROW BY and MIN GROUP belong to aggregate grants", span)
    if not (grant.attributes or grant.rights or grant.privilege is Privilege.APPEND):
        fail("empty-right", f"the grant `{grant.name}` grants nothing", span)


def uses_fact(grant: Grant, name: str) -> bool:
    """Whether the grant names a fact."""
    exprs = [grant.predicate, *((grant.during.lower, grant.during.upper) if grant.during else ())]
    return any(isinstance(node, FactRef) and node.name == name for expr in exprs for node in walk(expr))


def uses_attribute(grant: Grant, stream: str, attribute: str) -> bool:
    """Whether the grant names the attribute of the stream, anywhere (D6)."""
    aliases = {ref.alias for ref in grant.streams if ref.stream == stream}
    named = [*grant.attributes, *grant.by, *grant.narrow_by]
    named += [right.attribute for right in grant.rights if right.attribute is not None]
    named += [node for node in walk(grant.predicate) if isinstance(node, Column)]
    return any(column.qualifier in aliases and column.name == attribute for column in named)

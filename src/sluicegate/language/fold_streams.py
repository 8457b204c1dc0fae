"""Streams into a catalog (D1), and what their changes do to grants (D6)."""

from __future__ import annotations

from dataclasses import replace

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import TIMESTAMP, Type
from sluicegate.language.check_ais import check_ais_stream
from sluicegate.language.check_kafka import check_kafka_stream
from sluicegate.language.database_options import DATABASES, read_database
from sluicegate.language.drops import mentions
from sluicegate.language.fold_grants import close_grant, uses_attribute
from sluicegate.language.fold_state import State, check_distinct, check_name, check_new, fail, find
from sluicegate.language.named_results import check_level, read_result
from sluicegate.language.statements import (
    AddAttribute,
    AlterStream,
    AttributeDef,
    CreateStream,
    DropAttribute,
    Name,
    QueryText,
    StreamOptions,
)
from sluicegate.policy.elements import matches
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import Anything
from sluicegate.source import Span


def create_stream(state: State, statement: CreateStream) -> None:
    check_new("stream", statement.name, state.streams)
    stream = Stream(statement.name.text, ())
    options = statement.options
    if statement.query is not None:
        chosen = options.event_time.text if options.event_time else None
        found = read_result(state.snapshot(), statement.query, chosen, stream.name)
        check_level(state.snapshot(), statement.query)
        stream = Stream(
            stream.name,
            found.attributes,
            found.event_time,
            # who states the policies decides by them (R14)
            governed_by_provider=bool(found.stated),
            query=statement.query.text,
            stated=found.stated,
        )
        if state.author is not None and options.owner is None:
            options = replace(options, owner=Name(state.author))
    else:
        stream = replace(stream, attributes=_check_attributes(statement.attributes))
    stream = _with_options(state, stream, options)
    _check_stream(stream, statement.name.span)
    places = {each.name.text: each.name.span for each in statement.attributes}
    place = options.format.span if options.format else statement.name.span
    check_ais_stream(stream, places, place)
    check_kafka_stream(stream, place)
    state.streams[stream.name] = stream
    state.late.pop(stream.name, None)


def alter_stream(state: State, statement: AlterStream) -> None:
    stream = find("stream", statement.name, state.streams)
    # never the whole statement: what it says may be a secret
    place = statement.name.span
    match statement.action:
        case StreamOptions() as options:
            place = options.format.span if options.format else place
            if options.event_time is not None:
                _refuse_result(stream, statement)
            changed = _with_options(state, stream, options)
            _check_described(state, stream, changed, statement)
        case AddAttribute(attribute):
            _refuse_result(stream, statement)
            changed = _add_attribute(stream, attribute)
        case DropAttribute(attribute):
            _refuse_result(stream, statement)
            changed = _drop_attribute(state, stream, attribute)
        case _:
            raise TypeError(f"unknown action {statement.action}")
    _check_stream(changed, statement.name.span)
    check_ais_stream(changed, {}, place)
    check_kafka_stream(changed, place)
    state.streams[stream.name] = changed
    _note_late(state, stream, changed)
    _check_results(state, stream, statement.span)


def _note_late(state: State, before: Stream, after: Stream) -> None:
    """What is added later is in nobody's `*` (D6): policies that were there had no say in it either."""
    old, new = {name for name, _ in before.attributes}, {name for name, _ in after.attributes}
    late = state.late.get(before.name, frozenset()) & new
    state.late[before.name] = late | (new - old) if state.policies else late


def _refuse_result(stream: Stream, statement: AlterStream) -> None:
    if stream.query is not None:
        fail("named-result", f"the attributes of `{stream.name}` are its query's", statement.name.span)


def _check_described(state: State, stream: Stream, changed: Stream, statement: AlterStream) -> None:
    """Patterns that were written for one key would describe other tuples by another."""
    described = (each for each in state.punctuations.values() if each.stream == stream.name)
    if changed.punctuated_by != stream.punctuated_by and any(
        each.ddp.tuples != Anything() for each in described
    ):
        message = f"punctuations of the server describe tuples by `{stream.punctuated_by}`"
        fail("in-use", message, statement.span, "drop them first")


def _check_attributes(attributes: tuple[AttributeDef, ...]) -> tuple[tuple[str, Type], ...]:
    check_distinct("attribute", [attribute.name for attribute in attributes])
    for attribute in attributes:
        check_name("attribute", attribute.name)
    return tuple((attribute.name.text, attribute.type) for attribute in attributes)


def _with_options(state: State, stream: Stream, options: StreamOptions) -> Stream:
    """The stream with what was written; the rest stays."""
    known = dict(stream.attributes)
    changed = stream
    if options.event_time is not None:
        if find("attribute", options.event_time, known) != TIMESTAMP:
            message = f"event time is a TIMESTAMP, `{options.event_time.text}` is not"
            fail("type-mismatch", message, options.event_time.span)
        changed = replace(changed, event_time=options.event_time.text)
    if options.watermark is not None:
        changed = replace(changed, watermark=options.watermark)
    if options.owner is not None:
        find("user", options.owner, state.users)
        changed = replace(changed, owner=options.owner.text)
    if options.punctuated_by is not None:
        find("attribute", options.punctuated_by, known)
        changed = replace(changed, punctuated_by=options.punctuated_by.text)
    if options.key:
        changed = replace(
            changed, key=tuple(each.text for each in options.key if find("attribute", each, known))
        )
    if options.format is not None:
        changed = replace(changed, format=options.format.text, options=())
    if options.options:
        changed = replace(changed, options=options.options)
    order_any = stream.order_any or options.order_any
    governed = stream.governed_by_provider or options.governed_by_provider
    return replace(changed, order_any=order_any, governed_by_provider=governed)


def _check_stream(stream: Stream, span: Span | None) -> None:
    """Options that would mean nothing are refused."""
    if not stream.attributes:
        fail("stream-attributes", f"the stream `{stream.name}` has no attributes", span)
    if stream.watermark and stream.event_time is None:
        fail("table-option", "a table has no watermark", span, "write TIMESTAMP BY attribute")
    if stream.punctuated_by is not None and stream.event_time is None:
        fail("table-option", "a table has no punctuations", span, "write TIMESTAMP BY attribute")
    if stream.query is not None and (stream.punctuated_by is not None or stream.order_any):
        message = "a named result has the policies that ON RESULT states, for all its tuples"
        fail("named-result", message, span, "leave PUNCTUATED BY and ORDER ANY out")
    if not stream.carries_policies and (stream.order_any or stream.governed_by_provider):
        fail("not-punctuated", "ORDER ANY and GOVERNED BY PROVIDER belong to PUNCTUATED BY", span)
    if stream.options and stream.format is None:
        fail("options-without-format", "OPTIONS belong to FROM", span, "write FROM format OPTIONS (…)")
    _check_key(stream, span)
    if stream.query is not None and stream.format is not None:
        fail("named-result", "a named result has no FROM: its tuples come from its query", span)
    if stream.query is not None and stream.watermark:
        fail(
            "named-result", "a named result has no WATERMARK: it waits as the streams do that it reads", span
        )


def _check_key(stream: Stream, span: Span | None) -> None:
    """Rows that are replaced have no event time, and come out of a database or are pushed."""
    if stream.key and (stream.event_time is not None or stream.query is not None):
        message = "KEY is for tables, whose rows are replaced: tuples of a stream are only ever added"
        fail("table-key", message, span, "leave KEY or TIMESTAMP BY out")
    if stream.format in DATABASES:
        if not stream.key:
            message = (
                f"a table of `{stream.format}` needs the key under which its rows are replaced and deleted"
            )
            fail("table-key", message, span, "write KEY (attribute, …)")
        read_database(stream, span)
    elif stream.key and stream.format is not None:
        message = f"rows that come from `{stream.format}` are only ever added"
        fail(
            "table-key",
            message,
            span,
            f"KEY goes with FROM {' and FROM '.join(sorted(DATABASES))}, or without FROM",
        )


def _add_attribute(stream: Stream, attribute: AttributeDef) -> Stream:
    """Seen by nobody until granted (D6): no grant is touched."""
    check_name("attribute", attribute.name)
    names = [Name(name) for name, _ in stream.attributes]
    check_distinct("attribute", [*names, attribute.name])
    return replace(stream, attributes=(*stream.attributes, (attribute.name.text, attribute.type)))


def _drop_attribute(state: State, stream: Stream, attribute: Name) -> Stream:
    """Grants that name it allow nothing from now on (D6)."""
    name = attribute.text
    find("attribute", attribute, dict(stream.attributes))
    if name in (stream.event_time, stream.punctuated_by, *stream.key):
        message = f"`{name}` is the event time of `{stream.name}`, what punctuates it, or its key"
        fail("in-use", message, attribute.span)
    for each in state.punctuations.values():
        described = each.ddp.attributes
        if each.stream == stream.name and described != Anything() and matches(described, name):
            fail("in-use", f"the punctuation `{each.name}` describes `{name}`", attribute.span)
    for user in state.users.values():
        follow = user.follow
        if follow is not None and follow.stream == stream.name and name in (*follow.attributes, follow.on):
            fail("in-use", f"the user `{user.name}` follows `{name}`", attribute.span)
    for grant in list(state.grants.values()):
        if grant.closed is None and uses_attribute(grant, stream.name, name):
            reason = f"the attribute `{name}` of stream `{stream.name}` was dropped"
            state.grants[grant.name] = close_grant(grant, reason)
    return replace(stream, attributes=tuple(each for each in stream.attributes if each[0] != name))


def _check_results(state: State, before: Stream, span: Span | None) -> None:
    """A change that a named result's query cannot live with is refused, not found out later."""
    for stream in list(state.streams.values()):
        if stream.query is None or not mentions(stream.query, before.name):
            continue
        try:
            found = read_result(state.snapshot(), QueryText(stream.query), stream.event_time, stream.name)
        except DiagnosticError as error:
            state.streams[before.name] = before
            message = f"the named result `{stream.name}` reads it: {error.diagnostics[0].message}"
            fail("in-use", message, span, f"DROP STREAM {stream.name} first")
        if found.attributes != stream.attributes:
            state.streams[before.name] = before
            fail("in-use", f"the attributes of the named result `{stream.name}` would change", span)

"""Clauses that several statements share: names, lists, profiles, stream options; and clauses in any order, each once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sluicegate.expr.nodes import Literal
from sluicegate.language.expressions import RESERVED
from sluicegate.language.lexing import NAME, NUMBER, STRING, Cursor
from sluicegate.language.literals import read_duration, read_literal, read_type
from sluicegate.language.scope import suggest
from sluicegate.language.statements import AttributeDef, AttributeName, FollowClause, Name, StreamOptions

MAX_NAME = 200


def read_clauses(cursor: Cursor, readers: Mapping[str, Callable[[], object]]) -> None:
    """Clauses in any order, each at most once, to the end of the statement or an AS."""
    seen: set[str] = set()
    while not cursor.done and not cursor.at_any(";", "AS"):
        token = cursor.current
        if token.key not in readers:
            help_ = suggest(token.key, readers) if token.kind == NAME else None
            cursor.fail_unexpected("a clause (" + ", ".join(readers) + ") or `;`", help=help_)
        if token.key in seen:
            cursor.fail("clause-twice", f"`{token.text}` is given twice", cursor.span(token), "leave one out")
        seen.add(token.key)
        cursor.next()
        readers[token.key]()


def parse_name(cursor: Cursor, what: str) -> Name:
    token = cursor.expect_name(what, RESERVED)
    span = cursor.span(token)
    if len(token.text) > MAX_NAME:
        cursor.fail(
            "name-too-long", f"the name has {len(token.text):,} characters, more than {MAX_NAME}", span
        )
    follower = cursor.current
    if follower.key == "*" and follower.start == token.end:
        help_ = "list the names one by one, or write `*` alone for all attributes"
        cursor.fail("wildcard", f"`{token.text}*` is not a name", cursor.span(token, follower), help_)
    return Name(token.text, span)


def parse_names(cursor: Cursor, what: str) -> tuple[Name, ...]:
    """One or more, each once."""
    names = [parse_name(cursor, what)]
    while cursor.accept(","):
        names.append(parse_name(cursor, what))
    check_once(cursor, names)
    return tuple(names)


def parse_bracketed_names(cursor: Cursor, what: str) -> tuple[Name, ...]:
    cursor.expect("(")
    names = parse_names(cursor, what)
    cursor.expect(")")
    return names


def check_once(cursor: Cursor, names: list[Name]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            cursor.fail("name-twice", f"`{name.text}` is given twice", name.span)
        seen.add(name.text)


def parse_attribute(cursor: Cursor) -> AttributeName:
    """`name` or `qualifier.name`; no wildcards."""
    first = parse_name(cursor, "an attribute")
    if not cursor.accept("."):
        return AttributeName(None, first)
    if cursor.at("*"):
        help_ = "list the attributes, or write `*` alone for all of every stream"
        cursor.fail("wildcard", f"`{first.text}.*` is not an attribute", cursor.span(cursor.current), help_)
    return AttributeName(first, parse_name(cursor, "an attribute"))


def parse_attribute_list(cursor: Cursor) -> tuple[AttributeName, ...]:
    """`(a, b.c)`, each once."""
    cursor.expect("(")
    found = parse_attribute_items(cursor)
    cursor.expect(")")
    return found


def parse_attribute_items(cursor: Cursor) -> tuple[AttributeName, ...]:
    found = {parse_attribute(cursor): None}
    while cursor.accept(","):
        _refuse_star(cursor)
        attribute = parse_attribute(cursor)
        if attribute in found:
            cursor.fail("name-twice", f"`{attribute}` is given twice", attribute.name.span)
        found[attribute] = None
    return tuple(found)


def _refuse_star(cursor: Cursor) -> None:
    if cursor.at("*"):
        cursor.fail(
            "wildcard", "`*` stands alone", cursor.span(cursor.current), "write `*` or a list, not both"
        )


def parse_attributes_of(cursor: Cursor) -> tuple[AttributeDef, ...]:
    """The attributes of a stream, with their types."""
    cursor.expect("(")
    found = [_parse_definition(cursor)]
    while cursor.accept(","):
        found.append(_parse_definition(cursor))
    cursor.expect(")")
    check_once(cursor, [attribute.name for attribute in found])
    return tuple(found)


def _parse_definition(cursor: Cursor) -> AttributeDef:
    name = parse_name(cursor, "the name of an attribute")
    return AttributeDef(name, read_type(cursor))


def parse_stream_options(cursor: Cursor) -> StreamOptions:
    """TIMESTAMP BY, WATERMARK, OWNER, KEY, FROM … OPTIONS, PUNCTUATED BY, ORDER ANY, GOVERNED BY PROVIDER."""
    found = StreamOptions()

    def put(**changes: object) -> None:
        nonlocal found
        found = replace(found, **changes)  # type: ignore[arg-type]  # the keys are the fields' names below

    read_clauses(
        cursor,
        {
            "TIMESTAMP": lambda: put(event_time=_parse_by(cursor)),
            "WATERMARK": lambda: put(watermark=read_duration(cursor)),
            "OWNER": lambda: put(owner=parse_name(cursor, "the name of the owner")),
            "KEY": lambda: put(key=parse_bracketed_names(cursor, "an attribute")),
            "FROM": lambda: put(format=parse_name(cursor, "the name of a format")),
            "OPTIONS": lambda: put(options=_parse_format_options(cursor)),
            "PUNCTUATED": lambda: put(punctuated_by=_parse_by(cursor)),
            "ORDER": lambda: put(order_any=cursor.expect("ANY") is not None),
            "GOVERNED": lambda: put(governed_by_provider=cursor.expect("BY", "PROVIDER") is not None),
        },
    )
    return found


def _parse_by(cursor: Cursor) -> Name:
    cursor.expect("BY")
    return parse_name(cursor, "an attribute")


def _parse_format_options(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    cursor.expect("(")
    found: dict[str, str] = {}
    while True:
        first = cursor.current
        key = _parse_option_key(cursor)
        if key in found:
            cursor.fail("name-twice", f"the option `{key}` is given twice", cursor.span_from(first))
        cursor.expect("=")
        found[key] = _parse_option_value(cursor)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(found.items())


def _parse_option_key(cursor: Cursor) -> str:
    if cursor.current.kind == STRING:
        return cursor.next().text
    parts = [cursor.expect_name("the name of an option").text]
    while cursor.accept("."):
        parts.append(cursor.expect_name("the name of an option").text)
    return ".".join(parts)


def _parse_option_value(cursor: Cursor) -> str:
    token = cursor.current
    if token.kind in (STRING, NUMBER) or token.key in ("TRUE", "FALSE"):
        cursor.next()
        return token.text.lower() if token.kind == NAME else token.text
    return cursor.fail_unexpected("a value in single quotes")


def parse_profile(cursor: Cursor) -> tuple[tuple[Name, Literal], ...]:
    """`(Platoon = 'X', SID = 7)`."""
    cursor.expect("(")
    found: list[tuple[Name, Literal]] = []
    while True:
        name = parse_name(cursor, "an attribute of the profile")
        cursor.expect("=")
        found.append((name, read_literal(cursor).literal))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    check_once(cursor, [name for name, _ in found])
    return tuple(found)


def parse_follow(cursor: Cursor) -> FollowClause:
    """What follows FOLLOW: `stream (attributes) ON attribute WITHIN duration`."""
    stream = parse_name(cursor, "the name of a stream")
    attributes = parse_bracketed_names(cursor, "an attribute")
    cursor.expect("ON")
    on = parse_name(cursor, "an attribute")
    cursor.expect("WITHIN")
    return FollowClause(stream, attributes, on, read_duration(cursor))

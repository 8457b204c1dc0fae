"""Statements back to text: `parse_statements(print_statement(s))` is `s` again (I6)."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.expr.nodes import Literal
from sluicegate.expr.text import write_string
from sluicegate.expr.types import TIMESTAMP
from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import format_duration
from sluicegate.language.print_literals import print_literal, quote_name
from sluicegate.language.punctuations import print_assignments
from sluicegate.language.statements import (
    AddAttribute,
    AddRole,
    AggregateRight,
    AllAttributes,
    AlterRole,
    AlterStream,
    AlterUser,
    AppendRight,
    AttributeDef,
    AttributeName,
    Begin,
    Commit,
    CreateGrant,
    CreatePolicy,
    CreateRole,
    CreateSP,
    CreateStream,
    CreateUser,
    Drop,
    DropAttribute,
    DropFact,
    DropRole,
    FollowClause,
    FromFile,
    FunctionRight,
    InsertSP,
    Name,
    ObjectKind,
    ReadRight,
    Right,
    SetClock,
    SetDisabled,
    SetFact,
    SetProfile,
    Statement,
    StreamOptions,
    StreamUse,
)
from sluicegate.policy.model import LeastWindow


def print_statements(statements: Iterable[Statement]) -> str:
    return "".join(print_statement(statement) + "\n" for statement in statements)


def print_statement(statement: Statement) -> str:
    """One statement, with its `;`. An unknown one raises."""
    match statement:
        case CreateStream():
            text = _print_stream(statement)
        case CreateGrant():
            text = _print_grant(statement)
        case CreateRole(name, inherits):
            text = f"CREATE ROLE {_name(name)}" + (f" INHERITS {_names(inherits)}" if inherits else "")
        case CreateUser():
            text = _print_user(statement)
        case SetFact():
            text = _print_fact(statement)
        case CreateSP(name, stream):
            text = f"CREATE SP {_name(name)} INTO STREAM {_name(stream)} LET {print_assignments(statement)}"
        case InsertSP():
            text = print_insert(statement)
        case AlterUser(name, action):
            text = f"ALTER USER {_name(name)} {_print_user_action(action)}"
        case AlterStream(name, action):
            text = f"ALTER STREAM {_name(name)} {_print_stream_action(action)}"
        case AlterRole(name, inherits):
            text = f"ALTER ROLE {_name(name)} INHERITS {_names(inherits) or 'NONE'}"
        case CreatePolicy(name, xml, replaces):
            verb = "CREATE OR REPLACE" if replaces else "CREATE"
            text = f"{verb} POLICY {write_string(name.text)} AS {write_string(xml.text)}"
        case SetClock(moment):
            text = f"SET CLOCK {print_literal(Literal(moment, TIMESTAMP))}"
        case Drop(kind, name, cascade):
            shown = write_string(name.text) if kind is ObjectKind.POLICY else _name(name)
            text = f"DROP {kind.value} {shown}" + (" CASCADE" if cascade else "")
        case DropFact(name, args):
            text = f"DROP FACT {_name(name)}({_literals(args)})"
        case Begin():
            text = "BEGIN"
        case Commit():
            text = "COMMIT"
        case _:
            raise TypeError(f"unknown statement {type(statement).__name__}")
    return text + ";"


def print_insert(statement: InsertSP) -> str:
    """An INSERT SP without its `;`, as ON RESULT holds it."""
    parts = ["INSERT SP"]
    if statement.name is not None:
        parts.append(f"AS {_name(statement.name)}")
    parts.append("INTO STREAM")
    if statement.stream is not None:
        parts.append(_name(statement.stream))
    return " ".join([*parts, "LET", print_assignments(statement)])


def _name(name: Name) -> str:
    return quote_name(name.text)


def _names(names: Iterable[Name]) -> str:
    return ", ".join(map(_name, names))


def _literals(literals: Iterable[Literal]) -> str:
    return ", ".join(map(print_literal, literals))


def _attribute(attribute: AttributeName) -> str:
    qualifier = f"{_name(attribute.qualifier)}." if attribute.qualifier else ""
    return qualifier + _name(attribute.name)


def _attributes(attributes: Iterable[AttributeName]) -> str:
    return "(" + ", ".join(map(_attribute, attributes)) + ")"


def _print_stream(statement: CreateStream) -> str:
    parts = [f"CREATE STREAM {_name(statement.name)}"]
    if statement.attributes:
        parts.append("(" + ", ".join(map(_print_definition, statement.attributes)) + ")")
    parts += _print_options(statement.options)
    if statement.query is not None:
        parts.append(f"AS {statement.query.text}")
    return " ".join(parts)


def _print_definition(attribute: AttributeDef) -> str:
    return f"{_name(attribute.name)} {attribute.type}"


def _print_options(options: StreamOptions) -> list[str]:
    parts = []
    if options.event_time is not None:
        parts.append(f"TIMESTAMP BY {_name(options.event_time)}")
    if options.watermark is not None:
        parts.append(f"WATERMARK '{format_duration(options.watermark)}'")
    if options.owner is not None:
        parts.append(f"OWNER {_name(options.owner)}")
    if options.key:
        parts.append(f"KEY ({_names(options.key)})")
    if options.format is not None:
        parts.append(f"FROM {_name(options.format)}")
    if options.options:
        pairs = (f"{_option_key(key)} = {write_string(value)}" for key, value in options.options)
        parts.append(f"OPTIONS ({', '.join(pairs)})")
    if options.punctuated_by is not None:
        parts.append(f"PUNCTUATED BY {_name(options.punctuated_by)}")
    if options.order_any:
        parts.append("ORDER ANY")
    if options.governed_by_provider:
        parts.append("GOVERNED BY PROVIDER")
    return parts


def _option_key(key: str) -> str:
    bare = all(quote_name(part) == part for part in key.split("."))
    return key if bare else write_string(key)


def _print_user(statement: CreateUser) -> str:
    parts = [f"CREATE USER {_name(statement.name)}"]
    if statement.roles:
        parts.append(f"ROLES ({_names(statement.roles)})")
    if statement.profile:
        parts.append(_print_profile(statement.profile))
    if statement.follow is not None:
        parts.append(_print_follow(statement.follow))
    return " ".join(parts)


def _print_profile(profile: tuple[tuple[Name, Literal], ...]) -> str:
    return "SET (" + ", ".join(f"{_name(name)} = {print_literal(value)}" for name, value in profile) + ")"


def _print_follow(follow: FollowClause) -> str:
    return (
        f"FOLLOW {_name(follow.stream)} ({_names(follow.attributes)}) ON {_name(follow.on)}"
        f" WITHIN '{format_duration(follow.within)}'"
    )


def _print_fact(statement: SetFact) -> str:
    match statement.value:
        case FromFile(path):
            value = f"FROM FILE {write_string(path)}"
        case Literal() as literal:
            value = print_literal(literal)
    public = "PUBLIC " if statement.public else ""
    return f"SET {public}FACT {_name(statement.name)}({_literals(statement.args)}) = {value}"


def _print_grant(grant: CreateGrant) -> str:
    parts = [
        f"CREATE {'OR REPLACE ' if grant.replace else ''}GRANT {_name(grant.name)} {_print_right(grant.right)}"
    ]
    parts.append("ON " + ", ".join(map(_print_use, grant.streams)))
    if grant.predicate is not None:
        parts.append(f"WHERE {grant.predicate.text}")
    if grant.during is not None:
        parts.append(f"DURING [{grant.during[0].text}, {grant.during[1].text}]")
    if grant.by:
        parts.append(f"BY {_attributes(grant.by)}")
    if grant.narrow_by:
        parts.append(f"NARROW BY {_attributes(grant.narrow_by)}")
    if grant.least is not None:
        parts.append(_print_least(grant.least))
    if grant.min_group is not None:
        parts.append(f"MIN GROUP {grant.min_group}")
    if grant.grantor is not None:
        parts.append(f"GRANTED BY {_name(grant.grantor)}")
    if grant.closed is not None:
        parts.append(f"CLOSED {write_string(grant.closed)}")
    parts.append(f"TO {'USER ' if grant.to_user else ''}{_name(grant.subject)}")
    if grant.grant_option:
        parts.append("WITH GRANT OPTION")
    return " ".join(parts)


def _print_use(use: StreamUse) -> str:
    return _name(use.stream) + (f" AS {_name(use.alias)}" if use.alias else "")


def _print_right(right: Right) -> str:
    match right:
        case ReadRight(AllAttributes()):
            return "READ (*)"
        case ReadRight(tuple() as attributes):
            return f"READ {_attributes(attributes)}"
        case AggregateRight((FunctionRight() as only,)):
            return f"{only.function.value.split()[0]} ({_print_argument(only)})"
        case AggregateRight(rights):
            return f"AGGREGATE ({', '.join(map(_print_function, rights))})"
        case AppendRight():
            return "APPEND"
        case _:
            raise TypeError(f"unknown right {right}")


def _print_function(right: FunctionRight) -> str:
    return f"{right.function.value.split()[0]}({_print_argument(right)})"


def _print_argument(right: FunctionRight) -> str:
    if right.attribute is None:
        return "*"
    distinct = "DISTINCT " if right.function is AggFunction.COUNT_DISTINCT else ""
    return distinct + _attribute(right.attribute)


def _print_least(least: LeastWindow) -> str:
    size, step = (_print_extent(extent, least.rows) for extent in (least.size, least.step))
    return f"WINDOW AT LEAST {size} STEP AT LEAST {step}"


def _print_extent(extent: int, rows: bool) -> str:
    if rows:
        return f"{extent} ROWS"
    return f"'{format_duration(extent)}'" if extent else "0"


def _print_user_action(action: SetProfile | AddRole | DropRole | SetDisabled | FollowClause) -> str:
    match action:
        case SetProfile(profile):
            return _print_profile(profile)
        case AddRole(role):
            return f"ADD ROLE {_name(role)}"
        case DropRole(role):
            return f"DROP ROLE {_name(role)}"
        case SetDisabled(disabled):
            return "DISABLE" if disabled else "ENABLE"
        case FollowClause():
            return _print_follow(action)


def _print_stream_action(action: AddAttribute | DropAttribute | StreamOptions) -> str:
    match action:
        case AddAttribute(attribute):
            return f"ADD {_print_definition(attribute)}"
        case DropAttribute(attribute):
            return f"DROP {_name(attribute)}"
        case StreamOptions():
            return " ".join(_print_options(action))

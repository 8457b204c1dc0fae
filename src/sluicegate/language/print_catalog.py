"""A whole catalog back to statements: `read_catalog(print_statements(catalog_statements(c)))` is `c`, but for its version."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.expr.nodes import TRUE, Column, Literal, Scalar
from sluicegate.expr.types import BIGINT, INT, INT_RANGE, STRING
from sluicegate.language.print_expression import print_expression
from sluicegate.language.statements import (
    AggregateRight,
    AlterUser,
    AppendRight,
    AttributeDef,
    AttributeName,
    CreateGrant,
    CreatePolicy,
    CreateRole,
    CreateSP,
    CreateStream,
    CreateUser,
    ExpressionText,
    FollowClause,
    FunctionRight,
    Name,
    PolicyText,
    QueryText,
    ReadRight,
    Right,
    SetClock,
    SetDisabled,
    SetFact,
    Statement,
    StreamOptions,
    StreamUse,
)
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Fact, Grant, Privilege, Stream, User


def catalog_statements(catalog: Catalog) -> list[Statement]:
    """Everything in the catalog, as statements that make it."""
    found: list[Statement] = [
        CreateRole(Name(role.name), _names(role.inherits)) for role in catalog.roles.values()
    ]
    for user in catalog.users.values():
        found.append(_write_user(user))
        if user.disabled:
            found.append(AlterUser(Name(user.name), SetDisabled(True)))
    found += [_write_stream(stream) for stream in catalog.streams.values()]
    found += [_write_fact(fact) for fact in catalog.facts.values()]
    found += [
        CreateSP(Name(each.name), Name(each.stream), each.ddp, each.srp, each.positive, each.immutable)
        for each in catalog.punctuations.values()
    ]
    found += [write_grant(grant) for grant in catalog.grants.values()]
    found += [CreatePolicy(Name(each.policy_id), PolicyText(each.text)) for each in catalog.policies.values()]
    if catalog.judged_at is not None:
        found.append(SetClock(catalog.judged_at))
    return found


def _names(names: Iterable[str]) -> tuple[Name, ...]:
    return tuple(map(Name, names))


def _name(name: str | None) -> Name | None:
    return None if name is None else Name(name)


def _write_user(user: User) -> CreateUser:
    follow = user.follow
    clause = None
    if follow is not None:
        clause = FollowClause(Name(follow.stream), _names(follow.attributes), Name(follow.on), follow.within)
    profile = tuple((Name(name), value) for name, value in user.profile)
    return CreateUser(Name(user.name), _names(user.roles), profile, clause)


def _write_stream(stream: Stream) -> CreateStream:
    options = StreamOptions(
        _name(stream.event_time),
        stream.watermark or None,
        _name(stream.owner),
        _name(stream.format),
        stream.options,
        _name(stream.punctuated_by),
        stream.order_any,
        stream.governed_by_provider and not stream.stated,
        _names(stream.key),
    )
    if stream.query is not None:
        return CreateStream(Name(stream.name), (), options, QueryText(stream.query))
    attributes = tuple(AttributeDef(Name(name), of) for name, of in stream.attributes)
    return CreateStream(Name(stream.name), attributes, options)


def _write_fact(fact: Fact) -> SetFact:
    return SetFact(Name(fact.name), tuple(map(_write_arg, fact.args)), fact.value, fact.public)


def _write_arg(value: Scalar) -> Literal:
    if isinstance(value, str):
        return Literal(value, STRING)
    low, high = INT_RANGE[INT]
    return Literal(value, INT if low <= value <= high else BIGINT)


def write_grant(grant: Grant) -> CreateGrant:
    """The grant as a statement; attributes with their aliases, `*` as what it stood for."""
    during = grant.during
    bounds = (
        (ExpressionText(print_expression(during.lower)), ExpressionText(print_expression(during.upper)))
        if during
        else None
    )
    shut = grant.closed is not None
    return CreateGrant(
        Name(grant.name),
        _write_right(grant),
        tuple(
            StreamUse(Name(ref.stream), None if ref.alias == ref.stream else Name(ref.alias))
            for ref in grant.streams
        ),
        Name(grant.subject.name),
        grant.subject.is_user,
        None if shut or grant.predicate == TRUE else ExpressionText(print_expression(grant.predicate)),
        bounds,
        grant.least,
        _attributes(grant.by),
        _attributes(grant.narrow_by),
        grant.min_group or None,
        grant.grant_option,
        grantor=_name(grant.grantor),
        closed=grant.closed,
    )


def _write_right(grant: Grant) -> Right:
    match grant.privilege:
        case Privilege.READ:
            return ReadRight(_attributes(grant.attributes))
        case Privilege.AGGREGATE:
            return AggregateRight(
                tuple(
                    FunctionRight(right.function, _attribute(right.attribute) if right.attribute else None)
                    for right in grant.rights
                )
            )
        case Privilege.APPEND:
            return AppendRight()


def _attributes(columns: Iterable[Column]) -> tuple[AttributeName, ...]:
    return tuple(map(_attribute, columns))


def _attribute(column: Column) -> AttributeName:
    return AttributeName(Name(column.qualifier), Name(column.name))

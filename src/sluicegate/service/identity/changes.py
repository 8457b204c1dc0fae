"""Who may change the catalog. The rules themselves are the language's (`language.authority`, R19); here they are asked
for a principal: with the roles that are active in its session, and without telling it of what it may not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Column, columns
from sluicegate.language.fold import apply
from sluicegate.language.statements import CreateStream, Statement
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Grant, Stream
from sluicegate.service.identity.principal import Principal, seat
from sluicegate.service.identity.scopes import GRANT


@dataclass(frozen=True, slots=True)
class Allowed:
    """The change may be made: `author` is what `language.fold.apply` takes, `catalog` is what it gives."""

    author: str | None
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class Denied:
    """Why not; `findings` point into the statement's text."""

    findings: tuple[Diagnostic, ...]

    @property
    def code(self) -> str:
        return self.findings[0].code

    @property
    def message(self) -> str:
        return self.findings[0].message


def may_change(
    principal: Principal, statements: Statement | Sequence[Statement], catalog: Catalog
) -> Allowed | Denied:
    """Whether the principal may make this change, all of it, now.

    Administrators: anything. Others twice: on the part of the catalog that they may know, whose findings they are told,
    then on the whole, of whose findings they are told the codes.
    """
    changes = [statements] if isinstance(statements, Statement) else list(statements)
    if principal.is_admin:
        return _try(catalog, changes, None)
    if not principal.may(GRANT):
        return _deny("scope-missing", "this token is not for changing the catalog")
    if principal.user not in catalog.users:
        return _deny("user-unknown", "only users of the catalog may change it")
    seated = seat(principal, catalog)
    made = [each for each in changes if isinstance(each, CreateStream) and each.query is not None]
    if made and seated.users[principal.user].is_partly_seated:
        return Denied((_refuse_made(made[0]),))
    known = _try(hide_unknown(principal, seated), changes, principal.user)
    if isinstance(known, Denied):
        return known
    whole = _try(catalog, changes, principal.user)
    if isinstance(whole, Denied):
        return _blur(whole, principal)
    named = {name: each for name, each in known.catalog.streams.items() if name not in catalog.streams}
    return _compare_results(named, whole)


def _refuse_made(statement: CreateStream) -> Diagnostic:
    """The result would show what the session has left aside: to its readers, whom the session can choose."""
    message = f"`{statement.name.text}` would be made with all roles of its owner, and this session leaves some aside"
    return Diagnostic("role-inactive", message, statement.name.span, "sign in with all roles to make it")


def _compare_results(made: Mapping[str, Stream], whole: Allowed) -> Allowed | Denied:
    """A named result is on the whole catalog what it is on the known part: a `*` must not tell hidden attributes."""
    for name, stream in made.items():
        if whole.catalog.streams.get(name) != stream:
            return _deny("not-allowed", f"the attributes of `{name}` are not those that its owner may know")
    return whole


def _try(catalog: Catalog, statements: Sequence[Statement], author: str | None) -> Allowed | Denied:
    try:
        return Allowed(author, apply(catalog, statements, author))
    except DiagnosticError as error:
        return Denied(error.diagnostics)


def _deny(code: str, message: str) -> Denied:
    return Denied((Diagnostic(code, message),))


def _blur(denied: Denied, principal: Principal) -> Denied:
    """Without words: those may name streams, attributes and grants that the principal may not know of."""
    message = f"the change does not fit something that `{principal.user}` may not see"
    help_ = "ask an administrator"
    return Denied((Diagnostic(denied.code, message, denied.findings[0].span, help_),))


def hide_unknown(principal: Principal, catalog: Catalog) -> Catalog:
    """The part of the catalog that the principal may know: its own streams whole, others as far as its grants name
    them. `catalog` is its seat."""
    # what is closed allows nothing, so it tells nothing
    held = tuple(each for each in catalog.grants_to(principal.user) if each.closed is None)
    named = {ref.stream for grant in held for ref in grant.streams}
    streams = {
        name: stream if principal.owns(stream) else _show_attributes(stream, held)
        for name, stream in catalog.streams.items()
        if name in named or principal.owns(stream)
    }
    grants = {name: each for name, each in catalog.grants.items() if _is_known(principal, each, streams)}
    punctuations = {
        name: each
        for name, each in catalog.punctuations.items()
        if each.stream in streams and principal.owns(streams[each.stream])
    }
    users = {
        name: replace(user, follow=None) if user.follow and user.follow.stream not in streams else user
        for name, user in catalog.users.items()
    }
    return replace(catalog, streams=streams, grants=grants, punctuations=punctuations, users=users)


def _is_known(principal: Principal, grant: Grant, streams: dict[str, Stream]) -> bool:
    if any(ref.stream not in streams for ref in grant.streams):
        return False
    mine = grant.grantor == principal.user or any(
        principal.owns(streams[ref.stream]) for ref in grant.streams
    )
    subjects = {(name, False) for name in principal.roles} | {(principal.user, True)}
    return mine or (grant.subject.name, grant.subject.is_user) in subjects


def _show_attributes(stream: Stream, held: tuple[Grant, ...]) -> Stream:
    """Event time is known to whoever uses windows (R1)."""
    shown = {stream.event_time}
    for grant in held:
        aliases = {ref.alias for ref in grant.streams if ref.stream == stream.name}
        shown |= {column.name for column in _name_columns(grant) if column.qualifier in aliases}
    return replace(stream, attributes=tuple(each for each in stream.attributes if each[0] in shown))


def _name_columns(grant: Grant) -> set[Column]:
    named = {*grant.attributes, *grant.by, *grant.narrow_by, *columns(grant.predicate)}
    return named | {right.attribute for right in grant.rights if right.attribute is not None}

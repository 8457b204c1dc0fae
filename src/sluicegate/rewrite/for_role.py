"""Whoever holds a role, with a profile that nobody knows: the principal of ASSIST's rewriter (seed 004, section 6.4)."""

from __future__ import annotations

from dataclasses import replace

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import SelfRef, walk
from sluicegate.language.scope import suggest
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Follow, User

ROLE_CODES = {
    "role-not-held": "a query was to be rewritten for a user in a role that the user does not hold",
}


def seat_role(catalog: Catalog, role: str, user: str | None = None) -> tuple[Catalog, str]:
    """The catalog with a principal who is in this role alone, and its name; `user` is whose profile it has.

    Without a user the profile stays in the rewritten query as `self`, for the engine that runs it to put in.
    """
    if role not in catalog.roles:
        raise _fail("unknown-role", f"unknown role `{role[:60]}`", suggest(role, catalog.roles))
    if user is None:
        seated = _make_anybody(catalog, role)
        return catalog.with_user(seated), seated.name
    known = catalog.users.get(user)
    if known is None:
        raise _fail("unknown-user", f"unknown user `{user[:60]}`", suggest(user, catalog.users))
    if role not in catalog.roles_of(user):
        raise _fail("role-not-held", f"`{user}` does not hold the role `{role}`")
    return catalog.with_user(replace(known, roles=(role,))), user


def _make_anybody(catalog: Catalog, role: str) -> User:
    """Attributes that follow a stream stay unknown, and all of these do: what they are is found out when rows come."""
    name = f"any {role}"
    while name in catalog.users:
        name += "'"
    seated = catalog.with_user(User(name, (role,)))
    used = {
        node.name
        for grant in seated.grants_to(name)
        for node in walk(grant.predicate)
        if isinstance(node, SelfRef)
    }
    return User(name, (role,), follow=Follow("", tuple(sorted(used)), "", 0))


def _fail(code: str, message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, help=help_)])

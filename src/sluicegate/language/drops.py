"""DROP: what uses the thing, what goes with it (CASCADE), and what was granted on it (R19)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sluicegate.errors import DiagnosticError
from sluicegate.language.fold_state import fail, find
from sluicegate.language.lexing import NAME, QUOTED, tokenize
from sluicegate.language.statements import Drop, DropFact, Name, ObjectKind
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.delegation import orphans
from sluicegate.policy.elements import matches
from sluicegate.policy.model import Grant
from sluicegate.policy.punctuation import Anything
from sluicegate.policy.verdict import ROLE_MODEL, USER_MODELS
from sluicegate.policy.xacml.policies import Policies
from sluicegate.source import SourceText


@dataclass
class Removal:
    """What a DROP takes away; `uses` says it in words, the thing itself apart."""

    streams: set[str] = field(default_factory=set)
    roles: set[str] = field(default_factory=set)
    users: set[str] = field(default_factory=set)
    grants: set[str] = field(default_factory=set)
    punctuations: set[str] = field(default_factory=set)
    policies: set[str] = field(default_factory=set)
    uses: list[str] = field(default_factory=list)
    granted: list[str] = field(default_factory=list)

    def say(self, use: str) -> None:
        if use not in self.uses:
            self.uses.append(use)


def plan_drop(catalog: Catalog, statement: Drop | DropFact) -> tuple[str, ...]:
    """What goes with the thing if it is dropped with CASCADE, in words: `grant own_platoon`."""
    if isinstance(statement, DropFact):
        return ()
    removal = plan_removal(catalog, statement)
    return (*removal.uses, *removal.granted)


def plan_removal(catalog: Catalog, statement: Drop) -> Removal:
    """Raises when there is no such thing."""
    removal = Removal()
    name = statement.name
    match statement.kind:
        case ObjectKind.GRANT:
            find("grant", name, catalog.grants)
            removal.grants.add(name.text)
        case ObjectKind.SP:
            find("punctuation", name, catalog.punctuations)
            removal.punctuations.add(name.text)
        case ObjectKind.POLICY:
            find("policy", name, catalog.policies)
        case ObjectKind.ROLE:
            find("role", name, catalog.roles)
            _refuse_denied(catalog, name, frozenset({ROLE_MODEL}))
            _plan_role(catalog, name.text, removal)
        case ObjectKind.USER:
            find("user", name, catalog.users)
            _refuse_denied(catalog, name, USER_MODELS)
            _plan_user(catalog, name.text, removal)
        case ObjectKind.STREAM:
            find("stream", name, catalog.streams)
            _plan_stream(catalog, name.text, removal)
        case _:
            raise TypeError(f"unknown kind {statement.kind}")
    _plan_granted(catalog, removal)
    return removal


def remove(catalog: Catalog, removal: Removal) -> Catalog:
    """The catalog without what the removal names."""
    users = {
        name: replace(
            user,
            roles=tuple(role for role in user.roles if role not in removal.roles),
            follow=None if user.follow and user.follow.stream in removal.streams else user.follow,
        )
        for name, user in catalog.users.items()
        if name not in removal.users
    }
    roles = {
        name: replace(role, inherits=tuple(each for each in role.inherits if each not in removal.roles))
        for name, role in catalog.roles.items()
        if name not in removal.roles
    }
    streams = {
        name: replace(stream, owner=None) if stream.owner in removal.users else stream
        for name, stream in catalog.streams.items()
        if name not in removal.streams
    }
    grants = {name: grant for name, grant in catalog.grants.items() if name not in removal.grants}
    kept = {name: each for name, each in catalog.punctuations.items() if name not in removal.punctuations}
    policies = catalog.policies
    if removal.policies:
        kept_policies = {name: each for name, each in policies.items() if name not in removal.policies}
        policies = Policies(kept_policies, policies)
    facts, judged_at = catalog.facts, catalog.judged_at
    return Catalog(
        catalog.version, streams, roles, users, facts, grants, kept, policies, judged_at, catalog.late
    )


def _refuse_denied(catalog: Catalog, name: Name, models: frozenset[str]) -> None:
    """Whom the server denies is not dropped, with CASCADE neither: the punctuation may deny others too."""
    for each in catalog.punctuations.values():
        named = each.srp.model in models and each.srp.subjects != Anything()
        if not each.positive and named and matches(each.srp.subjects, name.text):
            message = f"the punctuation `{each.name}` denies `{name.text}`"
            fail("in-use", message, name.span, f"DROP SP {each.name} first")


def _plan_role(catalog: Catalog, name: str, removal: Removal) -> None:
    removal.roles.add(name)
    _plan_grants(catalog, removal, lambda grant: grant.subject.name == name and not grant.subject.is_user)
    for user in catalog.users.values():
        if name in user.roles:
            removal.say(f"role {name} of user {user.name}")
    for role in catalog.roles.values():
        if name in role.inherits:
            removal.say(f"inheritance of {name} by role {role.name}")


def _plan_user(catalog: Catalog, name: str, removal: Removal) -> None:
    removal.users.add(name)
    _plan_grants(
        catalog,
        removal,
        lambda grant: (grant.subject.is_user and grant.subject.name == name) or grant.grantor == name,
    )
    for stream in catalog.streams.values():
        if stream.owner == name and stream.query is not None:
            # a named result ends with its maker's right
            removal.say(f"stream {stream.name}")
            _plan_stream(catalog, stream.name, removal)
        elif stream.owner == name:
            removal.say(f"ownership of stream {stream.name}")


def _plan_stream(catalog: Catalog, name: str, removal: Removal) -> None:
    if name in removal.streams:
        return
    removal.streams.add(name)
    _plan_grants(catalog, removal, lambda grant: name in grant.stream_names)
    for each in catalog.punctuations.values():
        if each.stream == name:
            removal.punctuations.add(each.name)
            removal.say(f"punctuation {each.name}")
    for user in catalog.users.values():
        if user.follow is not None and user.follow.stream == name:
            removal.say(f"FOLLOW of user {user.name}")
    for stream in catalog.streams.values():
        reads = stream.query is not None and mentions(stream.query, name)
        if stream.name not in removal.streams and reads:
            removal.say(f"stream {stream.name}")
            _plan_stream(catalog, stream.name, removal)


def mentions(query: str, name: str) -> bool:
    """Whether the text of a query has the name; more than needed rather than less."""
    try:
        tokens = tokenize(SourceText("<query>", query))
    except DiagnosticError:
        return True
    return any(token.kind in (NAME, QUOTED) and token.text == name for token in tokens)


def _plan_grants(catalog: Catalog, removal: Removal, concerns: Callable[[Grant], bool]) -> None:
    for grant in catalog.grants.values():
        if grant.name not in removal.grants and concerns(grant):
            removal.grants.add(grant.name)
            removal.say(f"grant {grant.name}")


def _plan_granted(catalog: Catalog, removal: Removal) -> None:
    """Grants that were passed on by the grant option and would rest on nothing."""
    if all(grant.grantor is None for grant in catalog.grants.values()):
        return
    before = set(orphans(catalog))
    for name in orphans(remove(catalog, removal)):
        if name not in before:
            removal.grants.add(name)
            removal.granted.append(f"grant {name}")

"""From one catalog to another: the statements that a person would write, checked by making the change.

Most differences are dropped, altered or created piece by piece. What no ALTER can do (a column's type, an owner taken
away) is dropped with all that hangs on it and made anew; where even that does not lead there, everything is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.fold import apply, order_statements
from sluicegate.language.print_catalog import catalog_statements, write_grant
from sluicegate.language.statements import (
    AlterRole,
    AlterUser,
    CreatePolicy,
    CreateRole,
    CreateSP,
    CreateStream,
    CreateUser,
    Drop,
    DropFact,
    Name,
    ObjectKind,
    SetFact,
    Statement,
)
from sluicegate.policy.catalog import Catalog, FactKey
from sluicegate.service.store.alterations import alter_stream, alter_user, can_alter_user, write_follow
from sluicegate.service.store.folding import apply_change


def find_difference(before: Catalog, after: Catalog) -> list[Statement]:
    """Statements that, made one version, turn one catalog into the other; none where they are equal."""
    if is_same(before, after):
        return []
    for way in (_alter, _rebuild):
        try:
            statements = way(before, after)
            if statements and is_same(apply_change(before, statements, None), after):
                return statements
        except DiagnosticError:
            # an ALTER that the fold refuses: everything anew is the way then
            continue
    message = f"the catalog of version {before.version} cannot be turned into the other by statements"
    raise DiagnosticError([Diagnostic("store-no-way", message, help="write the statements yourself")])


def is_same(one: Catalog, other: Catalog) -> bool:
    """Equal but for the version, and the moment that decisions were made at: it is the gateway's, and never goes back."""
    return replace(one, version=0, judged_at=None) == replace(other, version=0, judged_at=None)


def _rebuild(before: Catalog, after: Catalog) -> list[Statement]:
    draft = _Draft(before)
    draft.drop(ObjectKind.GRANT, before.grants)
    draft.drop(ObjectKind.SP, before.punctuations)
    draft.drop(ObjectKind.STREAM, before.streams)
    draft.drop(ObjectKind.USER, before.users)
    draft.drop(ObjectKind.ROLE, before.roles)
    draft.drop(ObjectKind.POLICY, before.policies)
    draft.emit(*_drop_facts(before, before.facts))
    return [*draft.statements, *order_statements(catalog_statements(replace(after, judged_at=None)))]


def _alter(before: Catalog, after: Catalog) -> list[Statement]:
    wanted = catalog_statements(after)
    draft = _Draft(before)
    for step in (
        _drop_gone,
        _change_roles,
        _change_users,
        _change_streams,
        _change_facts,
        _change_rest,
        _change_policies,
    ):
        step(draft, after, wanted)
    return draft.statements


class _Draft:
    """A catalog with the statements so far: what CASCADE took along is not dropped again, but made anew."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.statements: list[Statement] = []

    def emit(self, *statements: Statement) -> None:
        if statements:
            self.catalog = apply_change(self.catalog, statements, None)
            self.statements += statements

    def drop(self, kind: ObjectKind, names: Iterable[str]) -> None:
        cascade = kind not in (ObjectKind.GRANT, ObjectKind.SP, ObjectKind.POLICY)
        for name in names:
            if name in _HOLDERS[kind](self.catalog):
                self.emit(_drop_plainly(self.catalog, Drop(kind, Name(name), cascade)))


_HOLDERS: dict[ObjectKind, Callable[[Catalog], Iterable[str]]] = {
    ObjectKind.GRANT: lambda catalog: catalog.grants,
    ObjectKind.SP: lambda catalog: catalog.punctuations,
    ObjectKind.STREAM: lambda catalog: catalog.streams,
    ObjectKind.USER: lambda catalog: catalog.users,
    ObjectKind.ROLE: lambda catalog: catalog.roles,
    ObjectKind.POLICY: lambda catalog: catalog.policies,
}


def _drop_plainly(catalog: Catalog, statement: Drop) -> Drop:
    """Without CASCADE where nothing hangs on it: a reader sees that nothing else goes."""
    plain = replace(statement, cascade=False)
    try:
        apply(catalog, [plain])
    except DiagnosticError:
        return statement
    return plain


def _drop_gone(draft: _Draft, after: Catalog, _: list[Statement]) -> None:
    """What is not wanted any more, and what no ALTER can turn into what is wanted."""
    before = draft.catalog
    draft.drop(ObjectKind.GRANT, [name for name in before.grants if name not in after.grants])
    changed = [name for name, each in before.punctuations.items() if after.punctuations.get(name) != each]
    draft.drop(ObjectKind.SP, changed)
    draft.drop(
        ObjectKind.STREAM,
        [
            name
            for name, stream in before.streams.items()
            if name not in after.streams or alter_stream(stream, after.streams[name]) is None
        ],
    )
    draft.drop(
        ObjectKind.USER,
        [
            name
            for name, user in before.users.items()
            if name not in after.users or not can_alter_user(user, after.users[name])
        ],
    )
    draft.drop(ObjectKind.ROLE, [name for name in before.roles if name not in after.roles])


def _change_roles(draft: _Draft, after: Catalog, wanted: list[Statement]) -> None:
    """Inheritances that go, first: what is left is part of what is wanted, so no circle can come up on the way."""
    for role in list(draft.catalog.roles.values()):
        kept = tuple(each for each in role.inherits if each in after.roles[role.name].inherits)
        if kept != role.inherits:
            draft.emit(AlterRole(Name(role.name), tuple(map(Name, kept))))
    made = [
        each for each in wanted if isinstance(each, CreateRole) and each.name.text not in draft.catalog.roles
    ]
    draft.emit(*order_statements(made))
    for role in after.roles.values():
        if draft.catalog.roles[role.name] != role:
            draft.emit(AlterRole(Name(role.name), tuple(map(Name, role.inherits))))


def _change_users(draft: _Draft, after: Catalog, wanted: list[Statement]) -> None:
    """FOLLOW comes with the streams."""
    made = [
        replace(each, follow=None)
        for each in wanted
        if isinstance(each, CreateUser) and each.name.text not in draft.catalog.users
    ]
    draft.emit(*made)
    for user in after.users.values():
        draft.emit(*alter_user(draft.catalog.users[user.name], user))


def _change_streams(draft: _Draft, after: Catalog, wanted: list[Statement]) -> None:
    made = [
        each
        for each in wanted
        if isinstance(each, CreateStream) and each.name.text not in draft.catalog.streams
    ]
    for name, stream in draft.catalog.streams.items():
        draft.emit(*(alter_stream(stream, after.streams[name]) or ()))
    draft.emit(*order_statements(made))
    for user in after.users.values():
        if user.follow is not None and draft.catalog.users[user.name].follow != user.follow:
            draft.emit(AlterUser(Name(user.name), write_follow(user.follow)))


def _change_facts(draft: _Draft, after: Catalog, _: list[Statement]) -> None:
    """Facts of one name have one type: where it changes, all of them are unset first."""
    before = draft.catalog
    retyped = {name for name, of in before.fact_types.items() if after.fact_types.get(name, of) != of}
    gone = [key for key in before.facts if key not in after.facts or key[0] in retyped]
    draft.emit(*_drop_facts(before, gone))
    known = draft.catalog.facts
    changed = {key: fact for key, fact in after.facts.items() if known.get(key) != fact}
    draft.emit(*catalog_statements(Catalog(facts=changed)))


def _drop_facts(catalog: Catalog, keys: Iterable[FactKey]) -> list[Statement]:
    made = catalog_statements(Catalog(facts={key: catalog.facts[key] for key in keys}))
    return [DropFact(each.name, each.args) for each in made if isinstance(each, SetFact)]


def _change_rest(draft: _Draft, after: Catalog, wanted: list[Statement]) -> None:
    """Punctuations, then grants: those that a change above closed or took along are made anew."""
    known = draft.catalog.punctuations
    draft.emit(*(each for each in wanted if isinstance(each, CreateSP) and each.name.text not in known))
    grants = [grant for name, grant in after.grants.items() if draft.catalog.grants.get(name) != grant]
    draft.emit(*(replace(write_grant(each), replace=each.name in draft.catalog.grants) for each in grants))


def _change_policies(draft: _Draft, after: Catalog, wanted: list[Statement]) -> None:
    """All in one go: sets and what they refer to come and go together."""
    before = draft.catalog.policies
    gone = [Drop(ObjectKind.POLICY, Name(each)) for each in before if each not in after.policies]
    changed = [
        replace(each, replace=each.name.text in before)
        for each in wanted
        if isinstance(each, CreatePolicy) and before.get(each.name.text) != after.policies[each.name.text]
    ]
    draft.emit(*gone, *changed)

"""The grant option (R19): what its holder may pass on, what rests on what, and what falls when a grant goes.

A grant that was passed on is compared with each grant that its maker holds with the option; one that it is no wider
than is a parent. Nothing is stored: parents are found anew on each catalog, so a lost role, a disabled user or a
changed profile shows as a grant that rests on nothing.

`self` in a parent means its holder, here the grantor; in the grant passed on it means whoever receives that. So the
grantor's profile is put into the parent before the two are compared: who may read `Platoon = self.Platoon` and is of
platoon X may pass on `Platoon = 'X'`, not `Platoon = self.Platoon`. A profile attribute that is missing, or that
follows a stream, is NULL there and lets nothing be passed on (R7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, permutations

from sluicegate.expr.nodes import NULL, Column, Expr, FactRef, Literal, SelfRef, conjuncts, walk
from sluicegate.expr.rebuild import transform
from sluicegate.expr.solve import implies
from sluicegate.policy.bind import Binder, fact_args
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import During, Grant, LeastWindow, Privilege

MAX_MATCHINGS = 120

Aliases = Mapping[str, str]
"""From the aliases of the grant passed on to those of its parent."""

Entails = Callable[[Expr, Expr], bool]


def check_delegation(catalog: Catalog, author: str, grant: Grant) -> str | None:
    """None when the author may make this grant by the grant option, else the reason in words."""
    user = catalog.users.get(author)
    if user is None or user.disabled:
        return f"`{author}` is no user who may grant"
    held = _find_options(catalog, author, grant)
    if not held:
        streams = ", ".join(f"`{stream}`" for stream in grant.stream_names)
        return f"`{author}` holds no {grant.privilege.value} grant with the grant option on exactly {streams}"
    reasons: list[str] = []
    for parent in held:
        reason = explain_wider(_bind_parent(catalog, author, parent), grant)
        if reason is None:
            return None
        reasons.append(f"under `{parent.name}` {reason}")
    return "; ".join(reasons)


def name_secrets(catalog: Catalog, author: str, grant: Grant) -> tuple[str, ...]:
    """Facts, not public, that the grant names and nothing that it rests on does.

    Queries may not name facts (D3), and a grant that its own maker can be the reader of would do it for them: what it
    lets through tells what the fact is.
    """
    rests = parents(catalog, replace(grant, grantor=author))
    known = {
        (each.name, each.args)
        for name in rests
        for each in _facts(_bind_parent(catalog, author, catalog.grants[name]))
    }
    return tuple(
        dict.fromkeys(
            each.name
            for each in _facts(grant)
            if (each.name, each.args) not in known and not _is_public(catalog, each)
        )
    )


def _facts(grant: Grant) -> Iterator[FactRef]:
    bounds = () if grant.during is None else (grant.during.lower, grant.during.upper)
    for expr in (grant.predicate, *bounds):
        yield from (node for node in walk(expr) if isinstance(node, FactRef))


def _is_public(catalog: Catalog, node: FactRef) -> bool:
    args = fact_args(node)
    fact = None if args is None else catalog.fact(node.name, args)
    return fact is not None and fact.public


def parents(catalog: Catalog, grant: Grant) -> tuple[str, ...]:
    """The grants that this one rests on, by name; none when an administrator or an owner made it."""
    author = grant.grantor
    if author is None:
        return ()
    return tuple(
        parent.name
        for parent in _find_options(catalog, author, grant)
        if explain_wider(_bind_parent(catalog, author, parent), grant) is None
    )


def orphans(catalog: Catalog) -> tuple[str, ...]:
    """Grants that were passed on and rest on nothing any more; two that rest on each other alone are both."""
    waiting = {
        name: parents(catalog, grant) for name, grant in catalog.grants.items() if grant.grantor is not None
    }
    while True:
        held = {name for name, rests in waiting.items() if any(parent not in waiting for parent in rests)}
        if not held:
            return tuple(sorted(waiting))
        waiting = {name: rests for name, rests in waiting.items() if name not in held}


def dependents(catalog: Catalog, name: str) -> tuple[str, ...]:
    """Grants, near and far, that would rest on nothing if this one were dropped."""
    gone = catalog.grants.get(name)
    if gone is None:
        return ()
    # A parent names the same streams, so the others cannot change.
    near = {each.name: each for each in catalog.grants.values() if each.stream_names == gone.stream_names}
    before = orphans(replace(catalog, grants=near))
    del near[name]
    after = orphans(replace(catalog, grants=near))
    return tuple(each for each in after if each not in before)


def _find_options(catalog: Catalog, author: str, grant: Grant) -> list[Grant]:
    """What the author holds that could be a parent; a grant is never its own."""
    return [
        each
        for each in catalog.grants_on(author, grant.stream_names)
        if each.grant_option
        and each.closed is None
        and each.privilege is grant.privilege
        and each.name != grant.name
    ]


def _bind_parent(catalog: Catalog, author: str, parent: Grant) -> Grant:
    binder = Binder(catalog, catalog.users[author])

    def bind(expr: Expr) -> Expr:
        return transform(binder.bind(expr), lambda node: NULL if isinstance(node, SelfRef) else None)

    during = parent.during
    if during is not None:
        during = During(
            _bind_bound(during.lower, bind(during.lower)), _bind_bound(during.upper, bind(during.upper))
        )
    return replace(parent, predicate=bind(parent.predicate), during=during)


def _bind_bound(bound: Expr, bound_to: Expr) -> Expr:
    """A bound that came to be NULL by binding is unknown, not open: the reference stays and equals nothing."""
    return bound if bound_to == NULL and bound != NULL else bound_to


def explain_wider(parent: Grant, grant: Grant, entails: Entails = implies) -> str | None:
    """Why the grant gives more than its parent, None when it does not; aliases are laid over in every way.

    `self` means the same in both: bind the parent first where it does not. The caller compares the privileges.
    """
    reason = _explain_limits(parent, grant)
    if reason is not None:
        return reason
    reason = "its streams cannot be laid over the parent's"
    for aliases in islice(_lay_over(grant, parent), MAX_MATCHINGS):
        found = _explain_columns(parent, grant, aliases) or _explain_predicate(
            parent, grant, aliases, entails
        )
        if found is None:
            return None
        reason = found
    return reason


def _lay_over(grant: Grant, parent: Grant) -> Iterator[Aliases]:
    for order in permutations(parent.streams):
        pairs = list(zip(grant.streams, order, strict=True))
        if all(ours.stream == theirs.stream for ours, theirs in pairs):
            yield {ours.alias: theirs.alias for ours, theirs in pairs}


def _explain_limits(parent: Grant, grant: Grant) -> str | None:
    if not _is_within(parent.during, grant.during):
        return "DURING is wider, or cannot be compared"
    if not _is_no_smaller(parent.least, grant.least):
        return "the least window is smaller, or of another kind"
    if grant.min_group < parent.min_group:
        return f"MIN GROUP is below {parent.min_group}"
    return None


def _is_no_smaller(parent: LeastWindow | None, least: LeastWindow | None) -> bool:
    if parent is None or parent.size == parent.step == 0:
        return True
    return (
        least is not None
        and least.rows == parent.rows
        and least.size >= parent.size
        and least.step >= parent.step
    )


def _is_within(parent: During | None, during: During | None) -> bool:
    """Literals are compared; a fact only equals itself, whatever its value is now."""
    if parent is None:
        return True
    if during is None or not _is_later(parent.lower, during.lower):
        return False
    if _is_open(parent.lower) and not _is_open(parent.upper) and not _is_time(parent.upper):
        # Without a lower bound an unset upper fact gives nothing, with one it is open (R6).
        return _is_open(during.lower) and _is_same(parent.upper, during.upper)
    if _is_open(parent.upper):
        return True
    if _is_time(parent.upper) and _is_time(during.upper):
        return _time(during.upper) <= _time(parent.upper)
    return _is_same(parent.upper, during.upper)


def _is_later(parent: Expr, bound: Expr) -> bool:
    if _is_open(parent):
        return True
    if _is_time(parent) and _is_time(bound):
        return _time(bound) >= _time(parent)
    return _is_same(parent, bound)


def _is_same(parent: Expr, bound: Expr) -> bool:
    return parent == bound and not any(isinstance(node, SelfRef) for node in walk(bound))


def _is_open(bound: Expr) -> bool:
    return isinstance(bound, Literal) and bound.value is None


def _is_time(bound: Expr) -> bool:
    return isinstance(bound, Literal) and isinstance(bound.value, int)


def _time(bound: Expr) -> int:
    if isinstance(bound, Literal) and isinstance(bound.value, int):
        return bound.value
    raise TypeError(f"not a time: {bound}")


def _explain_columns(parent: Grant, grant: Grant, aliases: Aliases) -> str | None:
    ours, theirs = _rights(grant, aliases), _rights(parent, None)
    if not ours <= theirs:
        extra = sorted(f"{function}({name[1]})" if function else name[1] for function, name in ours - theirs)
        return f"it gives more: `{', '.join(extra)}`"
    if not _names(grant.by, aliases) <= _names(parent.by, None):
        return "BY is wider"
    if not _names(grant.narrow_by, aliases) <= _names(parent.narrow_by, None):
        return "NARROW BY is wider"
    return None


def _rights(grant: Grant, aliases: Aliases | None) -> set[tuple[str, tuple[str, str]]]:
    """What is shown: attributes under an empty function name, and what each function is of."""
    shown = {("", name) for name in _names(grant.attributes, aliases)}
    for right in grant.rights:
        columns = () if right.attribute is None else (right.attribute,)
        (name,) = _names(columns, aliases) or {("", "*")}
        shown.add((right.function.value, name))
    return shown


def _names(columns: tuple[Column, ...], aliases: Aliases | None) -> set[tuple[str, str]]:
    return {(aliases[each.qualifier] if aliases else each.qualifier, each.name) for each in columns}


def _explain_predicate(parent: Grant, grant: Grant, aliases: Aliases, entails: Entails) -> str | None:
    ours, theirs = _rename(grant.predicate, aliases), parent.predicate
    if ours == theirs:
        return None
    if not _follows(ours, theirs, entails):
        return "its predicate is not within the parent's"
    # R19 lets only a read grant be narrowed; what an append grant lets be written stays the same too.
    if grant.privilege is not Privilege.READ and not _follows(theirs, ours, entails):
        return "its predicate is not the same as the parent's"
    return None


def _follows(premise: Expr, conclusion: Expr, entails: Entails) -> bool:
    return set(conjuncts(conclusion)) <= set(conjuncts(premise)) or entails(premise, conclusion)


def _rename(expr: Expr, aliases: Aliases) -> Expr:
    if all(ours == theirs for ours, theirs in aliases.items()):
        return expr

    def rename(node: Expr) -> Expr | None:
        return Column(aliases[node.qualifier], node.name, node.of) if isinstance(node, Column) else None

    return transform(expr, rename)

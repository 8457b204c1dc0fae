"""Who can see a stream, or one attribute of it: principals, by which grant, raw or aggregate, until when.

    who(catalog, "Position", "Pos")[0]
    Entry(principal='paul', grant='own_platoon', kind='read', role='Doctor', attributes=('Pos',), …)

An answer for owners and administrators: it shows conditions and facts as they are. It says what grants allow, not
what a tuple's own policy (R14) or a missing profile attribute (R7) then withholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

from sluicegate.expr.nodes import TRUE, Column, Expr, FactRef, Literal, SelfRef, walk
from sluicegate.expr.text import to_text
from sluicegate.expr.values import write_timestamp
from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import format_duration
from sluicegate.language.xacml.decisions import decide_stream
from sluicegate.policy.bind import Binder, fact_args
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import AggRight, During, Grant, LeastWindow, Privilege, User
from sluicegate.rewrite.who_results import find_results_of, is_read_by_owner, list_stated_readers

EVERYONE = "*"


@dataclass(frozen=True, slots=True)
class Entry:
    """One principal and one grant. `kind` is `read`, `aggregate`, `provider` where the tuples' policies decide, `stated`
    where an ON RESULT does, or `owner` of a named result, who needs no grant on it."""

    principal: str
    grant: str
    kind: str
    role: str | None = None
    """The role that the grant is to; None when it is to the user."""
    attributes: tuple[str, ...] = ()
    """Shown as they are: read, or as the keys of groups."""
    functions: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    condition: str | None = None
    window: str | None = None
    min_group: int = 0
    since: str | None = None
    until: str | None = None
    open: bool = True
    """False while a fact that must be set is not (R6)."""
    through: str | None = None
    """The named result, made of the stream, that the grant is on: its rows show what its maker may see."""

    def to_json(self) -> dict[str, object]:
        """Plain lists, text and numbers."""
        return {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True)
class _Span:
    since: str | None = None
    until: str | None = None
    open: bool = True


def who(catalog: Catalog, stream: str, attribute: str | None = None) -> list[Entry]:
    """Every user who can see the stream (or the attribute), once for each grant, by name of both."""
    entries = _list_readers(catalog, stream, attribute)
    known = catalog.streams.get(stream)
    if known is not None and known.owner is not None and is_read_by_owner(catalog, stream):
        shown = tuple(sorted(name for name, _ in known.attributes if attribute in (None, name)))
        entries.append(Entry(known.owner, "", "owner", attributes=shown, streams=(stream,)))
    for result in find_results_of(catalog, stream, attribute):
        entries += [replace(each, through=result) for each in _list_readers(catalog, result, None)]
    return entries


def _list_readers(catalog: Catalog, stream: str, attribute: str | None) -> list[Entry]:
    entries: list[Entry] = []
    holders = _holders(catalog)
    for grant in catalog.grants.values():
        shown = _describe(grant, stream, attribute)
        if shown is not None:
            users = holders.get((grant.subject.name, grant.subject.is_user), ())
            entries.extend(_enter(catalog, grant, shown, users))
    entries += _list_decided(catalog, stream, attribute)
    entries.sort(key=lambda each: (each.principal, each.grant))
    known = catalog.streams.get(stream)
    if known is not None and known.stated:
        # what is stated alone decides there
        stated = list_stated_readers(catalog, known, attribute)
        return [
            Entry(user, "", "stated", attributes=shown, streams=(stream,)) for user, shown in stated.items()
        ]
    if known is not None and known.governed_by_provider and (attribute is None or known.type_of(attribute)):
        entries.insert(0, Entry(EVERYONE, "", "provider", streams=(stream,)))
    return entries


def _list_decided(catalog: Catalog, stream: str, attribute: str | None) -> Iterator[Entry]:
    """What XACML policies allow each user, which only asking for each can tell."""
    if not catalog.policies or stream not in catalog.streams:
        return
    for user in catalog.users:
        grant = decide_stream(catalog, user, stream).grant
        shown = None if grant is None else _describe(grant, stream, attribute)
        if shown is not None:
            yield replace(shown, principal=user)


def _holders(catalog: Catalog) -> dict[tuple[str, bool], list[User]]:
    """Active users by each subject that they are or hold; users with the same roles are looked up once."""
    holders: dict[tuple[str, bool], list[User]] = {}
    closures: dict[tuple[str, ...], frozenset[str]] = {}
    for user in catalog.users.values():
        if user.disabled:
            continue
        held = closures.get(user.roles)
        if held is None:
            held = closures[user.roles] = catalog.roles_of(user.name)
        for subject in ((user.name, True), *((role, False) for role in held)):
            holders.setdefault(subject, []).append(user)
    return holders


def _describe(grant: Grant, stream: str, attribute: str | None) -> Entry | None:
    """What the grant shows of it, without a principal; None when nothing."""
    aliases = {ref.alias for ref in grant.streams if ref.stream == stream}
    if not aliases or grant.closed is not None or grant.privilege is Privilege.APPEND:
        return None
    attributes = _pick((*grant.attributes, *grant.by), aliases, attribute)
    functions = tuple(sorted(_functions(grant.rights, aliases, attribute)))
    if not attributes and not functions:
        return None
    return Entry(
        principal="",
        grant=grant.name,
        kind="read" if grant.privilege is Privilege.READ else "aggregate",
        role=None if grant.subject.is_user else grant.subject.name,
        attributes=attributes,
        functions=functions,
        streams=grant.stream_names,
        condition=None if grant.predicate == TRUE else to_text(grant.predicate),
        window=_describe_least(grant.least),
        min_group=grant.min_group,
    )


def _pick(columns: Iterable[Column], aliases: set[str], attribute: str | None) -> tuple[str, ...]:
    names = {each.name for each in columns if each.qualifier in aliases}
    return tuple(sorted(names if attribute is None else names & {attribute}))


def _functions(rights: Iterable[AggRight], aliases: set[str], attribute: str | None) -> Iterator[str]:
    for right in rights:
        column = right.attribute
        if column is None:
            if attribute is None:
                yield f"{right.function.value}(*)"
        elif column.qualifier in aliases and attribute in (None, column.name):
            distinct = right.function is AggFunction.COUNT_DISTINCT
            yield f"COUNT(DISTINCT {column.name})" if distinct else f"{right.function.value}({column.name})"


def _describe_least(least: LeastWindow | None) -> str | None:
    if least is None:
        return None
    if least.rows:
        return f"at least {least.size} rows every {least.step}"
    return f"at least {format_duration(least.size)} every {format_duration(least.step)}"


def _enter(catalog: Catalog, grant: Grant, shown: Entry, users: Iterable[User]) -> Iterator[Entry]:
    during = grant.during
    personal = during is not None and any(
        isinstance(node, SelfRef) for bound in (during.lower, during.upper) for node in walk(bound)
    )
    span = _Span() if during is None or personal else _describe_during(catalog, during)
    for user in users:
        if during is not None and personal:
            span = _describe_during(catalog, Binder(catalog, user).bind_during(during))
        yield Entry(
            user.name,
            shown.grant,
            shown.kind,
            shown.role,
            shown.attributes,
            shown.functions,
            shown.streams,
            shown.condition,
            shown.window,
            shown.min_group,
            span.since,
            span.until,
            span.open,
        )


def _describe_during(catalog: Catalog, during: During) -> _Span:
    """An unset lower fact, or an unset upper one without a lower bound, gives nothing (R6)."""
    lower, upper = _read_bound(catalog, during.lower), _read_bound(catalog, during.upper)
    unbounded = isinstance(during.lower, Literal) and during.lower.value is None
    named = isinstance(during.upper, FactRef) and fact_args(during.upper) is not None
    ended = lower is _UNSET or (upper is _UNSET and (unbounded or not named))
    return _Span(_tell(during.lower, lower), _tell(during.upper, upper), not ended)


_UNSET = "is not set"


def _read_bound(catalog: Catalog, bound: Expr) -> str | None:
    """The time as text, None where it is open, `_UNSET` where it is not known."""
    if isinstance(bound, FactRef):
        args = fact_args(bound)
        fact = None if args is None else catalog.fact(bound.name, args)
        return _UNSET if fact is None else _read_time(fact.value) or _UNSET
    if isinstance(bound, Literal):
        return _read_time(bound)
    return _UNSET


def _read_time(literal: Literal) -> str | None:
    if literal.value is None:
        return None
    return write_timestamp(literal.value) if isinstance(literal.value, int) else _UNSET


def _tell(bound: Expr, read: str | None) -> str | None:
    return f"{to_text(bound)} {_UNSET}" if read is _UNSET else read

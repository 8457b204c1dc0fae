"""A catalog while statements are folded into it, and the checks on names that all of them share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NoReturn, TypeVar

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.functions import lookup
from sluicegate.expr.types import Kind, Type
from sluicegate.language.expressions import RESERVED
from sluicegate.language.resolve_expression import AGGREGATES
from sluicegate.language.scope import suggest
from sluicegate.language.statements import Name
from sluicegate.policy.catalog import DECIDED, Catalog, FactKey
from sluicegate.policy.model import Fact, Grant, Role, Stream, User
from sluicegate.policy.punctuation import ServerPunctuation
from sluicegate.policy.xacml.policies import Policies, StoredPolicy
from sluicegate.source import Span

_T = TypeVar("_T")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class State:
    """The parts of a catalog as dicts; `author` is who makes the change, None for an administrator.

    `recorded`: the statements were accepted once, and are made again; a rule that came since bounds what they mean.
    """

    def __init__(self, catalog: Catalog, author: str | None, recorded: bool = False) -> None:
        self.author, self.recorded = author, recorded
        self.version = catalog.version
        self.take(catalog)

    def take(self, catalog: Catalog) -> None:
        self.streams: dict[str, Stream] = dict(catalog.streams)
        self.roles: dict[str, Role] = dict(catalog.roles)
        self.users: dict[str, User] = dict(catalog.users)
        self.facts: dict[FactKey, Fact] = dict(catalog.facts)
        self.grants: dict[str, Grant] = dict(catalog.grants)
        self.punctuations: dict[str, ServerPunctuation] = dict(catalog.punctuations)
        self.policies: dict[str, StoredPolicy] = dict(catalog.policies)
        self.judged_at = catalog.judged_at
        self.late: dict[str, frozenset[str]] = dict(catalog.late)
        self.fact_types: dict[str, Type] = dict(catalog.fact_types)
        self._known = catalog.policies

    def snapshot(self) -> Catalog:
        if not self._known.holds(self.policies):
            self._known = Policies(self.policies, self._known)
        return Catalog(
            self.version,
            dict(self.streams),
            dict(self.roles),
            dict(self.users),
            dict(self.facts),
            dict(self.grants),
            dict(self.punctuations),
            self._known,
            self.judged_at,
            dict(self.late),
        )

    def owns(self, stream: str) -> bool:
        """Whether the author may do as it likes with the stream."""
        return self.author is None or self.streams[stream].owner == self.author


def fail(code: str, message: str, span: Span | None, help: str | None = None) -> NoReturn:
    raise DiagnosticError([Diagnostic(code, message, span, help)])


def find(kind: str, name: Name, known: Mapping[str, _T]) -> _T:
    """What the name means, or a diagnostic with a near name."""
    found = known.get(name.text)
    if found is None:
        fail(f"unknown-{kind}", f"unknown {kind} `{_cut(name.text)}`", name.span, suggest(name.text, known))
    return found


def check_new(kind: str, name: Name, known: Mapping[str, object]) -> None:
    """A new name: not taken, not reserved."""
    check_name(kind, name)
    if name.text in known:
        help_ = (
            "CREATE OR REPLACE GRANT replaces it"
            if kind == "grant"
            else "drop or alter it, or take another name"
        )
        fail("name-taken", f"the {kind} `{_cut(name.text)}` exists already", name.span, help_)


def check_name(kind: str, name: Name) -> None:
    text = name.text
    if not text or text.startswith(("#", "_")) or text.casefold() == "self":
        help_ = "`self` and names that begin with `#` or `_` are reserved"
        fail("reserved-name", f"a {kind} cannot be called `{_cut(text)}`", name.span, help_)
    if kind == "grant" and text.startswith(DECIDED):
        fail(
            "reserved-name",
            f"a grant cannot be called `{_cut(text)}`: that is what policies allow",
            name.span,
        )
    if text != text.strip():
        fail("reserved-name", f"the name of a {kind} cannot begin or end with a space", name.span)
    if kind == "fact":
        _check_fact_name(text, name.span)


def _check_fact_name(text: str, span: Span | None) -> None:
    """A fact that no predicate could name, or whose name means something else there, is refused."""
    if lookup(text) is not None or text.upper() in AGGREGATES:
        fail("reserved-name", f"a fact cannot be called `{text}`: it is a function", span)
    if not _PLAIN.fullmatch(text) or text.upper() in RESERVED:
        help_ = "letters, digits and `_`, and no word of the language"
        fail("reserved-name", f"a fact cannot be called `{_cut(text)}`", span, help_)


def check_distinct(what: str, names: Iterable[Name]) -> None:
    """Each once; names that differ in case alone would be one to an engine that ignores it."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.text.casefold(), name.text)
        if other is not name.text and other == name.text:
            fail("name-twice", f"the {what} `{_cut(name.text)}` is given twice", name.span)
        if other != name.text:
            message = f"the {what}s `{_cut(other)}` and `{_cut(name.text)}` differ in case alone"
            fail("near-name", message, name.span)


def unify_fact_types(state: State, name: str, span: Span | None) -> bool:
    """All facts of a name have one type; an empty set takes that of the others. Whether the type changed."""
    keys = [key for key in state.facts if key[0] == name]
    types = {state.facts[key].value.of for key in keys if state.facts[key].value.value != frozenset()}
    if len(types) > 1:
        shown = " and ".join(sorted(map(str, types)))
        help_ = "facts of one name have one type; write 5.0 for a DOUBLE, 5L for a BIGINT"
        fail("fact-type", f"facts called `{_cut(name)}` would be of types {shown}", span, help_)
    before = state.fact_types.pop(name, None)
    if not keys:
        return before is not None
    of = next(iter(types), Type(Kind.SET, Kind.UNKNOWN))
    empties = [key for key in keys if state.facts[key].value.value == frozenset()]
    if empties and of.kind is not Kind.SET:
        fail("fact-type", f"facts called `{_cut(name)}` would be of types {of} and SET", span)
    for key in empties:
        fact = state.facts[key]
        state.facts[key] = Fact(fact.name, fact.args, type(fact.value)(frozenset(), of), fact.public)
    state.fact_types[name] = of
    return before != of


def _cut(name: str) -> str:
    return name if len(name) <= 60 else name[:59] + "…"

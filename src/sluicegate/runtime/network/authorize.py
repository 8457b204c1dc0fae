"""What a user may have of a query under a catalog, ready to run: shape and constants, or the reason why not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import FactRef, walk
from sluicegate.expr.types import Type
from sluicegate.graph.operators import Aggregate, Join, sources
from sluicegate.graph.operators import walk as walk_graph
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.windows import TupleWindow, Window
from sluicegate.language.query_syntax import StartAt
from sluicegate.language.resolve import read_query
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.entries import Entry
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Follow, Grant, User
from sluicegate.policy.verdict import standing_of
from sluicegate.rewrite.manner import USUAL, Manner, OnPartial
from sluicegate.rewrite.named_results import KeptOut, Made, Results
from sluicegate.rewrite.notice import tell_warnings
from sluicegate.rewrite.notices import Decision, Notice, judge
from sluicegate.rewrite.pipeline import Draft, rewrite
from sluicegate.rewrite.releases import find_releases
from sluicegate.runtime.batch import check_served
from sluicegate.runtime.gate.layout import Layout, find_layout
from sluicegate.runtime.network.shapes import Shaped, describe, find_shape
from sluicegate.runtime.stages import DECISION, REWRITING, stage


@dataclass(frozen=True, slots=True)
class Underlying:
    """A named result that a query rests on, and what its maker is given by that."""

    name: str
    maker: str
    releases: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Allowed:
    """A query as the user may have it now. `mark` is equal when nothing about it has changed (R11)."""

    shaped: Shaped
    layout: Layout
    notices: tuple[Notice, ...]
    start: StartAt
    releases: tuple[Entry, ...]
    follow: Follow | None
    mark: str
    without: frozenset[str] = frozenset()
    """Aggregate grants that the ledger keeps it from using (R8)."""
    grants: tuple[str, ...] = ()
    """Those whose views and aggregates stand in what runs."""
    asked: frozenset[str] = frozenset()
    """The streams that the query names, whether it gets anything of them or not."""
    results: tuple[Underlying, ...] = ()
    """The named results that it rests on."""
    kept_out: KeptOut = frozenset()
    """What these results must not use of their makers' aggregate grants (R8)."""

    @property
    def reads(self) -> frozenset[str]:
        """The streams whose tuples it is made of, and the named results on the way."""
        return frozenset((*self.streams, *(each.name for each in self.results)))

    @property
    def streams(self) -> tuple[str, ...]:
        """Those with a log; a named result is read in the logs of what it is made of."""
        return tuple(sorted({each.stream for each in sources(self.shaped.shape.root)}))


def authorize(
    catalog: Catalog,
    user: str,
    query: str,
    without: frozenset[str] = frozenset(),
    kept_out: KeptOut = frozenset(),
    makers: Catalog | None = None,
    manner: Manner = USUAL,
) -> Allowed:
    """Raises `DiagnosticError` with the reason where the user may have nothing, or it cannot be run.

    `without` names grants that are not to be used. `makers` decides about makers of named results, where `catalog` is a
    seat: they are not in the reader's session.
    """
    deciding = makers or catalog
    if without:
        # what is decided now is not decided again, so what is left out stays out
        catalog = with_decisions(catalog, user)
        kept = {name: grant for name, grant in catalog.grants.items() if name not in without}
        catalog = replace(catalog, grants=kept)
    with stage(DECISION):
        asked = read_query(query, catalog)
        known = catalog.users.get(user)
        results = Results(deciding, kept_out, delegating=asked.delegating)
        catalog = results.seat(catalog, user, asked.root)
    with stage(REWRITING):
        draft = rewrite(
            catalog, known or User(user), asked.root, asked.united, asked.delegating, manner.merge
        )
    with stage(DECISION):
        own, notices = _decide(draft, results.tell_ended(catalog, user, asked.root), manner.on_partial)
    with stage(REWRITING):
        used = results.used_by(own)
        plan = results.inline(own)
        check_served(plan, catalog.streams)
        _check_counts(used)
        follow = known.follow if known is not None else None
        shaped = find_shape(plan, environment(catalog, user), _moving(catalog, follow))
        return Allowed(
            shaped,
            find_layout(plan),
            (*tell_warnings(asked.warnings), *notices),
            asked.start,
            find_releases(draft, user, None, deciding),
            follow,
            _mark(plan, shaped, known),
            without,
            tuple(sorted({name for node in walk_graph(own.root) for name in getattr(node, "by", ())})),
            frozenset(each.stream for each in sources(asked.root)),
            tuple(Underlying(each.name, each.maker, each.releases) for each in used),
            kept_out,
        )


def _check_counts(used: Iterable[Made]) -> None:
    """Each reader would count from another tuple on: its rows would be nobody else's, and lie askew to theirs (R8)."""
    for each in used:
        nodes = list(walk_graph(each.plan.root))
        windows = [node.window for node in nodes if isinstance(node, Aggregate)]
        windows += [side for node in nodes if isinstance(node, Join) for side in _sides(node)]
        if any(isinstance(window, TupleWindow) for window in windows):
            message = (
                f"`{each.name}` is made of windows of tuples: it cannot be followed live, only run over files"
            )
            raise DiagnosticError([Diagnostic("not-live", message)])


def _sides(node: Join) -> list[Window]:
    return [each for each in (node.left_window, node.right_window) if each is not None]


def _decide(
    draft: Draft, ended: tuple[Notice, ...], on_partial: OnPartial
) -> tuple[AuthorizedPlan, tuple[Notice, ...]]:
    judged = judge(draft, on_partial)
    notices = (*ended, *judged.notices)
    if judged.decision is Decision.DENY:
        raise _refuse("denied", notices, "no grant applies")
    if draft.plan is None:
        raise _refuse("nothing-to-run", notices, "nothing of what the query asks for can come back")
    return draft.plan, notices


def find_changed(allowed: Allowed, old: Catalog, new: Catalog) -> str | None:
    """Why a query must end that reads a stream, or follows one, that another version declares otherwise."""
    followed = () if allowed.follow is None else (allowed.follow.stream,)
    for name in sorted({*allowed.reads, *followed}):
        if name not in new.streams:
            return "a stream that the query reads was dropped"
        if new.streams[name] != old.streams.get(name):
            return "a stream that the query reads was declared anew"
    return None


def is_same_for(
    user: str,
    old: Catalog,
    new: Catalog,
    named: Iterable[str] | None = None,
    makers: tuple[Catalog, Catalog] | None = None,
) -> bool:
    """Whether nothing that a decision about the user's queries depends on differs: then they need not be judged anew.

    `named` are the streams that they name, where that is known: policies are asked about these alone. `makers` are both
    versions as makers of named results see them, where `old` and `new` are seats.
    """
    before, after = makers or (old, new)
    if (old.streams, old.punctuations, old.claimed) != (new.streams, new.punctuations, new.claimed):
        return False
    # what its roles inherit from each other too: policies of tuples are judged role by role (R15)
    if old.users.get(user) != new.users.get(user) or standing_of(old, user) != standing_of(new, user):
        return False
    if old.policies or new.policies:
        streams = None if named is None else sorted(set(named))
        old, new = with_decisions(old, user, streams), with_decisions(new, user, streams)
    grants = new.grants_to(user)
    if old.grants_to(user) != grants:
        return False
    if _reaches_results(user, new, grants):
        # what their makers may have decides too
        return _list_makers_basis(before) == _list_makers_basis(after)
    return old.facts == new.facts or not any(find_facts(grant) for grant in grants)


def _list_makers_basis(catalog: Catalog) -> tuple[object, ...]:
    by_policies = (catalog.policies, catalog.judged_at, catalog.undecided) if catalog.policies else ()
    return catalog.grants, catalog.users, catalog.roles, catalog.facts, by_policies


def _reaches_results(user: str, catalog: Catalog, grants: Iterable[Grant]) -> bool:
    results = [each for each in catalog.streams.values() if each.query is not None]
    named = {each.name: each.owner for each in results}
    return bool(named) and (
        # one that states its policies may be read without a grant
        any(each.stated for each in results)
        or user in named.values()
        or any(name in named for grant in grants for name in grant.stream_names)
    )


def find_facts(grant: Grant) -> frozenset[str]:
    """The names of the facts that decide what the grant allows."""
    exprs = [grant.predicate]
    if grant.during is not None:
        exprs += [grant.during.lower, grant.during.upper]
    return frozenset(part.name for expr in exprs for part in walk(expr) if isinstance(part, FactRef))


def _moving(catalog: Catalog, follow: Follow | None) -> Mapping[str, Type]:
    """Attributes that follow a stream, with their types there; of one that the stream lacks nothing is known (R7)."""
    stream = catalog.streams.get(follow.stream) if follow else None
    if follow is None or stream is None:
        return {}
    return {name: of for name in follow.attributes if (of := stream.type_of(name)) is not None}


def _mark(plan: AuthorizedPlan, shaped: Shaped, user: User | None) -> str:
    """Also whose tuples are followed: another ship's position is another policy, not newer data (D3)."""
    follow = user.follow if user is not None else None
    key = user.attribute(follow.on) if user is not None and follow is not None else None
    text = describe((shaped.key, shaped.constants, [each.name for each in plan.outputs], follow, key))
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse(code: str, notices: tuple[Notice, ...], otherwise: str) -> DiagnosticError:
    messages = [each.message for each in notices] or [otherwise]
    return DiagnosticError([Diagnostic(code, each) for each in messages])

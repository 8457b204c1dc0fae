"""Named results (`CREATE STREAM … AS`): what a reader gets stands on what the maker may have, and ends with the maker's right.

The reader's query is judged as over any stream, by grants on the result, or by what its ON RESULT states (R15). What comes
out is put on top of the maker's own authorized graph, with the maker's values in it (D4: a nested query means what it means
inlined). Below an ON RESULT that graph is made of what the maker may pass on, down to the sources: *delegating*.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.expr.evaluate import evaluate
from sluicegate.expr.nodes import Column, Expr, FactRef, IsNull, Literal, Not, SelfRef
from sluicegate.expr.types import UNKNOWN, Type
from sluicegate.graph.operators import Field, Item, Node, Project, Select, Shield, Source, sources, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.shape import find_shapes
from sluicegate.language.named_results import read_result
from sluicegate.language.statements import QueryText
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.bind import fact_args
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.entries import Entry
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Grant, Privilege, Stream, StreamRef, Subject
from sluicegate.rewrite.asked import denied_streams
from sluicegate.rewrite.graft import find_prefix, rename_plan, replace_sources, write_attribute
from sluicegate.rewrite.notice import Notice
from sluicegate.rewrite.pipeline import Draft, rewrite
from sluicegate.rewrite.releases import find_releases
from sluicegate.rewrite.spgen import close_undelegated, put_policy, seat_stated

MOST_OPERATORS = 4_000
"""Of a reader's plan with the makers' below it."""
KeptOut = frozenset[tuple[str, str]]
"""Results, each with a grant of its maker's that it must not use: the maker's ledger has given too much beside it (R8)."""


@dataclass(frozen=True, slots=True)
class Made:
    """A named result as its maker may have it now; `below` names the results that it is made of in turn."""

    name: str
    maker: str
    plan: AuthorizedPlan
    releases: tuple[Entry, ...]
    below: tuple[str, ...]
    refusal: Diagnostic | None = None
    """Why it cannot be run, where it cannot."""
    delegating: bool = False
    """Made of what its maker may pass on alone."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A named result whose maker may have nothing of it."""

    name: str
    reason: str


class Results:
    """The named results of one version of a catalog; each is found when it is asked for, and once.

    `delegating`: the query that reads them has an ON RESULT itself.
    """

    def __init__(
        self, catalog: Catalog, kept_out: KeptOut = frozenset(), *, delegating: bool = False
    ) -> None:
        self._catalog, self._kept_out, self._delegating = catalog, kept_out, delegating
        self._found: dict[tuple[str, bool], Made | Ended | None] = {}

    def seat(self, catalog: Catalog, user: str, root: Node) -> Catalog:
        """The catalog that decides for a user about a query: `catalog`, in which grants on what has ended are closed.

        Makers may read their results: they may have the same by the query. Where an ON RESULT decides, it stands for grants.
        """
        return self._seat(catalog, user, root, self._delegating)

    def _seat(self, catalog: Catalog, user: str, root: Node, delegating: bool) -> Catalog:
        catalog = with_decisions(catalog, user, (source.stream for source in sources(root)))
        if delegating:
            catalog = close_undelegated(catalog, user)
        named = self._name_results(source.stream for source in sources(root))
        ended = self._list_ended(catalog, user, named, delegating)
        closed = {
            grant.name: replace(grant, closed=ended[gone[0]])
            for grant in (catalog.grants_to(user) if ended else ())
            if (gone := sorted(ended.keys() & set(grant.stream_names)))
        }
        plain = [catalog.streams[each] for each in named if not self._catalog.streams[each].stated]
        given = {
            grant.name: grant
            for each in plain
            if each.owner == user and each.name not in ended
            for grant in [_let_owner_read(each, user, catalog)]
        }
        if closed or given:
            catalog = replace(catalog, grants={**catalog.grants, **closed, **given})
        stated = [catalog.streams[each] for each in named if self._catalog.streams[each].stated]
        return seat_stated(catalog, user, stated, ended, delegating) if stated else catalog

    def _list_ended(
        self, catalog: Catalog, user: str, named: Iterable[str], delegating: bool
    ) -> dict[str, str]:
        """Which of the results give the user nothing, whatever grant or ON RESULT names it, and why.

        A result is made with all that its maker has. A session without some of that must not have it back by what it made
        itself, nor by what others made of this.
        """
        found = {each: self.find(each, delegating) for each in named}
        ended = {name: each.reason for name, each in found.items() if isinstance(each, Ended)}
        if _is_partly_seated(catalog, user):
            for name in found:
                if user in self._list_makers(name, delegating):
                    ended[name] = (
                        f"`{name}` is made with all that `{user}` has: this session leaves some of it aside"
                    )
        return ended

    def _list_makers(self, name: str, delegating: bool) -> set[str | None]:
        below = (each.maker for each in self._list_used([(name, delegating)]))
        return {self._catalog.streams[name].owner, *below}

    def tell_ended(self, catalog: Catalog, user: str, root: Node) -> tuple[Notice, ...]:
        """Why the user's query gets nothing of the results that it reads; `catalog` is its seat."""
        named = self._name_results(source.stream for source in sources(root))
        ended = self._list_ended(catalog, user, named, self._delegating)
        return tuple(Notice("NR", "rows", each) for each in ended.values())

    def inline(self, plan: AuthorizedPlan) -> AuthorizedPlan:
        """A reader's plan, on top of the makers'; refused, by name, where that cannot be run."""
        return self._inline(plan, self._delegating)

    def _inline(self, plan: AuthorizedPlan, delegating: bool) -> AuthorizedPlan:
        named = self._name_results(source.stream for source in sources(plan.root))
        if not named:
            return plan
        self._check_size(plan, named, delegating)
        prefix = find_prefix(plan.root)

        def change(node: Source | Shield) -> Node | None:
            source = node if isinstance(node, Source) else node.input
            if source.stream not in named:
                return None
            stream = self._catalog.streams[source.stream]
            if isinstance(node, Shield):
                return put_policy(self._graft(source, prefix, delegating), node, stream)
            return None if stream.stated else self._graft(source, prefix, delegating)

        made = replace_sources(plan, change)
        try:
            find_shapes(made.root)
        except InvariantError as error:
            listed = ", ".join(f"`{each}`" for each in named)
            message = f"tuple windows, FIRST and LAST cannot stand over {listed}: an aggregate's rows have no arrival order"
            raise DiagnosticError(
                [Diagnostic("no-order", message, help="write a time window, MIN or MAX")]
            ) from error
        return made

    def _check_size(self, plan: AuthorizedPlan, named: Iterable[str], delegating: bool) -> None:
        """Before anything is put together: results that read results twice would double with each."""
        sizes = {
            each: sum(1 for _ in walk(found.plan.root))
            for each in named
            if isinstance(found := self.find(each, delegating), Made)
        }
        nodes = list(walk(plan.root))
        read = [node.stream for node in nodes if isinstance(node, Source)]
        if len(nodes) + sum(sizes.get(each, 0) for each in read) > MOST_OPERATORS:
            message = f"a query has at most {MOST_OPERATORS:,} operators, those of the named results that it reads included"
            raise DiagnosticError([Diagnostic("too-many-operators", message)])

    def used_by(self, plan: AuthorizedPlan) -> tuple[Made, ...]:
        """The results that a reader's plan rests on, those that they are made of included."""
        named = self._name_results(source.stream for source in sources(plan.root))
        return self._list_used([(name, self._delegating) for name in named])

    def _list_used(self, todo: list[tuple[str, bool]]) -> tuple[Made, ...]:
        found: dict[tuple[str, bool], Made] = {}
        while todo:
            name, delegating = todo.pop()
            made = self.find(name, delegating)
            if isinstance(made, Made) and (name, made.delegating) not in found:
                found[name, made.delegating] = made
                todo += [(each, made.delegating) for each in made.below]
        return tuple(found[key] for key in sorted(found))

    def find(self, name: str, delegating: bool = False) -> Made | Ended:
        """What the maker may have now, or pass on. One that reads itself, which no catalog should hold, has ended."""
        stream = self._catalog.streams[name]
        key = (name, delegating or bool(stream.stated))
        if key in self._found:
            return self._found[key] or Ended(name, f"the named result `{name}` reads itself")
        self._found[key] = None
        found = self._find(stream, key[1])
        self._found[key] = found
        return found

    def _name_results(self, streams: Iterable[str]) -> list[str]:
        known = self._catalog.streams
        return sorted({each for each in streams if each in known and known[each].query is not None})

    def _find(self, stream: Stream, delegating: bool) -> Made | Ended:
        name, maker = stream.name, stream.owner
        user = None if maker is None else self._catalog.users.get(maker)
        if maker is None or user is None or user.disabled:
            return _end(name, "it has no owner who could see what it is made of")
        out = {grant for result, grant in self._kept_out if result == name}
        result = read_result(self._catalog, QueryText(stream.query or ""), stream.event_time, name)
        read = (source.stream for source in sources(result.root))
        catalog = _leave_out(with_decisions(self._catalog, maker, read), out)
        seated = self._seat(catalog, maker, result.root, delegating)
        draft = rewrite(seated, user, result.root, result.united, delegating)
        if draft.plan is None or any(denied_streams(draft.ready.tree, draft.candidates)):
            what = "pass on" if delegating else "see"
            return _end(name, f"its owner may not {what} what it is made of")
        below = tuple(self._name_results(source.stream for source in sources(draft.plan.root)))
        releases = find_releases(draft, maker, None, self._catalog)
        refusal = self._find_refusal(stream, draft, below, delegating)
        if refusal is not None:
            return Made(name, maker, draft.plan, releases, below, refusal, delegating)
        bound = rename_plan(draft.plan, f"{name}:", _Values(catalog, maker))
        try:
            return Made(name, maker, self._inline(bound, delegating), releases, below, None, delegating)
        except DiagnosticError as error:
            return Made(name, maker, bound, releases, below, error.diagnostics[0], delegating)

    def _find_refusal(
        self, stream: Stream, draft: Draft, below: Iterable[str], delegating: bool
    ) -> Diagnostic | None:
        """Policies that travel with tuples are the maker's own to be judged by: handed on they must be said anew (R15)."""
        for source in sources(draft.root):
            if not stream.stated and self._catalog.streams[source.stream].carries_policies:
                message = f"`{stream.name}` is made of tuples that carry policies of their own"
                help_ = "say who may read it: ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:role)"
                return Diagnostic("not-served", f"{message}, and states none for its own", help=help_)
        inner = [found for each in below if isinstance(found := self.find(each, delegating), Made)]
        return next((each.refusal for each in inner if each.refusal is not None), None)

    def _graft(self, source: Source, prefix: str, delegating: bool) -> Node:
        """The maker's graph under the names of the source. A row whose event time its maker may not see is no tuple (D1)."""
        made = self.find(source.stream, delegating)
        if isinstance(made, Ended):
            raise InvariantError(f"a query reads `{source.stream}`, which has ended")
        if made.refusal is not None:
            raise DiagnosticError([made.refusal])
        plan = rename_plan(made.plan, f"{prefix}{source.alias}:", lambda _: None)
        items = [
            Item(Field(source.alias, name, of), write_attribute(plan, name, of))
            for name, of in source.attributes
        ]
        graph = Project(plan.root, tuple(items))
        if source.event_time is None:
            return graph
        time = Column(source.alias, source.event_time, dict(source.attributes)[source.event_time])
        return Select(graph, Not(IsNull(time)))


@dataclass(frozen=True, slots=True)
class _Values:
    """Puts in what the maker's profile and the facts are; attributes that follow a stream have no value here (R7)."""

    catalog: Catalog
    maker: str

    def __call__(self, node: Expr) -> Expr | None:
        match node:
            case SelfRef(of=of):
                return self._value(node, of)
            case FactRef(name=name, of=of):
                args = fact_args(node)
                fact = None if args is None else self.catalog.fact(name, args)
                return self._value(node, fact.value.of if of == UNKNOWN and fact is not None else of)
            case _:
                return None

    def _value(self, node: Expr, of: Type) -> Literal:
        return Literal(evaluate(node, {}, environment(self.catalog, self.maker)), of)


def _end(name: str, why: str) -> Ended:
    return Ended(name, f"the named result `{name}` has ended: {why}")


def _leave_out(catalog: Catalog, grants: set[str]) -> Catalog:
    if not grants:
        return catalog
    return replace(
        catalog, grants={name: each for name, each in catalog.grants.items() if name not in grants}
    )


def _is_partly_seated(catalog: Catalog, user: str) -> bool:
    known = catalog.users.get(user)
    return known is not None and known.is_partly_seated


def _let_owner_read(stream: Stream, owner: str, catalog: Catalog) -> Grant:
    name = f"owner of {stream.name}"
    while name in catalog.grants:
        name += "'"
    attributes = tuple(Column(stream.name, attribute, of) for attribute, of in stream.attributes)
    return Grant(
        name, Subject(owner, is_user=True), Privilege.READ, (StreamRef(stream.name, stream.name),), attributes
    )

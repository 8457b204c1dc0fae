"""Warnings about a catalog that is well formed: grants without effect, and grants that give more than they say.

Nothing here decides access. Comparisons are indexed and the solver is asked a bounded number of times, so that
10,000 grants take about a second; what was left out for that reason is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sluicegate.errors import Diagnostic, Severity
from sluicegate.expr.nodes import (
    FALSE,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    Like,
    Literal,
    Op,
    Scalar,
    SelfRef,
    conjoin,
    conjuncts,
    walk,
)
from sluicegate.expr.rebuild import transform
from sluicegate.expr.solve import implies
from sluicegate.expr.solve.intervals import decide_implies
from sluicegate.expr.text import to_text
from sluicegate.policy.bind import fact_args
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.delegation import explain_wider
from sluicegate.policy.model import Grant, Privilege, Subject
from sluicegate.policy.roles import juniors
from sluicegate.rewrite.lint_policies import find_idle_policies
from sluicegate.rewrite.lint_punctuations import find_idle
from sluicegate.source import Span

LINT_CODES: dict[str, str] = {
    "empty-catalog": "a catalog without streams: every query on it is refused",
    "closed-grant": "a grant allows nothing because something it names is gone or cannot be enforced",
    "contradictory-grant": "no tuple can satisfy the predicate of a grant",
    "empty-during": "DURING of a grant ends before it begins",
    "unopened-during": "DURING of a grant waits for a fact that is not set",
    "unset-fact": "a predicate names a fact that is not set",
    "shadowed-grant": "another grant to the same subject gives all that this one gives",
    "step-below-size": "windows of an aggregate grant overlap, so that their differences are finer than their size",
    "overlapping-aggregates": "aggregates of overlapping populations can be subtracted from each other",
    "linked-attributes": "attributes that are granted apart can be put together by one that both grants show",
    "during-on-table": "DURING of a grant on tables alone, which have no event time",
    "min-group-on-read": "MIN GROUP of a grant that is not of aggregates",
    "role-without-users": "nobody holds a role",
    "role-without-grants": "a role allows nothing",
    "user-without-grants": "a user can do nothing",
    "unread-stream": "nobody can read a stream",
    "check-cut-short": "some comparisons of grants were left out",
}

Spans = Mapping[tuple[str, str], Span]
"""Where things are defined: by kind (`grant`, `role`, `user`, `stream`) and name."""

MAX_PARTNERS = 3
MAX_NEIGHBOURS = 24
MAX_QUESTIONS = 15_000
MAX_SEARCHES = 150
SEARCH_MS = 20


def lint(catalog: Catalog, spans: Spans | None = None) -> list[Diagnostic]:
    """All warnings, by kind of check, then by name."""
    report = _Report(spans or {})
    if not catalog.streams:
        report.add("empty-catalog", "", "", "the catalog has no stream, so that nobody may see anything")
    judge = _Judge()
    held = _held_together(catalog)
    views = [_view(grant) for _, grant in sorted(catalog.grants.items())]
    for view in views:
        _check_grant(catalog, view, judge, report)
    alive = [view for view in views if view.grant.closed is None]
    _check_shadows(alive, judge, report)
    _check_overlaps(alive, held, judge, report)
    _check_links(alive, held, judge, report)
    _check_names(catalog, held, report)
    for each in (*find_idle(catalog), *find_idle_policies(catalog)):
        report.add(each.code, each.kind, each.name, each.message, each.help)
    if judge.refused:
        report.add("check-cut-short", "", "", f"{judge.refused} comparisons of grants were left out")
    return report.found


@dataclass(slots=True)
class _Report:
    spans: Spans
    found: list[Diagnostic] = field(default_factory=list)

    def add(self, code: str, kind: str, name: str, message: str, help_: str | None = None) -> None:
        span = self.spans.get((kind, name))
        self.found.append(Diagnostic(code, message, span, help_, Severity.WARNING))


@dataclass(slots=True)
class _Judge:
    """The solver, rationed: many questions that intervals answer, few that need a search, and those with little time."""

    asked: int = 0
    searched: int = 0
    refused: int = 0

    def entails(self, premise: Expr, conclusion: Expr) -> bool:
        return self._ask(premise, conclusion) is True

    def contradicts(self, view: _View) -> bool:
        return not view.plain and self._ask(view.predicate, FALSE) is True

    def overlap(self, left: _View, right: _View) -> bool:
        """Whether some tuple may satisfy both; what was asked and is not known to be apart overlaps."""
        if not _agree(left, right) or _is_before(left, right) or _is_before(right, left):
            return False
        if left.predicate == right.predicate or not left.columns & right.columns:
            return True
        return self._ask(conjoin(left.predicate, right.predicate), FALSE) is False

    def _ask(self, premise: Expr, conclusion: Expr) -> bool | None:
        """None when it was not asked."""
        if self.asked < MAX_QUESTIONS:
            self.asked += 1
            decided = decide_implies(premise, conclusion)
            if decided is not None:
                return decided
            if self.searched < MAX_SEARCHES:
                self.searched += 1
                return implies(premise, conclusion, SEARCH_MS)
        self.refused += 1
        return None


def _agree(left: _View, right: _View) -> bool:
    """No column is to equal two values."""
    return all(right.equal.get(column, value) == value for column, value in left.equal.items())


def _is_before(left: _View, right: _View) -> bool:
    """DURING of one ends, by what is written and not by facts, before that of the other begins."""
    if left.grant.during is None or right.grant.during is None:
        return False
    end, begin = left.grant.during.upper, right.grant.during.lower
    if not (isinstance(end, Literal) and isinstance(begin, Literal)):
        return False
    return isinstance(end.value, int) and isinstance(begin.value, int) and end.value < begin.value


@dataclass(frozen=True, slots=True)
class _View:
    """A grant with what comparisons need; columns are named by stream, so that aliases do not matter."""

    grant: Grant
    predicate: Expr
    columns: frozenset[tuple[str, str]]
    equal: Mapping[tuple[str, str], Scalar]
    plain: bool
    """Each conjunct is a simple test of a column of its own: it can be satisfied."""
    shown: frozenset[tuple[str, str, str]]
    """Function (empty for READ), stream, attribute."""


def _view(grant: Grant) -> _View:
    names = _canonical_names(grant)
    predicate = transform(grant.predicate, lambda node: _rename(node, names))
    parts = conjuncts(predicate)
    columns = {(node.qualifier, node.name) for node in walk(predicate) if isinstance(node, Column)}
    plain = all(map(_is_simple, parts)) and len(columns) == len(parts)
    equal = dict(pair for part in parts for pair in _equality(part))
    shown = {("", names[each.qualifier], each.name) for each in grant.attributes}
    for right in grant.rights:
        column = right.attribute
        where = ("", "*") if column is None else (names[column.qualifier], column.name)
        shown.add((right.function.value, *where))
    return _View(grant, predicate, frozenset(columns), equal, plain, frozenset(shown))


def _canonical_names(grant: Grant) -> dict[str, str]:
    names: dict[str, str] = {}
    seen: dict[str, int] = {}
    for ref in sorted(grant.streams, key=lambda each: (each.stream, each.alias)):
        seen[ref.stream] = seen.get(ref.stream, 0) + 1
        names[ref.alias] = ref.stream if seen[ref.stream] == 1 else f"{ref.stream}#{seen[ref.stream]}"
    return names


def _rename(node: Expr, names: Mapping[str, str]) -> Expr | None:
    return Column(names[node.qualifier], node.name, node.of) if isinstance(node, Column) else None


def _is_simple(part: Expr) -> bool:
    """A test of one bare column against something with a value of its own."""
    match part:
        case Compare(_, Column(), Literal(value=value)) | Compare(_, Literal(value=value), Column()):
            return value is not None
        case Compare(_, Column(), SelfRef() | FactRef()) | Compare(_, SelfRef() | FactRef(), Column()):
            return True
        case In(Column(), items):
            return any(isinstance(item, Literal) and item.value is not None for item in items)
        case Like(Column(), _):
            return True
        case _:
            return False


def _equality(part: Expr) -> Iterator[tuple[tuple[str, str], Scalar]]:
    match part:
        case Compare(Op.EQ, Column() as column, Literal(value=value)) if isinstance(value, str):
            yield (column.qualifier, column.name), value
        case Compare(Op.EQ, Literal(value=value), Column() as column) if isinstance(value, str):
            yield (column.qualifier, column.name), value


def _check_grant(catalog: Catalog, view: _View, judge: _Judge, report: _Report) -> None:
    """What can be said of a grant by itself."""
    grant = view.grant
    if grant.closed is not None:
        report.add(
            "closed-grant", "grant", grant.name, f"grant `{grant.name}` allows nothing: {grant.closed}"
        )
        return
    if judge.contradicts(view):
        message = f"no tuple satisfies the predicate of grant `{grant.name}`: `{to_text(grant.predicate)}`"
        report.add("contradictory-grant", "grant", grant.name, message)
    for fact in _unset_facts(catalog, grant.predicate):
        message = f"grant `{grant.name}` names `{to_text(fact)}`, which is not set"
        report.add("unset-fact", "grant", grant.name, message, "what depends on it is denied until it is set")
    _check_during(catalog, grant, report)
    least = grant.least
    if grant.privilege is Privilege.AGGREGATE and least is not None and least.step < least.size:
        message = f"the least step of grant `{grant.name}` is below its least size"
        report.add("step-below-size", "grant", grant.name, message, "make the step as large as the size")
    if grant.min_group and grant.privilege is not Privilege.AGGREGATE:
        message = f"MIN GROUP means nothing in grant `{grant.name}`, which is not of aggregates"
        report.add("min-group-on-read", "grant", grant.name, message)


def _unset_facts(catalog: Catalog, expr: Expr) -> Iterator[FactRef]:
    """Facts that no SET gave a value; of one that depends on `self`, only when none of its name has one."""
    for node in dict.fromkeys(each for each in walk(expr) if isinstance(each, FactRef)):
        if not _is_set(catalog, node):
            yield node


def _is_set(catalog: Catalog, node: FactRef) -> bool:
    args = fact_args(node)
    if args is None:
        return node.name in catalog.fact_types
    fact = catalog.fact(node.name, args)
    return fact is not None and fact.value.value is not None


def _check_during(catalog: Catalog, grant: Grant, report: _Report) -> None:
    during = grant.during
    if during is None:
        return
    streams = [catalog.streams[ref.stream] for ref in grant.streams if ref.stream in catalog.streams]
    if streams and all(stream.event_time is None for stream in streams):
        message = f"DURING means nothing in grant `{grant.name}`: its tables have no event time"
        report.add("during-on-table", "grant", grant.name, message)
    unset = list(_unset_facts(catalog, during.lower))
    if isinstance(during.lower, Literal) and during.lower.value is None:
        # Beside an open lower bound an unset upper fact is no access (R6).
        unset = list(_unset_facts(catalog, during.upper))
    for fact in unset:
        message = f"grant `{grant.name}` allows nothing until `{to_text(fact)}` is set"
        report.add("unopened-during", "grant", grant.name, message)
    lower, upper = _moment(catalog, during.lower), _moment(catalog, during.upper)
    if lower is not None and upper is not None and upper < lower:
        message = f"DURING of grant `{grant.name}` ends before it begins"
        report.add("empty-during", "grant", grant.name, message)


def _moment(catalog: Catalog, bound: Expr) -> int | None:
    if isinstance(bound, FactRef):
        args = fact_args(bound)
        fact = None if args is None else catalog.fact(bound.name, args)
        return None if fact is None else _moment(catalog, fact.value)
    return bound.value if isinstance(bound, Literal) and isinstance(bound.value, int) else None


def _check_shadows(views: Iterable[_View], judge: _Judge, report: _Report) -> None:
    buckets: dict[tuple[Subject, Privilege, tuple[str, ...]], list[_View]] = {}
    for view in views:
        key = (view.grant.subject, view.grant.privilege, view.grant.stream_names)
        buckets.setdefault(key, []).append(view)
    for bucket in buckets.values():
        for view, other in _find_shadows(bucket, judge):
            message = f"grant `{view.grant.name}` gives nothing that `{other.grant.name}` does not give"
            report.add("shadowed-grant", "grant", view.grant.name, message)


def _find_shadows(bucket: list[_View], judge: _Judge) -> Iterator[tuple[_View, _View]]:
    """Each shadowed grant with the first that shadows it; of two equal ones the later by name."""
    index: Mapping[Expr | None, list[_View]] = {}
    if len(bucket) > MAX_NEIGHBOURS:
        index = _index_conjuncts(bucket)
        judge.refused += len(bucket) * (len(bucket) - MAX_NEIGHBOURS)
    for view in bucket:
        for other in _neighbours(view, bucket, index):
            if other is view or not _may_shadow(view, other):
                continue
            if explain_wider(other.grant, view.grant, judge.entails) is not None:
                continue
            equal = view.grant.name < other.grant.name and _may_shadow(other, view)
            if not (equal and explain_wider(view.grant, other.grant, judge.entails) is None):
                yield view, other
                break


def _index_conjuncts(bucket: list[_View]) -> dict[Expr | None, list[_View]]:
    """Each view under its rarest conjunct: what it shadows by its text alone has that conjunct too."""
    counts: dict[Expr, int] = {}
    for view in bucket:
        for part in conjuncts(view.predicate):
            counts[part] = counts.get(part, 0) + 1
    index: dict[Expr | None, list[_View]] = {}
    for view in bucket:
        rarest = min(conjuncts(view.predicate), key=lambda part: counts[part], default=None)
        index.setdefault(rarest, []).append(view)
    return index


def _neighbours(
    view: _View, bucket: list[_View], index: Mapping[Expr | None, list[_View]]
) -> Iterator[_View]:
    if len(bucket) <= MAX_NEIGHBOURS:
        yield from bucket
        return
    for key in (None, *conjuncts(view.predicate)):
        yield from index.get(key, ())[:MAX_NEIGHBOURS]


def _may_shadow(view: _View, other: _View) -> bool:
    """Cheap and necessary: it shows as much, passes on as much, tests no other columns, and can be satisfied with it."""
    passes_on = other.grant.grant_option or not view.grant.grant_option
    fits = view.shown <= other.shown and other.columns <= view.columns
    return passes_on and fits and _agree(other, view)


@dataclass(frozen=True, slots=True)
class _Held:
    """Pairs of subjects that one active user is or holds, each with itself too; and all such subjects."""

    subjects: frozenset[Subject]
    pairs: tuple[tuple[Subject, Subject], ...]


def _held_together(catalog: Catalog) -> _Held:
    granted = {grant.subject for grant in catalog.grants.values()}
    subjects: set[Subject] = set()
    pairs = {(subject, subject): None for subject in sorted(granted, key=_subject_key)}
    closures: dict[tuple[str, ...], list[Subject]] = {}
    for user in catalog.users.values():
        if user.disabled:
            continue
        if user.roles not in closures:
            roles = [Subject(role) for role in sorted(catalog.roles_of(user.name))]
            closures[user.roles] = [role for role in roles if role in granted]
            subjects.update(roles)
            held = closures[user.roles]
            pairs.update({(one, two): None for at, one in enumerate(held) for two in held[at + 1 :]})
        own = Subject(user.name, True)
        subjects.add(own)
        if own in granted:
            pairs.update({(own, role): None for role in closures[user.roles]})
    return _Held(frozenset(subjects), tuple(pairs))


def _subject_key(subject: Subject) -> tuple[str, bool]:
    return subject.name, subject.is_user


def _find_partners(
    views: Iterable[_View], held: _Held, judge: _Judge, test: Callable[[_View, _View], bool]
) -> Iterator[tuple[_View, list[str]]]:
    """Each view with the first few that the test joins it to, among grants that one user may hold together."""
    index: dict[Subject, dict[tuple[str, ...], list[_View]]] = {}
    for view in views:
        per = index.setdefault(view.grant.subject, {})
        per.setdefault(view.grant.stream_names, []).append(view)
    partners: dict[str, tuple[_View, list[str]]] = {}
    for one, two in held.pairs:
        theirs = index.get(two, {})
        for streams, ours in index.get(one, {}).items():
            others = theirs.get(streams, [])
            for at, view in enumerate(ours):
                first = at + 1 if one == two else 0
                judge.refused += max(0, len(others) - first - MAX_NEIGHBOURS)
                _collect(view, others[first : first + MAX_NEIGHBOURS], test, partners)
    for name in sorted(partners):
        if partners[name][1]:
            yield partners[name]


def _collect(
    view: _View,
    others: Iterable[_View],
    test: Callable[[_View, _View], bool],
    partners: dict[str, tuple[_View, list[str]]],
) -> None:
    found = partners.setdefault(view.grant.name, (view, []))[1]
    for other in others:
        if len(found) >= MAX_PARTNERS:
            return
        if other.grant.name not in found and test(view, other):
            found.append(other.grant.name)


def _check_overlaps(views: Iterable[_View], held: _Held, judge: _Judge, report: _Report) -> None:
    def subtract(left: _View, right: _View) -> bool:
        return bool(left.shown & right.shown) and judge.overlap(left, right)

    aggregates = [view for view in views if view.grant.privilege is Privilege.AGGREGATE]
    for view, others in _find_partners(aggregates, held, judge, subtract):
        message = f"aggregates of grant `{view.grant.name}` and of {_list(others)} can be subtracted"
        help_ = "make their predicates exclude each other, or accept that the difference is known (R8)"
        report.add("overlapping-aggregates", "grant", view.grant.name, message, help_)


def _check_links(views: Iterable[_View], held: _Held, judge: _Judge, report: _Report) -> None:
    def link(left: _View, right: _View) -> bool:
        common = left.shown & right.shown
        apart = common != left.shown and common != right.shown
        return bool(common) and apart and judge.overlap(left, right)

    reads = [view for view in views if view.grant.privilege is Privilege.READ]
    for view, others in _find_partners(reads, held, judge, link):
        message = f"attributes of grant `{view.grant.name}` and of {_list(others)} can be linked by one that both show"
        help_ = "if that is meant, grant them together; if not, leave the common attribute out of one (R4)"
        report.add("linked-attributes", "grant", view.grant.name, message, help_)


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _check_names(catalog: Catalog, held: _Held, report: _Report) -> None:
    """Roles, users and streams that nothing leads to."""
    granted = {grant.subject for grant in catalog.grants.values()}
    for role in sorted(catalog.roles):
        if Subject(role) not in held.subjects:
            report.add("role-without-users", "role", role, f"nobody holds role `{role}`")
    if catalog.policies:
        # whom these let read what, only asking for each can tell
        return
    # Where tuples bring their own policies a role may have effect without a grant (R14).
    if not any(stream.governed_by_provider for stream in catalog.streams.values()):
        _check_grantless(catalog, granted, report)
    seen = {
        stream
        for grant in catalog.grants.values()
        if grant.closed is None and grant.privilege is not Privilege.APPEND and grant.subject in held.subjects
        for stream in grant.stream_names
    }
    for name, stream in sorted(catalog.streams.items()):
        if name not in seen and not stream.governed_by_provider:
            report.add("unread-stream", "stream", name, f"nobody can read stream `{name}`")


def _check_grantless(catalog: Catalog, granted: set[Subject], report: _Report) -> None:
    useful = {subject.name for subject in granted if not subject.is_user}
    for role in sorted(catalog.roles):
        if role not in useful and not juniors(catalog.roles, role) & useful:
            report.add("role-without-grants", "role", role, f"role `{role}` has no grant")
    for name, user in sorted(catalog.users.items()):
        if not user.disabled and Subject(name, True) not in granted and not catalog.roles_of(name) & useful:
            report.add("user-without-grants", "user", name, f"user `{name}` has no grant")

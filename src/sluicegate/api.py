"""The library: open a catalog, ask what a user may have of a query, and take the authorized query to another engine.

gate = sluicegate.open("examples/soldiers")
gate.explain("paul", "SELECT SID FROM Health").decision      # Decision.PARTIAL
gate.authorize("paul", "SELECT SID FROM Health").translate("duckdb")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError, SluicegateError
from sluicegate.expr.evaluate import Environment
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.fold import find_warnings, fold_together
from sluicegate.language.load import read_sources
from sluicegate.language.query_syntax import Start, StartAt
from sluicegate.language.resolve import ResolvedQuery, read_query
from sluicegate.language.scope import suggest, unknown_stream
from sluicegate.language.statements import CreateGrant, CreateRole, CreateStream, CreateUser, Statement
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Stream, User
from sluicegate.rewrite.explain import Explanation, explain
from sluicegate.rewrite.graphs import DEFAULT_LIMIT
from sluicegate.rewrite.lint import lint
from sluicegate.rewrite.notices import Decision, Notice, judge
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.rewrite.who import Entry, who
from sluicegate.source import SourceText, Span
from sluicegate.targets import duckdb, spark

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Frame, Session

TARGETS: Mapping[str, Callable[[AuthorizedPlan, Environment], str]] = {
    "duckdb": duckdb.translate,
    "spark": spark.translate,
}
"""Engines that an authorized query can be written for; each refuses what it cannot express."""

API_CODES = {
    "nothing-to-translate": "grants apply, but nothing of the query is left that another engine could run",
    "unknown-target": "there is no such target",
}

_KINDS = {CreateStream: "stream", CreateRole: "role", CreateUser: "user", CreateGrant: "grant"}


class Denied(SluicegateError):  # noqa: N818 — a decision, not an error
    """No grant lets the user see what the query reads; `notices` say so."""

    def __init__(self, user: str, notices: Sequence[Notice]) -> None:
        self.user = user
        self.notices = tuple(notices)
        super().__init__("; ".join(notice.message for notice in self.notices))


@dataclass(frozen=True, slots=True)
class Authorized:
    """A query as a user may have it. Without a plan (`decision` is then EMPTY) it has no rows on any data."""

    user: str
    decision: Decision
    plan: AuthorizedPlan | None
    notices: tuple[Notice, ...]
    environment: Environment
    """The values that the plan's policies name: run it with these, and do not show them to the user (R9)."""
    streams: Mapping[str, Stream]
    start: StartAt

    def translate(self, target: str) -> str:
        """The authorized query as text of another engine, profile and facts put in; abilities are checked first."""
        write = TARGETS.get(target)
        if write is None:
            known = ", ".join(f"`{name}`" for name in sorted(TARGETS))
            raise _diagnose("unknown-target", f"unknown target `{target}`", f"known targets are {known}")
        if self.plan is None:
            message = "nothing of what the query asks for can come back, so there is nothing to translate"
            raise _diagnose("nothing-to-translate", message)
        return write(self.plan, self.environment)

    def check_start(self) -> None:
        """Refuse a moment to start at, which no run over bounded input heeds yet."""
        if not isinstance(self.start, Start):
            raise _diagnose(
                "not-served", "START AT a moment cannot be run yet", "leave it out, and filter by time"
            )

    def to_spark(self, spark: Session, inputs: Mapping[str, Frame]) -> Frame:
        """The authorized query as a batch frame over the streams' frames, columns as `targets.spark` describes them.

        It serves trusted code: whoever holds the session can read the sources anyway. Where order matters (tuple windows,
        FIRST, LAST, ROWS joins) a frame also has `_offset`, a BIGINT that counts rows as they arrived.
        """
        # imported here: without Spark everything else works
        from sluicegate.runtime.batch import authorized_frame

        self.check_start()
        if self.plan is None:
            message = "nothing of what the query asks for can come back, so there is nothing to run"
            raise _diagnose("nothing-to-translate", message)
        return authorized_frame(spark, self.plan, inputs, self.environment, self.streams)


@dataclass(frozen=True, slots=True)
class Gate:
    """One version of a catalog, and the questions that may be asked of it. It never changes."""

    catalog: Catalog
    statements: tuple[Statement, ...] = ()
    """What the catalog was made from, if that is known: findings then have places."""

    def read(self, query: str | SourceText) -> ResolvedQuery:
        """The query of the core model, for nobody in particular; raises `DiagnosticError`."""
        return read_query(query, self.catalog)

    def explain(self, user: str, query: str | SourceText, graphs: int = DEFAULT_LIMIT) -> Explanation:
        """The decision and all reasons for it, with at most so many of the authorized graphs."""
        asked = self.read(query)
        found = explain(self.catalog, user, asked.root, asked.united, graphs)
        return replace(found, notices=self._name_stranger(user, found.decision, found.notices))

    def authorize(self, user: str, query: str | SourceText) -> Authorized:
        """What the user may have; raises `Denied` where no grant applies."""
        asked = self.read(query)
        draft = rewrite(self.catalog, self.catalog.users.get(user) or User(user), asked.root, asked.united)
        judged = judge(draft)
        notices = self._name_stranger(user, judged.decision, judged.notices)
        if judged.decision is Decision.DENY:
            raise Denied(user, notices)
        env = environment(self.catalog, user)
        return Authorized(user, judged.decision, draft.plan, notices, env, self.catalog.streams, asked.start)

    def who(self, stream: str, attribute: str | None = None) -> list[Entry]:
        """Who can see the stream, or one attribute of it, and by which grants; for owners and administrators."""
        known = self.catalog.streams.get(stream)
        if known is None:
            raise DiagnosticError([unknown_stream(stream, None, self.catalog.streams)])
        if attribute is not None and known.type_of(attribute) is None:
            help_ = suggest(attribute, (name for name, _ in known.attributes))
            raise _diagnose("unknown-attribute", f"`{stream}` has no attribute `{attribute}`", help_)
        return who(self.catalog, stream, attribute)

    def check(self) -> list[Diagnostic]:
        """Warnings about a catalog that is well formed: by place, then those without one."""
        found = [*find_warnings(self.statements), *lint(self.catalog, _find_spans(self.statements))]
        return sorted(found, key=_order)

    def _name_stranger(
        self, user: str, decision: Decision, notices: tuple[Notice, ...]
    ) -> tuple[Notice, ...]:
        """Tell one whom the catalog does not know, or has disabled, that this is the reason."""
        known = self.catalog.users.get(user)
        if known is not None and not known.disabled:
            return notices
        if decision is not Decision.DENY:
            raise InvariantError(f"`{user}` holds no role, and yet was not denied")
        message = f"the catalog has no user `{user}`" if known is None else f"user `{user}` is disabled"
        return (Notice("DENY", "deny", message), *notices)


def open(path: str | PathLike[str]) -> Gate:
    """The gate of a catalog's folder, all or nothing: raises `DiagnosticError` with all that is wrong in it."""
    statements = read_sources(Path(path)).parse()
    return Gate(fold_together(statements), tuple(statements))


def check(path: str | PathLike[str]) -> list[Diagnostic]:
    """Every finding on a catalog's folder: its errors or, where there are none, its warnings."""
    try:
        return open(path).check()
    except DiagnosticError as error:
        return sorted(error.diagnostics, key=_order)


def _diagnose(code: str, message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, help=help_)])


def _find_spans(statements: Sequence[Statement]) -> dict[tuple[str, str], Span]:
    spans: dict[tuple[str, str], Span] = {}
    for each in statements:
        if isinstance(each, CreateStream | CreateRole | CreateUser | CreateGrant):
            span = each.name.span or each.span
            if span is not None:
                spans[_KINDS[type(each)], each.name.text] = span
    return spans


def _order(diagnostic: Diagnostic) -> tuple[bool, str, int]:
    span = diagnostic.span
    return (True, "", 0) if span is None else (False, span.source.name, span.start)

"""The library: open a catalog, ask what a user may have of a query, and take the authorized query to another engine.

gate = sluicegate.open("examples/soldiers")
gate.explain("paul", "SELECT SID FROM Health").decision      # Decision.PARTIAL
gate.authorize("paul", "SELECT SID FROM Health").translate("duckdb")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError, SluicegateError
from sluicegate.expr.evaluate import Environment
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.fold import find_warnings, fold_together
from sluicegate.language.load import read_sources
from sluicegate.language.query_syntax import Start, StartAt
from sluicegate.language.resolve import ResolvedQuery, read_query
from sluicegate.language.scope import suggest, unknown_stream
from sluicegate.language.statements import (
    CreateGrant,
    CreatePolicy,
    CreateRole,
    CreateSP,
    CreateStream,
    CreateUser,
    Statement,
)
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Stream, User
from sluicegate.rewrite.explain import Explanation, explain
from sluicegate.rewrite.graphs import DEFAULT_LIMIT
from sluicegate.rewrite.lint import lint
from sluicegate.rewrite.manner import USUAL, Manner, Merge, OnPartial
from sluicegate.rewrite.named_results import Results
from sluicegate.rewrite.notice import tell_warnings
from sluicegate.rewrite.notices import Decision, Notice, judge
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.rewrite.who import Entry, who
from sluicegate.source import SourceText, Span
from sluicegate.targets import ccl, duckdb, spark, streamsql

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Frame, Session
    from sluicegate.runtime.stream.live_frame import Change, LiveFrame, Version

TARGETS: Mapping[str, Callable[[AuthorizedPlan, Environment], str]] = {
    "ccl": ccl.translate,
    "duckdb": duckdb.translate,
    "spark": spark.translate,
    "streamsql": streamsql.translate,
}
"""Engines that an authorized query can be written for; each refuses what it cannot express."""

API_CODES = {
    "nothing-to-translate": "grants apply, but nothing of the query is left that another engine could run",
    "unknown-manner": "a way of merging, or of treating partial answers, that there is not",
    "unknown-target": "there is no such target",
}

_KINDS = {
    CreateStream: "stream",
    CreateRole: "role",
    CreateUser: "user",
    CreateGrant: "grant",
    CreateSP: "punctuation",
    CreatePolicy: "policy",
}


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
    catalog: Catalog
    """The version of the catalog that decided."""
    start: StartAt
    query: str | SourceText = ""
    """What was asked, so that it can be asked again under another version of the catalog."""
    manner: Manner = USUAL

    @property
    def streams(self) -> Mapping[str, Stream]:
        return self.catalog.streams

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

    def to_spark(self, spark: Session, inputs: Mapping[str, Frame] | None = None) -> Frame:
        """The authorized query as a frame over the streams' frames, columns as `targets.spark` describes them.

        Batch frames give a batch frame, streaming frames a streaming one, of this version of the catalog for good (`follow`
        gives one that later versions can be put in force for); without `inputs` the feeds of the catalog are opened, which
        stream. It serves trusted code: whoever holds the session can read the
        sources anyway. Where order matters (tuple windows, FIRST, LAST, ROWS joins) a frame also has `_offset`, a BIGINT
        that counts rows as they arrived.
        """
        # imported here: without Spark everything else works
        from sluicegate.runtime.batch import authorized_frame
        from sluicegate.runtime.stream.live_frame import make_fixed

        plan = self._require_plan()
        read = {source.stream for source in sources(plan.root)}
        if inputs is None or any(frame.isStreaming for name, frame in inputs.items() if name in read):
            # no later version will ever be put in force: what its policy hides no join need keep
            return make_fixed(*self._open_stream(spark, inputs))
        self.check_start()
        return authorized_frame(spark, plan, inputs, self.environment, self.catalog)

    def follow(
        self, spark: Session, inputs: Mapping[str, Frame] | None = None, early: bool = False
    ) -> Followed:
        """The authorized query as a streaming frame, and the means to put later versions of the catalog in force for it.

        Windows of which the frame may have read only a part are withheld (R8): `START AT EARLIEST` says that the inputs
        begin where the streams do, a moment that they have all from there; by default windows begin after what the first
        micro-batch brings.

        A pair of a join is judged when it is released (R11), so joins keep what the policy hides today and may show
        tomorrow. With `early` they keep only what it shows, as a query written by hand would; after a change of values,
        pairs of which one tuple came before it are then withheld, as windows are.
        """
        from sluicegate.runtime.stream.live_frame import LiveFrame

        live = LiveFrame(*self._open_stream(spark, inputs), early)
        return Followed(self.user, self.query, live, self.manner)

    def _open_stream(
        self, spark: Session, inputs: Mapping[str, Frame] | None
    ) -> tuple[Session, Version, Mapping[str, Frame], int | None, int | None]:
        """What a streaming frame is made of."""
        from sluicegate.runtime.stream.live_frame import WITHHELD, Version
        from sluicegate.runtime.stream.open_inputs import open_inputs
        from sluicegate.runtime.table.load import settle_frames

        plan = self._require_plan()
        frames = (
            open_inputs(spark, plan, self.streams) if inputs is None else settle_frames(inputs, self.streams)
        )
        begin = self.start if isinstance(self.start, int) else None
        since = WITHHELD if self.start is Start.LATEST else begin
        return spark, Version(plan, self.environment, self.streams), frames, begin, since

    def _require_plan(self) -> AuthorizedPlan:
        if self.plan is None:
            message = "nothing of what the query asks for can come back, so there is nothing to run"
            raise _diagnose("nothing-to-translate", message)
        return self.plan


@dataclass(frozen=True, slots=True)
class Followed:
    """A streaming frame of a user's query, which later versions of the catalog can be put in force for.

    R10 needs the gateway: here a change is in force from the next micro-batch on, and what the running one brings is
    still of the version before.
    """

    user: str
    query: str | SourceText
    live: LiveFrame
    manner: Manner = USUAL

    @property
    def frame(self) -> Frame:
        """The streaming frame; write it where you like, in append mode."""
        return self.live.frame

    def apply(self, gate: Gate, greatest: datetime | None = None) -> Change:
        """Ask again under another version of the catalog.

        Where only values differ, the frame goes on with the new ones, and windows that were open are withheld (R11): all
        that begin before `greatest`, the latest event time that was read before the change (which the caller knows for
        certain: no micro-batch may be under way), or, where that is not given, before what the running micro-batch and the
        next one bring. Where the plan differs, or nothing is left, the frame
        ends: the next micro-batch fails with `policy-changed` or `withdrawn`.
        """
        from sluicegate.runtime.stream.live_frame import Version

        try:
            asked = gate.authorize(
                self.user,
                self.query,
                merge=self.manner.merge.value,
                on_partial=self.manner.on_partial.value,
            )
        except Denied:
            return self.live.change(None)
        except BaseException:
            # what cannot be asked any more must not go on either
            self.live.end("policy-changed")
            raise
        if asked.plan is None:
            return self.live.change(None)
        return self.live.change(Version(asked.plan, asked.environment, asked.streams), greatest)

    def close(self) -> None:
        """Forget the policy's values; a query that still runs over the frame fails with `policy-missing`."""
        self.live.close()


@dataclass(frozen=True, slots=True)
class Gate:
    """One version of a catalog, and the questions that may be asked of it. It never changes."""

    catalog: Catalog
    statements: tuple[Statement, ...] = ()
    """What the catalog was made from, if that is known: findings then have places."""

    def read(self, query: str | SourceText) -> ResolvedQuery:
        """The query of the core model, for nobody in particular; raises `DiagnosticError`."""
        return read_query(query, self.catalog)

    def explain(
        self,
        user: str,
        query: str | SourceText,
        graphs: int = DEFAULT_LIMIT,
        *,
        merge: str = "widen",
        on_partial: str = "give",
        at: datetime | None = None,
    ) -> Explanation:
        """The decision and all reasons for it, with at most so many of the authorized graphs; options as of `authorize`."""
        asked, manner = self.read(query), read_manner(merge, on_partial)
        found = explain(self._judge_at(at), user, asked.root, asked.united, graphs, asked.delegating, manner)
        told = (*tell_warnings(asked.warnings), *found.notices)
        return replace(found, notices=self._name_stranger(user, found.decision, told))

    def authorize(
        self,
        user: str,
        query: str | SourceText,
        *,
        merge: str = "widen",
        on_partial: str = "give",
        at: datetime | None = None,
    ) -> Authorized:
        """What the user may have; raises `Denied` where no grant applies.

        With `merge="paper"` windows that are finer than a grant allows are refused as eXACML+ does, instead of widened;
        with `on_partial="refuse"` so is a query of which only a part may be given. `at` is the clock of XACML policies
        that read it, now where it is left out; without a time zone it is in UTC.
        """
        asked, manner = self.read(query), read_manner(merge, on_partial)
        catalog = self._judge_at(at)
        results = Results(catalog, delegating=asked.delegating)
        known = catalog.users.get(user) or User(user)
        seated = results.seat(catalog, user, asked.root)
        draft = rewrite(seated, known, asked.root, asked.united, asked.delegating, manner.merge)
        judged = judge(draft, manner.on_partial)
        told = (
            *tell_warnings(asked.warnings),
            *results.tell_ended(seated, user, asked.root),
            *judged.notices,
        )
        notices = self._name_stranger(user, judged.decision, told)
        if judged.decision is Decision.DENY:
            raise Denied(user, notices)
        env = environment(catalog, user)
        plan = None if draft.plan is None else results.inline(draft.plan)
        return Authorized(user, judged.decision, plan, notices, env, catalog, asked.start, query, manner)

    def _judge_at(self, at: datetime | None) -> Catalog:
        if not self.catalog.policies:
            return self.catalog
        return self.catalog.judge_at(time.time_ns() // 1000 if at is None else _count_micros(at))

    def run(
        self,
        user: str,
        query: str | SourceText,
        inputs: Mapping[str, str | PathLike[str]],
        spark: Session | None = None,
        *,
        merge: str = "widen",
        on_partial: str = "give",
        at: datetime | None = None,
    ) -> list[dict[str, object]]:
        """The rows that the user may have of `.jsonl` and `.parquet` files, one for each stream; times are in UTC.

        At the end of the files every open window is released. Malformed rows are left out, a stream without a file is
        empty. Without a session one is started and stopped again.
        """
        from sluicegate.runtime.run_inputs import run_inputs

        asked = self.authorize(user, query, merge=merge, on_partial=on_partial, at=at)
        asked.check_start()
        unknown = [
            unknown_stream(name, None, self.catalog.streams)
            for name in inputs
            if name not in self.catalog.streams
        ]
        if unknown:
            raise DiagnosticError(unknown)
        check_given_streams(self.catalog, inputs)
        paths = {name: Path(path) for name, path in inputs.items()}
        return run_inputs(asked.plan, paths, asked.environment, self.catalog, spark)

    def who(self, stream: str, attribute: str | None = None, *, at: datetime | None = None) -> list[Entry]:
        """Who can see the stream, or one attribute of it, and by which grants; for owners and administrators."""
        known = self.catalog.streams.get(stream)
        if known is None:
            raise DiagnosticError([unknown_stream(stream, None, self.catalog.streams)])
        if attribute is not None and known.type_of(attribute) is None:
            help_ = suggest(attribute, (name for name, _ in known.attributes))
            raise _diagnose("unknown-attribute", f"`{stream}` has no attribute `{attribute}`", help_)
        return who(self._judge_at(at), stream, attribute)

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


def read_manner(merge: str, on_partial: str) -> Manner:
    """The choices by their names; raises `unknown-manner`."""
    try:
        return Manner(Merge(merge), OnPartial(on_partial))
    except ValueError:
        known = "merge is `widen` or `paper`, on_partial `give` or `refuse`"
        raise _diagnose("unknown-manner", f"unknown manner `{merge}`, `{on_partial}`", known) from None


def check_given_streams(catalog: Catalog, names: Iterable[str]) -> None:
    """Refuse input for a named result, whose tuples are its query's."""
    for name in names:
        if catalog.streams[name].query is not None:
            message, help_ = (
                f"`{name}` is the result of a query",
                "give the input of the streams that it reads",
            )
            raise _diagnose("input-stream", message, help_)


def _count_micros(at: datetime) -> int:
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _diagnose(code: str, message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, help=help_)])


def _find_spans(statements: Sequence[Statement]) -> dict[tuple[str, str], Span]:
    spans: dict[tuple[str, str], Span] = {}
    for each in statements:
        if isinstance(each, CreateStream | CreateRole | CreateUser | CreateGrant | CreateSP | CreatePolicy):
            span = each.name.span or each.span
            if span is not None:
                spans[_KINDS[type(each)], each.name.text] = span
    return spans


def _order(diagnostic: Diagnostic) -> tuple[bool, str, int]:
    span = diagnostic.span
    return (True, "", 0) if span is None else (False, span.source.name, span.start)

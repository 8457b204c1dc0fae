"""`sluicegate run` without files: follow the live sources of a catalog, until they end or somebody stops it."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.api import Authorized, Gate
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError
from sluicegate.cli.sessions import open_session, read_master
from sluicegate.cli.tables import draw_rows
from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Value
from sluicegate.graph.present import present_rows
from sluicegate.language.xacml.clock import is_overdue
from sluicegate.runtime.gate.gate import MOST_ROWS
from sluicegate.runtime.gate.sinks import WHOLE, Sink, UnfinishedError
from sluicegate.runtime.sinking import DeclaredSink, open_sink

if TYPE_CHECKING:
    from sluicegate.runtime.engine import Engine
    from sluicegate.runtime.gate.events import Event

_WAIT = 0.5
_FAULT = 3


def follow_live(
    gate: Gate,
    allowed: Authorized,
    query: str,
    state: Path | None,
    console: Console,
    as_json: bool,
    into: DeclaredSink | None = None,
    master: str | None = None,
) -> int:
    """Rows as they come; with a state folder, a later run goes on behind the last row that was written. Where a sink is
    given, the rows go there alone."""
    from sluicegate.runtime.engine import Engine

    settings = read_master(master)
    if settings.master and state is None:
        raise UsageError("--master needs --state, a folder that the executors share")

    with ExitStack() as stack:
        folder = state or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluicegate-run-")))
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        spark = open_session(settings, stack)
        engine = Engine(spark, allowed.catalog, folder, manner=allowed.manner)
        stack.callback(engine.stop)
        handle = _find_handle(engine, allowed.user, query)
        engine.start()
        try:
            sink = None if into is None else open_sink(spark, into, handle)
            return _Follower(engine, handle, allowed, console, as_json, sink).run()
        except KeyboardInterrupt:
            return 0


def _find_handle(engine: Engine, user: str, query: str) -> str:
    """The query of an earlier run with the same state folder, or a new one."""
    for each in engine.running:
        if (each.user, each.query) == (user, query):
            return each.handle
    return engine.register(user, query)


class _Follower:
    """Writes a query's events; an acknowledged row is never written again."""

    def __init__(
        self,
        engine: Engine,
        handle: str,
        allowed: Authorized,
        console: Console,
        as_json: bool,
        sink: Sink | None,
    ) -> None:
        self._sink = sink
        self._engine, self._handle, self._allowed = engine, handle, allowed
        self._console, self._as_json = console, as_json
        self._rows, self._told, self._taken = 0, 0.0, False

    def run(self) -> int:
        gate = self._engine.gate
        cursor = gate.acked(self._handle)
        while True:
            # asked first: what was due then has been committed when the read after it finds nothing
            self._follow_clock()
            ended = self._engine.ended
            try:
                cursor = gate.deliver(
                    self._handle,
                    cursor,
                    self._take,
                    # a sink takes ticks whole
                    most_rows=MOST_ROWS if self._sink is None else WHOLE,
                    most_events=None if self._sink is None else 1,
                    wait=0.0 if ended else _WAIT,
                )
            except UnfinishedError:
                continue
            gate.ack(self._handle, cursor)
            self._tell()
            if self._engine.feeds.failures:
                return self._fail(min(self._engine.feeds.failures.values()))
            if self._engine.failure:
                return self._fail("Spark could not run the query; nothing was let through")
            if ended and not self._taken:
                return 0

    def _follow_clock(self) -> None:
        """Policies that read the clock are asked again when it is time."""
        catalog, now = self._engine.catalog, time.time_ns() // 1000
        running = self._engine.find(self._handle)
        if running is not None and is_overdue(catalog, running.user, running.allowed.asked, now):
            self._engine.apply(catalog.judge_at(now))

    def _take(self, events: list[Event]) -> None:
        from sluicegate.runtime.gate.events import Gap, Rows, Withdrawn

        self._taken = bool(events)
        for event in events:
            if self._sink is not None:
                self._send(self._sink, event)
            match event:
                case Rows() if self._sink is not None:
                    self._rows += event.data.num_rows
                case Rows():
                    self._write(event.rows)
                case Gap():
                    # without the ticks: their numbers count what others are given too
                    self._console.complain("gap: some results between these rows are lost")
                case Withdrawn(reason):
                    raise DiagnosticError([Diagnostic("withdrawn", reason)])
                case _:
                    raise DiagnosticError([Diagnostic("withdrawn", "the query has ended")])

    def _send(self, sink: Sink, event: Event) -> None:
        from sluicegate.runtime.gate.events import Rows

        try:
            if isinstance(event, Rows):
                sink.write(event)
            else:
                sink.tell(event)
        except UnfinishedError:
            raise
        except Exception:  # noqa: BLE001 — Spark's text may carry values
            message = "the sink did not take the rows; with --state a later run tries them again"
            raise DiagnosticError([Diagnostic("sink-failed", message)]) from None

    def _write(self, rows: list[dict[str, Value]]) -> None:
        shown = present_rows(self._allowed.plan, rows)
        self._rows += len(shown)
        if not self._as_json:
            self._console.write(draw_rows(self._console, shown))
        for row in shown if self._as_json else ():
            self._console.write_exact(json.dumps(row))
        self._console.out.flush()

    def _tell(self) -> None:
        """Progress, where somebody looks, and of the user's own rows alone (R9)."""
        if sys.stderr.isatty() and time.monotonic() - self._told > 1:
            self._told = time.monotonic()
            self._console.err.write(f"\r{self._rows} rows so far; Ctrl-C ends it\r")
            self._console.err.flush()

    def _fail(self, message: str) -> int:
        self._console.complain(Diagnostic("spark-failed", message).render())
        return _FAULT

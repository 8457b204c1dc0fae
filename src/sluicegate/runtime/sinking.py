"""Where operators let results go besides readers: sinks by name, who may use them, and the threads that fill them.

A sink is the operator's: its place, its account and who may send results there stand in the settings, never in a query.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.types import STRING
from sluicegate.language.check_kafka import check_kafka_stream
from sluicegate.language.kafka_options import TOPIC
from sluicegate.policy.model import Stream
from sluicegate.runtime.gate.events import Closed, Gap, Rows, Withdrawn
from sluicegate.runtime.gate.files import make_private
from sluicegate.runtime.gate.gate import PATIENCE
from sluicegate.runtime.gate.records import OPEN
from sluicegate.runtime.gate.sinks import ParquetSink, Sink, SinkThread, Turn, write_note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluicegate.runtime.gate.gate import Gate

KAFKA, PARQUET = "kafka", "parquet"
MOST_ENDED = 100
"""Sinks of queries that have ended, of one place, whose end could not be told yet: each has a thread and two files."""
_LOGGER = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_WRITING = (
    "kafka.bootstrap.servers",
    "kafka.client.id",
    "kafka.sasl.mechanism",
    "kafka.security.protocol",
    "keystore",
    "keystore_secret",
    "secret",
    "truststore",
    "truststore_secret",
    "username",
)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class DeclaredSink:
    """A sink of the settings. Nobody is in `users` and `roles` unless named."""

    name: str
    format: str
    path: str = ""
    topic: str = ""
    options: tuple[tuple[str, str], ...] = ()
    users: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()

    def allows(self, user: str, roles: Collection[str]) -> bool:
        return user in self.users or not self.roles.isdisjoint(roles)


def read_sinks(content: object) -> dict[str, DeclaredSink]:
    """The table `sinks` of a settings file; anything that is not known there is refused."""
    if not isinstance(content, dict):
        raise _refuse("`sinks` is no table")
    return {name: _read_sink(name, each) for name, each in content.items()}


def _read_sink(name: str, content: object) -> DeclaredSink:
    known = {"format", "path", "topic", "options", "users", "roles"}
    if not _NAME.fullmatch(name) or not isinstance(content, dict) or set(content) - known:
        raise _refuse(f"the sink `{name[:80]}` is no table, or has a setting that there is not")
    texts = {each: content.get(each, "") for each in ("format", "path", "topic")}
    lists = {each: content.get(each, []) for each in ("users", "roles")}
    options = content.get("options", {})
    if not (_are_texts(texts.values()) and isinstance(options, dict) and _are_texts(options.values())):
        raise _refuse(f"a setting of the sink `{name}` is not a text")
    if not all(isinstance(each, list) and _are_texts(each) for each in lists.values()):
        raise _refuse(f"`users` and `roles` of the sink `{name}` are lists of texts")
    if not any(lists.values()):
        raise _refuse(f"nobody may use the sink `{name}`", "name `users` or `roles`")
    users, roles = (frozenset(lists[each]) for each in ("users", "roles"))
    given = tuple(sorted(options.items()))
    return _check_place(
        DeclaredSink(name, texts["format"], texts["path"], texts["topic"], given, users, roles)
    )


def _are_texts(values: Collection[object]) -> bool:
    return all(isinstance(each, str) for each in values)


def _check_place(sink: DeclaredSink) -> DeclaredSink:
    match sink.format:
        case "parquet" if sink.path and not sink.topic and not sink.options:
            return sink
        case "kafka" if _TOPIC.fullmatch(sink.topic) and not sink.path:
            _check_topic(sink)
            return sink
        case "parquet":
            raise _refuse(
                f"the sink `{sink.name}` in Parquet has a `path`, and neither `topic` nor `options`"
            )
        case "kafka":
            raise _refuse(f"the sink `{sink.name}` into Kafka has a `topic`, and no `path`")
        case _:
            raise _refuse(f"the `format` of the sink `{sink.name}` is neither `kafka` nor `parquet`")


def _check_topic(sink: DeclaredSink) -> None:
    """How a topic is reached is said as for streams out of topics; what is about reading has no place here."""
    for name, _ in sink.options:
        if name not in _WRITING:
            raise _refuse(
                f"the sink `{sink.name}` has no option `{name[:80]}`", f"it has {', '.join(_WRITING)}"
            )
    check_kafka_stream(_as_stream(sink), None)


def _as_stream(sink: DeclaredSink) -> Stream:
    return Stream(sink.name, (("value", STRING),), format=KAFKA, options=(*sink.options, (TOPIC, sink.topic)))


def open_sink(spark: SparkSession, declared: DeclaredSink, handle: str) -> Sink:
    """A sink for one query's rows; secrets are looked up now."""
    if declared.format == PARQUET:
        return ParquetSink(Path(declared.path, re.sub("[^A-Za-z0-9_-]", "-", handle)))
    from sluicegate.runtime.connectors import require_connectors
    from sluicegate.runtime.gate.topics import TopicSink
    from sluicegate.runtime.kafka.options import resolve_writer

    require_connectors()
    return TopicSink(spark, handle, declared.topic, resolve_writer(dict(declared.options)))


@dataclass(slots=True)
class _Attached:
    sink: str
    thread: SinkThread
    problem: str | None = None
    is_leaving: bool = False
    """It was let go, and its last write may not have ended yet."""


@dataclass(frozen=True, slots=True)
class SinkState:
    """What a query's owner may know of its sink."""

    sink: str
    failures: int
    problem: str | None
    is_running: bool


class Sinks:
    """The sinks of an engine's queries, one at most for each; they are kept in `folder` and go on after a restart.

    A sink is its query's, known by its number in the gate: another one that is registered under the same handle has none.
    `may_write` is asked before each write for the query's handle and number, its sink, and whether there are rows. No more
    than `at_once` write at a time, so that a broker that does not answer takes no core that queries need.
    """

    def __init__(
        self,
        gate: Gate,
        folder: Path,
        declared: Mapping[str, DeclaredSink],
        open_one: Callable[[DeclaredSink, str], Sink],
        may_write: Callable[[str, int, DeclaredSink, bool], bool],
        at_once: int = 1,
    ) -> None:
        self._gate, self._folder, self._declared = gate, folder, dict(declared)
        self._open_one, self._may_write = open_one, may_write
        self._attached: dict[str, _Attached] = {}
        room = threading.Semaphore(at_once)
        self._turns = {name: Turn(room) for name in declared}
        self._lock = threading.Lock()
        make_private(folder)

    def start(self) -> None:
        """Go on with what was attached, also for a query that has ended since, whose end is to be told; not for a sink that
        is no longer declared."""
        known = self._gate.known()
        for path in sorted(self._folder.glob("*.sink")):
            handle, name, number = _read_attached(path)
            if number is not None and name in self._declared:
                with self._lock:
                    # opened by its first write: one that cannot be is tried again, and keeps nobody else from starting
                    sink = _Later(self._open_one, self._declared[name], handle)
                    self._start(handle, number, self._declared[name], sink)
            elif number is None or known.get(handle) != OPEN:
                _LOGGER.warning("the sink of %s is given up: nobody can be told of it any more", handle)
                self._forget(handle)
            else:
                _LOGGER.warning("the results of %s go nowhere: no sink is named %s any more", handle, name)
        for name in self._declared:
            self._give_up_oldest(name)

    def stop(self) -> None:
        with self._lock:
            found = [each.thread for each in self._attached.values()]
        for thread in found:
            thread.begin_stop()
        for thread in found:
            thread.stop()
        # only now: until then a change waits for their writes
        with self._lock:
            self._attached.clear()

    def settle(self, is_lost: Callable[[str, DeclaredSink], bool], patience: float = PATIENCE) -> None:
        """Wait for writes under way of queries that may not use their sink any more, as for other hand-overs."""
        with self._lock:
            found = list(self._attached.items())
        until = time.monotonic() + patience
        for handle, each in found:
            left = max(0.0, until - time.monotonic())
            if is_lost(handle, self._declared[each.sink]) and not each.thread.settle(left):
                raise _refuse(f"a write of `{handle}` has not ended in {patience:g} s", code="gate-busy")

    def find(self, name: str, user: str, roles: Collection[str]) -> DeclaredSink:
        """The sink of this name; refused alike where there is none and where the user may not use it."""
        found = self._declared.get(name)
        if found is None or not found.allows(user, roles):
            raise _refuse(
                f"there is no sink `{name[:80]}` that `{user}` may send results to", code="sink-denied"
            )
        return found

    def attach(self, handle: str, number: int, declared: DeclaredSink) -> None:
        """From its first row that is still kept on, the query's results go to the sink."""
        self._clear_earlier(handle)
        self._give_up_oldest(declared.name)
        with self._lock:
            known = self._attached.get(handle)
            if known is not None and known.sink == declared.name and not known.is_leaving:
                return
            if known is not None:
                raise _refuse(f"the query's results go to `{known.sink}` already", code="sink-taken")
            sink = self._open(handle, declared)
            content = {"handle": handle, "number": number, "sink": declared.name}
            write_note(self._file(handle, "sink"), json.dumps(content))
            self._start(handle, number, declared, sink)

    def _open(self, handle: str, declared: DeclaredSink) -> Sink:
        """Why it cannot be is the operator's to know: it may name files."""
        try:
            return self._open_one(declared, handle)
        except DiagnosticError as error:
            _LOGGER.warning("the sink %s of %s cannot be opened: %s", declared.name, handle, _tell(error))
            raise _refuse("the sink cannot be opened", code=error.diagnostics[0].code) from None

    def _clear_earlier(self, handle: str) -> None:
        """One that is being let go, or of an earlier query of this handle, which may still wait for its place."""
        with self._lock:
            known = self._attached.get(handle)
        if known is not None and (known.is_leaving or not known.thread.has_query):
            self._let_go(handle, known)

    def _give_up_oldest(self, name: str) -> None:
        """Of the sinks of queries that have ended, which would gather while their place is away."""
        states = self._gate.known()
        with self._lock:
            found = [each for each in self._attached.items() if each[1].sink == name]
        waiting = [
            (handle, each)
            for handle, each in sorted(found, key=lambda entry: entry[1].thread.number or 0)
            if not each.is_leaving and (states.get(handle) != OPEN or not each.thread.has_query)
        ]
        for handle, each in waiting[: max(0, len(waiting) - MOST_ENDED)]:
            _LOGGER.warning("the sink of %s is given up: %s could not be told that it ended", handle, name)
            each.is_leaving = True
            # aside: nobody who attaches another one waits for its last try
            threading.Thread(
                target=self._let_go, args=(handle, each), name=f"end of a sink of {handle}", daemon=True
            ).start()

    def detach(self, handle: str) -> bool:
        """After the return nothing more is written; whether there was a sink."""
        with self._lock:
            known = self._attached.get(handle)
            # also one that is not declared any more
            is_kept = self._file(handle, "sink").exists()
            if known is None:
                self._forget(handle)
        if known is not None:
            self._let_go(handle, known)
        return known is not None or is_kept

    def _let_go(self, handle: str, known: _Attached) -> None:
        """It stays in its place until its thread has ended: a change waits for its write, and no other one begins."""
        known.is_leaving = True
        known.thread.stop()
        self._end(handle, known.thread)

    def _forget(self, handle: str) -> None:
        for kind in ("sink", "place"):
            self._file(handle, kind).unlink(missing_ok=True)

    def _end(self, handle: str, thread: SinkThread) -> None:
        """Behind the thread's last write; of one that has taken its place meanwhile nothing is forgotten."""
        with self._lock:
            known = self._attached.get(handle)
            if known is not None and known.thread is thread:
                del self._attached[handle]
                self._forget(handle)

    def state(self, handle: str) -> SinkState | None:
        with self._lock:
            found = self._attached.get(handle)
        if found is None or not found.thread.has_query:
            return None
        return SinkState(found.sink, found.thread.failures, found.problem, found.thread.is_alive)

    def count_failing(self) -> int:
        """Sinks whose last try has failed."""
        with self._lock:
            return sum(each.thread.failures > 0 for each in self._attached.values())

    def _start(self, handle: str, number: int, declared: DeclaredSink, sink: Sink) -> None:
        def complain(error: Exception) -> None:
            attached.problem = _name_problem(error)
            _LOGGER.warning("the sink %s of %s fails: %s", declared.name, handle, _tell(error))

        thread = SinkThread(
            self._gate,
            handle,
            sink,
            self._file(handle, "place"),
            on_error=complain,
            on_end=lambda: self._end(handle, thread),
            may_write=lambda has_rows: self._may_write(handle, number, declared, has_rows),
            turn=self._turns[declared.name],
            number=number,
        )
        attached = self._attached[handle] = _Attached(declared.name, thread)
        thread.start()

    def _file(self, handle: str, kind: str) -> Path:
        return self._folder / f"{re.sub('[^A-Za-z0-9_-]', '-', handle)}.{kind}"


class _Later:
    """A sink that is opened by its first write."""

    def __init__(
        self, open_one: Callable[[DeclaredSink, str], Sink], declared: DeclaredSink, handle: str
    ) -> None:
        self._open = partial(open_one, declared, handle)
        self._sink: Sink | None = None

    def _find(self) -> Sink:
        self._sink = self._sink or self._open()
        return self._sink

    def write(self, rows: Rows) -> None:
        self._find().write(rows)

    def tell(self, event: Gap | Withdrawn | Closed) -> None:
        self._find().tell(event)


def _read_attached(path: Path) -> tuple[str, str, int | None]:
    """A file that is none of ours, or that does not say which, is of no query."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return str(found["handle"]), str(found["sink"]), int(found["number"])
    except (OSError, ValueError, KeyError, TypeError):
        return path.stem, "", None


def _name_problem(error: Exception) -> str:
    """For the query's user: no words that name the operator's files and hosts, or carry values."""
    name = error.diagnostics[0].code if isinstance(error, DiagnosticError) else type(error).__name__
    return f"the rows were not taken ({name})"


def _tell(error: Exception) -> str:
    """For the operator: our own words, and not those of others, which may carry values."""
    return error.diagnostics[0].message if isinstance(error, DiagnosticError) else _name_problem(error)


def _refuse(message: str, help_: str | None = None, code: str = "sink-declared") -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, help=help_)])

"""A query that runs: its rows, each once, over as many connections as it takes."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sluicegate.client.errors import (
    ClientError,
    GapError,
    RefusedError,
    RevokedError,
    UnreachableError,
    WithdrawnError,
)
from sluicegate.client.events import Closed, Event, Gap, Notice, Revoked, Row, Rows, Withdrawn, read_event
from sluicegate.client.frames import Collector
from sluicegate.client.sse import Parser
from sluicegate.client.transport import SILENCE_SECONDS, Transport, as_list, malformed

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_SSE = "text/event-stream"


class Handle:
    """One's own query at a gateway. Not for use by several threads at once."""

    def __init__(self, transport: Transport, answer: Mapping[str, Any]) -> None:
        name = answer.get("handle")
        if not isinstance(name, str) or not name:
            raise malformed("the answer names no handle")
        self.name = name
        self.answer = dict(answer)
        """What the gateway told when it was asked: `decision`, `notices`, `version`, …"""
        self.cursor: str | None = None
        """Behind the last row that was handed out; None for where the gateway begins."""
        self._transport = transport
        self._path = f"/v1/queries/{quote(name, safe='')}"
        self._pending: deque[Row] = deque()
        self._behind: str | None = None

    def __repr__(self) -> str:
        return f"Handle({self.name!r})"

    @property
    def decision(self) -> str:
        return str(self.answer.get("decision", ""))

    @property
    def notices(self) -> Sequence[Any]:
        return tuple(as_list(self.answer.get("notices")))

    def describe(self) -> dict[str, Any]:
        """What the gateway knows of the query now."""
        found = self._transport.call("GET", self._path)
        return found if isinstance(found, dict) else {}

    def events(self, cursor: str | None = None, patience: float = PATIENCE_SECONDS) -> Iterator[Event]:
        """Everything behind the cursor as it comes, over a new connection whenever one breaks.

        Ends after `Withdrawn`, `Revoked` and `Closed`. When no connection can be had for `patience` seconds, it raises.
        """
        last, pauses, failing = cursor, _Pauses(), None
        while True:
            try:
                for event in self._connect(last):
                    failing = None
                    if isinstance(event, Rows | Gap):
                        pauses, last = _Pauses(), event.cursor or last
                    yield event
                    if isinstance(event, Withdrawn | Revoked | Closed):
                        return
                error: ClientError | None = None
            except UnreachableError as found:
                error = found
            except RefusedError as found:
                if not found.passes:
                    raise
                error = found
            failing = time.monotonic() if failing is None else failing
            if error is not None and time.monotonic() - failing >= patience:
                raise error
            time.sleep(pauses.next(getattr(error, "retry_seconds", None)))

    def _connect(self, cursor: str | None) -> Iterator[Event]:
        """One connection's events; what it leaves unfinished comes again over the next."""
        parser = Parser()
        headers = {"Accept": _SSE, "Cache-Control": "no-store"}
        with self._transport.stream(
            "GET", f"{self._path}/results", headers, {"cursor": cursor}, seconds=SILENCE_SECONDS
        ) as response:
            if not response.headers.get("Content-Type", "").startswith(_SSE):
                raise malformed("the answer is no stream of events")
            for chunk in response.iter_bytes():
                try:
                    found = [read_event(message) for message in parser.feed(chunk)]
                except ValueError as error:
                    raise malformed(f"the stream of events cannot be read: {error}") from None
                yield from (event for event in found if event is not None)

    def rows(
        self,
        cursor: str | None = None,
        *,
        on_gap: Callable[[Gap], None] | None = None,
        on_notice: Callable[[Notice], None] | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> Iterator[Row]:
        """Rows as they come, each once; without a cursor, from where this handle was last read to.

        Raises `GapError` (unless `on_gap` takes it), `WithdrawnError` and `RevokedError`; ends when the query is dropped.
        """
        if cursor is not None:
            self._pending.clear()
            self.cursor = cursor
        yield from self._hand_out()
        for event in self.events(self.cursor, patience):
            match event:
                case Rows(rows, behind):
                    self._pending.extend(rows)
                    self._behind = behind
                    if not rows:
                        self.cursor = behind
                    yield from self._hand_out()
                case Gap(behind):
                    self.cursor = behind or self.cursor
                    if on_gap is None:
                        raise GapError(event)
                    on_gap(event)
                case Notice():
                    if on_notice is not None:
                        on_notice(event)
                case Withdrawn():
                    raise WithdrawnError(event)
                case Revoked():
                    raise RevokedError(event)
                case Closed():
                    return

    def _hand_out(self) -> Iterator[Row]:
        """A reader that stops in the middle gets the rest of the rows when it comes back."""
        while self._pending:
            row = self._pending.popleft()
            if not self._pending:
                self.cursor = self._behind
            yield row

    def to_arrow(self, limit: int | None = None, timeout: float | None = None) -> pa.Table:
        """So many rows, or what comes within so many seconds, as a table; needs `pyarrow`."""
        read = list(islice(self._pending, limit))
        is_all = len(read) == len(self._pending)
        start = self._behind if read and is_all else self.cursor
        collector = Collector(self._transport, f"{self._path}/results", start)
        table = collector.collect(limit, timeout, read)
        # only now: what was not handed over, because something failed, comes again
        for _ in read:
            self._pending.popleft()
        self.cursor = collector.cursor
        return table

    def to_pandas(self, limit: int | None = None, timeout: float | None = None) -> Any:
        """As `to_arrow`; needs `pandas` too."""
        try:
            # before rows are taken that could not be handed over
            import_module("pandas")
        except ImportError as error:
            raise ImportError("tables for pandas need it: pip install pandas") from error
        return self.to_arrow(limit, timeout).to_pandas()

    def ack(self, cursor: str | None = None) -> None:
        """Tell the gateway that it need not keep what was handed out, or what lies before the cursor."""
        behind = cursor or self.cursor
        if behind is not None:
            self._transport.call("POST", f"{self._path}/ack", body={"cursor": behind})

    def pause(self) -> None:
        self._transport.call("POST", f"{self._path}/pause")

    def resume(self) -> None:
        self._transport.call("POST", f"{self._path}/resume")

    def drop(self) -> None:
        """End the query."""
        self._transport.call("DELETE", self._path)


class _Pauses:
    """Longer and longer, each with some chance in it, so that readers do not come back all at once."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE

    def next(self, wanted: float | None = None) -> float:
        pause, self._next = self._next, min(self._next * 2, _LONGEST_PAUSE)
        chosen = pause * random.uniform(0.5, 1.0)  # noqa: S311 -- no secret depends on it
        return max(chosen, min(wanted or 0.0, 60.0))

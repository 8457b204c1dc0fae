"""Readers of one registered query: those who follow it, and those who ask again and again."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from sluicegate.expr.nodes import Value
from sluicegate.testing.changes.judge import Judge
from sluicegate.testing.changes.world import Story
from sluicegate.testing.load.whole import Whole
from sluicegate.testing.load.wire import Answer, ask, write_request

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = ("window_start", "window_end")
_LAST = ("withdrawn", "closed", "revoked")
_LOST = (401, 403, 404)
_AWAY = (503, 429)


@dataclass(slots=True)
class Reading:
    """What one reader got, and what is wrong with it. `ended` names the event or status that was the last."""

    user: str
    shape: str
    handle: str
    token: str
    story: Story
    judge: Judge
    whole: Whole
    ended: str = ""
    counts: Counter[str] = field(default_factory=Counter)

    def take(self, told: Mapping[str, Any], first: int) -> None:
        """One event; it left the gateway while version `first`, or a later one that had been asked for, was in force."""
        name, last = told["event"], self.story.begun
        self.counts[name] += 1
        if self.ended:
            self.complain(f"{name} after {self.ended}")
        elif name == "rows":
            rows = [_read_row(row) for row in told["rows"]]
            self.judge.check(rows, first, last, False)
            self.whole.take(rows, first, last)
        elif name == "gap":
            self.whole.skip()
        elif name in _LAST:
            self.ended = name
        elif name != "notice":
            self.complain(f"an event `{name}`")

    def complain(self, text: str) -> None:
        self.judge.violations.append(f"{self.user} {self.shape}: {text}")

    def may_end(self, first: int) -> bool:
        """Whether, since version `first`, there was one that leaves the user nothing."""
        spans, _ = self.story.find_spans(self.user, first, self.story.begun)
        return any(each.settings.kind is None for each in spans)


class Follower:
    """Reads lines on one connection until the query ends. Each is dated by its first byte."""

    def __init__(self, reading: Reading, address: str) -> None:
        self.reading, self._address = reading, address
        self._text, self._first = b"", 0
        self._answer: Answer | None = None

    async def run(self) -> None:
        path = f"/v1/queries/{self.reading.handle}/results"
        request = write_request(path, self.reading.token, "application/x-ndjson")
        started = self.reading.story.done
        self._answer = await ask(self._address, request, self._take)
        await self._answer.over
        if self._answer.status != 200 and not self.reading.may_end(started):
            self.reading.complain(f"refused with {self._answer.status}: {self._text[:200]!r}")
        if not self.reading.ended and self._answer.status != 200:
            self.reading.ended = str(self._answer.status)
        elif not self.reading.ended:
            self.reading.complain("the connection broke off")

    def _take(self, status: int, data: bytes) -> None:
        if status != 200:
            self._text += data
            return
        if not self._text:
            self._first = self.reading.story.done
        *lines, rest = (self._text + data).split(b"\n")
        for at, line in enumerate(lines):
            if line:
                self.reading.take(json.loads(line), self._first if at == 0 else self.reading.story.done)
        self._text = rest
        if lines:
            self._first = self.reading.story.done

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()


class Poller:
    """Asks for what lies behind its cursor, waits, rests, asks again."""

    def __init__(self, reading: Reading, address: str, pause: float, wait: float = 1.0) -> None:
        self.reading, self._address, self._pause, self._wait = reading, address, pause, wait
        self.cursor: str | None = None
        self._answer: Answer | None = None

    def move(self, address: str) -> None:
        """The gateway is somewhere else now."""
        self._address = address

    async def run(self) -> None:
        while not self.reading.ended:
            await self.ask()
            await asyncio.sleep(self._pause)

    async def ask(self) -> None:
        """Once; raises `ConnectionError` where the answer broke off, and nothing of it counts then."""
        behind = f"&cursor={quote(self.cursor)}" if self.cursor else ""
        path = f"/v1/queries/{self.reading.handle}/results?wait={self._wait:g}{behind}"
        first, parts = self.reading.story.done, list[bytes]()
        request = write_request(path, self.reading.token, "application/json")
        self._answer = await ask(self._address, request, lambda _, data: parts.append(data))
        await self._answer.over
        if not self._answer.is_whole:
            raise ConnectionError("the answer broke off")
        if self._answer.status == 200:
            self._take(json.loads(b"".join(parts)), first)
        elif self._answer.status in _AWAY:
            self.reading.counts["away"] += 1
        elif self._answer.status in _LOST and self.reading.may_end(first):
            self.reading.ended = str(self._answer.status)
        else:
            self.reading.complain(f"refused with {self._answer.status}: {b''.join(parts)[:200]!r}")
            self.reading.ended = str(self._answer.status)

    def _take(self, told: Mapping[str, Any], first: int) -> None:
        """Which rows came before a gap and which after it is not told: a gap is taken to lie on both sides."""
        self.cursor = told["cursor"]
        gaps = [each for each in told["events"] if each["event"] == "gap"]
        for each in gaps:
            self.reading.take(each, first)
        if told["rows"]:
            self.reading.take({"event": "rows", "rows": told["rows"]}, first)
        if gaps:
            self.reading.whole.skip()
        for each in told["events"]:
            if each["event"] != "gap":
                self.reading.take(each, first)

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()


Reader = Follower | Poller


def _read_row(row: Mapping[str, Any]) -> dict[str, Value]:
    return {name: _read_time(value) if name in _TIMES else value for name, value in row.items()}


@lru_cache(maxsize=10_000)
def _read_time(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)

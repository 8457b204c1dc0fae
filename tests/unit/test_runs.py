"""Rows leave only for the query that they were found for, not for one that has its handle and its version by now (R10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from types import SimpleNamespace
from typing import Any

import pytest

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.service.delivery import Asked, _answer, _Following
from sluicegate.service.encoding import Chunk, Form
from sluicegate.service.gateway import Gateway

SECRET = b"SECRET\n"


def make_running(number: int, version: int = 1) -> Any:
    return SimpleNamespace(handle="h", number=number, version=version, allowed=SimpleNamespace(notices=()))


class World:
    """One handle; `then` happens after the first look at it and before its rows leave."""

    def __init__(self, first: Any, then: Callable[[World], None]) -> None:
        self.running, self._then = first, then
        self.reads, self.sent = 0, b""
        gateway = SimpleNamespace(
            engine=SimpleNamespace(find=lambda _: self.running, catalog=SimpleNamespace(version=5)),
            clockwork=SimpleNamespace(is_late=lambda _: False),
            authorization=SimpleNamespace(is_late=lambda _: False),
            find_obstacle=lambda: None,
            guard=SimpleNamespace(find_reason=lambda _: None),
            metrics=SimpleNamespace(count_delivered=lambda *_: None),
            settings=SimpleNamespace(heartbeat_seconds=0.01, most_read_rows=10),
        )
        gateway.find_run = lambda handle: Gateway.find_run(gateway, handle)  # type: ignore[arg-type] -- a part of one
        gateway.find_reason = lambda *asked: Gateway.find_reason(gateway, *asked)  # type: ignore[arg-type] -- as above
        self.delivery: Any = SimpleNamespace(
            gateway=gateway, read=self.read, hub=SimpleNamespace(is_stopped=False)
        )
        self.follower: Any = SimpleNamespace(news=asyncio.Event(), is_gone=False, advance=lambda *_: None)

    async def read(self, _: Asked, cursor: str | None, most: int) -> Chunk:
        self.reads += 1
        if self.reads > 1:
            if self.running is not None and cursor is not None:
                raise DiagnosticError([Diagnostic("gate-cursor", "another query's")])
            return Chunk(b"CLOSED\n", "c", is_last=True)
        self._then(self)
        return Chunk(SECRET, "c", rows=1)

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent += message.get("body", b"")

    def ask(self, form: Form, cursor: str | None) -> Any:
        return Asked(None, "h", form, cursor, None, 0)  # type: ignore[arg-type] -- nobody is asked for here


async def follow(world: World, cursor: str | None) -> None:
    following = _Following(world.delivery, world.ask(Form.SSE, cursor), world.follower, world.send)
    while await following._step():
        pass


async def answer(world: World, cursor: str | None) -> None:
    await _answer(world.delivery, world.ask(Form.ARROW, cursor), world.follower, world.send)


def begin_anew(world: World) -> None:
    """Narrowed, dropped and registered again: the same handle, and the first version again."""
    world.running = make_running(7, 2)
    world.running = make_running(8, 1)


def come_and_go(world: World) -> None:
    world.running = make_running(8)
    world.running = None


async def judge(_: object) -> None:
    return


@pytest.mark.parametrize("ask", [follow, answer])
@pytest.mark.parametrize(
    ("first", "then"), [(make_running(7), begin_anew), (None, come_and_go), (make_running(7), come_and_go)]
)
def test_rows_of_a_query_that_has_ended_do_not_leave_by_one_that_has_its_handle(
    ask: Callable[[World, str | None], Awaitable[None]], first: Any, then: Callable[[World], None]
) -> None:
    async def run() -> World:
        world = World(first, then)
        world.delivery.judge = judge
        await ask(world, None)
        return world

    world = asyncio.run(run())
    assert world.reads == 2
    assert b"CLOSED" in world.sent
    assert SECRET not in world.sent


def test_a_follower_is_told_that_its_query_ended_where_another_has_the_handle() -> None:
    async def run() -> World:
        world = World(make_running(7), begin_anew)
        await follow(world, "cursor of 7")
        return world

    world = asyncio.run(run())
    assert b"event: closed" in world.sent
    assert SECRET not in world.sent

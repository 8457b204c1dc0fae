"""The end of a gateway and of its callers: nothing goes on that nobody waits for, and nothing is told as a fault."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from pathlib import Path
from typing import cast

import httpx
import pytest
from starlette.requests import Request

from service.gateway_world import make_settings, serve, wait_until
from service.still_world import StillWorld, open_still, serve_still
from sluicegate.service import hub
from sluicegate.service.identity.principal import Principal

WAIT = "/v1/catalog/version?wait_for=99&timeout=60"


def test_a_gateway_stops_in_order_while_results_are_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Found: uvicorn waited for followers, cancelled them, and each was logged as a fault."""
    caplog.set_level(logging.WARNING)
    answers: list[httpx.Response] = []
    with serve(open_still(make_settings(tmp_path))) as served:
        world = StillWorld(served.gateway, served.url)
        handle = world.register("ann")
        with world.follow("ann", handle) as events, world.follow("ann", handle):
            world.give(handle, ("a", 1.0))
            events.wait_rows(1, 10)
            behind = f"/v1/queries/{handle}/results?wait=60&cursor={events.cursor}"
            waiting = [
                threading.Thread(target=lambda path=path: answers.append(world.get("ann", path)))
                for path in (behind, WAIT)
            ]
            for each in waiting:
                each.start()
            time.sleep(0.5)
            begin = time.monotonic()
            assert served.server is not None
            served.server.should_exit = True
            assert events.is_over.wait(5)
            assert events.names == ["notice", "rows"], "a stream that breaks off goes on elsewhere"
            for each in waiting:
                each.join(5)
            assert time.monotonic() - begin < 5
    assert sorted(each.status_code for each in answers) == [200, 503]
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_waiting_for_a_version_ends_with_its_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found: it was looked for again and again after the caller had gone."""
    looks, ends = Counter[str](), threading.Event()
    found = Request.is_disconnected

    async def look(request: Request) -> bool:
        looks["looked"] += 1
        is_gone = await found(request)
        if is_gone:
            ends.set()
        return is_gone

    monkeypatch.setattr(Request, "is_disconnected", look)
    with serve_still(tmp_path) as world:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(world.url + WAIT, headers=world.headers("ann"), timeout=0.3)
        assert ends.wait(5)
        before = looks["looked"]
        time.sleep(0.2)
        assert looks["looked"] == before
        waited = threading.Thread(target=lambda: world.get("ann", "/v1/catalog/version?wait_for=2"))
        waited.start()
        wait_until(lambda: looks["looked"] > before, 10)
        world.change("CREATE ROLE later;")
        waited.join(5)
        assert not waited.is_alive()


def test_a_follower_that_leaves_meanwhile_does_not_end_acknowledging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found under load: rows were never acknowledged again, and the gateway failed when it was stopped."""
    monkeypatch.setattr(hub, "ACKNOWLEDGE_SECONDS", 0.01)
    told: list[str] = []

    async def run() -> None:
        def acknowledge(handle: str, _: str) -> None:
            if "two" in made._followers:
                made.leave(second)
            told.append(handle)

        made = hub.Hub(acknowledge)
        made.start()
        first, second = (made.join(handle, cast("Principal", handle)) for handle in ("one", "two"))
        for tick in range(1, 4):
            first.advance(tick, f"before {tick}")
            await asyncio.sleep(0.1)
        await made.stop()

    asyncio.run(run())
    assert told == ["one"] * 3

"""Shared queries on Spark: what opens and closes while tuples come, and what each subscriber is handed of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from service.gateway_world import Events, World, make_settings, open_gateway, p, serve, wait_until
from service.shared_world import (
    SHARED,
    HandClock,
    admit,
    audited,
    find,
    give_badge,
    renew,
    share,
    subscribe,
    take_badge,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
WINDOWS = "SELECT SUM(x) AS s FROM P [RANGE 10 SECONDS]"


class Live:
    """A gateway and what its readers were handed, over restarts."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder, self.clock = spark, folder, HandClock()
        self.rows: dict[str, list[float]] = {"ann": [], "nan": [], "windows": [], "alone": []}
        self._cursors: dict[str, str | None] = {}

    @contextmanager
    def serve(self) -> Iterator[World]:
        gateway = open_gateway(self._spark, make_settings(self._folder), SHARED, self.clock)
        with serve(gateway) as world:
            yield world

    def push(self, world: World, at: int) -> None:
        """Two tuples of the `at`-th ten seconds; both have that number."""
        world.push(p(10 * at + 1, "a", x=float(at)), p(10 * at + 2, "b", x=float(at)))

    @contextmanager
    def follow(self, world: World, name: str, user: str, handle: str) -> Iterator[Events]:
        params = {} if self._cursors.get(name) is None else {"cursor": self._cursors[name]}
        with world.follow(user, handle, **params) as events:
            yield events
        self._cursors[name] = events.cursor
        self.rows[name] += [next(value for key, value in row.items() if key != "id") for row in events.rows]


def _wait_closed(world: World, user: str) -> None:
    wait_until(lambda: not find(world, user)["is_open"], 5)


def test_each_is_handed_what_lies_in_its_sessions_and_nothing_after_the_call(
    spark: SparkSession, tmp_path: Path
) -> None:
    live = Live(spark, tmp_path)
    with live.serve() as world:
        share(world)
        share(world, "W", WINDOWS)
        admit(world, user="ann")
        admit(world, "W", user="ann")
        admit(world, role="Nurse", credential="badge")
        give_badge(world, "nan")
        alone = world.register("ann")
        handles = {
            "ann": subscribe(world, "ann", seconds=60),
            "windows": subscribe(world, "ann", "W", seconds=60),
            "nan": subscribe(world, "nan"),
        }
        with ExitStack() as stack:
            own, windows, plain = (
                stack.enter_context(live.follow(world, name, "ann", handle))
                for name, handle in (
                    ("ann", handles["ann"]),
                    ("windows", handles["windows"]),
                    ("alone", alone),
                )
            )
            with live.follow(world, "nan", "nan", handles["nan"]) as other:
                live.push(world, 1)
                live.push(world, 2)
                for each in (own, other, plain):
                    each.wait_rows(4)
                windows.wait_rows(1)
                live.clock.pass_seconds(61)
                _wait_closed(world, "ann")
                live.push(world, 3)
                other.wait_rows(6)
                take_badge(world, "nan")
                live.push(world, 4)
                plain.wait_rows(8)
                give_badge(world, "nan", method="PUT")
                assert renew(world, "ann").json()["is_open"]
                renew(world, "ann", "W")
                live.push(world, 5)
                other.wait_rows(8)
                world.change("ALTER USER nan DROP ROLE Nurse;")
                assert other.is_over.wait(5)
                assert other.found[-1][2]["reason"] == "role-lost"
            live.push(world, 6)
            world.change("ALTER USER nan ADD ROLE Nurse;")
            world.tokens.pop("nan")
            with live.follow(world, "nan", "nan", handles["nan"]) as other:
                live.push(world, 7)
                other.wait_rows(2)
            own.wait_rows(10)
            windows.wait_rows(3)
            plain.wait_rows(14)
    with live.serve() as world, ExitStack() as stack:
        assert [find(world, user)["handle"] for user in ("ann", "nan")] == [handles["ann"], handles["nan"]]
        own, windows, plain = (
            stack.enter_context(live.follow(world, name, "ann", handle))
            for name, handle in (("ann", handles["ann"]), ("windows", handles["windows"]), ("alone", alone))
        )
        other = stack.enter_context(live.follow(world, "nan", "nan", handles["nan"]))
        live.push(world, 8)
        live.push(world, 9)
        for each in (own, other, plain):
            each.wait_rows(4)
        windows.wait_rows(1)
        closings = [each["decision"] for each in audited(world, "switch-close")]
    assert live.rows["alone"] == [float(at) for at in range(1, 10) for _ in range(2)]
    open_for = {"ann": (1, 2, 5, 6, 7, 8, 9), "nan": (1, 2, 3, 5, 7, 8, 9)}
    for user, sessions in open_for.items():
        assert live.rows[user] == [each for each in live.rows["alone"] if each in sessions], user
    # a window that was open at the beginning or the end of a session, or over the restart, is withheld (R18)
    assert live.rows["windows"] == [2.0, 10.0, 12.0, 16.0]
    assert closings == [
        "the subscription has expired",
        "the subscription has expired",
        "the credential is revoked",
        "no policy admits the user",
        "the gateway starts",
        "the gateway starts",
    ]

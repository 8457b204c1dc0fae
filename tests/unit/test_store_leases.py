"""Leases: a change has arrived when every gateway that may still deliver has it; one that stood still delivers nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.service.store import Store, open_store
from sluicegate.service.store.leases import Lease, Leases, Renewal


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.db")) as found:
        found.append("CREATE ROLE a;", None, "")
        yield found


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_change_waits_for_those_who_may_deliver(store: Store) -> None:
    assert store.wait_acknowledged(1, 0)
    leases = store.leases
    assert leases.renew("g", 1, 30) == Renewal(True, 1)
    store.append("CREATE ROLE b;", None, "")
    assert leases.list_waiting(2) == ["g"]
    assert not store.wait_acknowledged(2, 0.05)
    threading.Timer(0.1, lambda: leases.renew("g", 2, 30)).start()
    assert store.wait_acknowledged(2, 10)


def test_a_lease_that_ran_out_is_not_waited_for_and_comes_back_with_the_newest_only(store: Store) -> None:
    leases = store.leases
    leases.renew("g", 1, 0.1)
    store.append("CREATE ROLE b;", None, "")
    assert store.wait_acknowledged(2, 10)
    # given up: what it holds is old, so it may not deliver before it has caught up
    assert leases.renew("g", 1, 30) == Renewal(False, 2)
    assert leases.renew("new", 1, 30) == Renewal(False, 2)
    assert leases.list_waiting(2) == []
    assert leases.renew("g", 2, 30) == Renewal(True, 2)


def test_a_gateway_that_does_not_catch_up_is_not_renewed(store: Store) -> None:
    leases = store.leases
    leases.renew("stuck", 1, 0.15)
    store.append("CREATE ROLE b;", None, "")
    began = time.monotonic()
    while leases.renew("stuck", 1, 0.15).granted:
        assert time.monotonic() - began < 10
        time.sleep(0.02)
    assert store.wait_acknowledged(2, 10)


def test_a_gateway_s_own_time_ends_before_the_database_s(store: Store) -> None:
    clock = Clock()
    lease = Lease(store.leases, "g", 10, 2, clock)
    assert not lease.valid()
    assert lease.renew(1).granted
    clock.now += 7.9
    assert lease.valid()
    clock.now += 0.1
    assert not lease.valid()
    # The database gave ten seconds: those who change things wait for it still.
    assert store.leases.list_waiting(2) == ["g"]


class Slow(Leases):
    """The answer comes late, or never."""

    def __init__(self, store: Store, clock: Clock, seconds: float, lost: bool = False) -> None:
        super().__init__(store._database)
        self._clock, self._seconds, self._lost = clock, seconds, lost

    def renew(self, gateway: str, version: int, ttl: float) -> Renewal:
        answer = super().renew(gateway, version, ttl)
        self._clock.now += self._seconds
        if self._lost:
            raise DiagnosticError([])
        return answer


def test_time_counts_from_before_the_question(store: Store) -> None:
    """A gateway that stood still between question and answer does not think that it has a whole lease left."""
    clock = Clock()
    lease = Lease(Slow(store, clock, 9), "g", 10, 2, clock)
    assert lease.renew(1).granted
    assert not lease.valid()


def test_an_answer_that_was_lost_lengthens_nothing(store: Store) -> None:
    clock = Clock()
    assert Lease(store.leases, "g", 10, 2, clock).renew(1).granted
    lease = Lease(Slow(store, clock, 0, lost=True), "g", 10, 2, clock)
    with pytest.raises(DiagnosticError):
        lease.renew(1)
    assert not lease.valid()


def test_a_kept_lease_goes_on_until_it_is_stopped(store: Store) -> None:
    held = [1]
    lease = store.lease("g", ttl=0.6, margin=0.2)
    lease.keep(lambda: held[0])
    _wait(lease.valid)
    store.append("CREATE ROLE b;", None, "")
    held[0] = 2
    assert store.wait_acknowledged(2, 10)
    time.sleep(0.7)
    assert lease.valid()
    lease.stop()
    assert not lease.valid()
    assert store.leases.list_waiting(99) == []


def test_a_margin_is_part_of_the_lease(store: Store) -> None:
    for ttl, margin in [(1, 0), (1, 1), (1, -1)]:
        with pytest.raises(ValueError, match="margin"):
            Lease(store.leases, "g", ttl, margin)


def _wait(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)

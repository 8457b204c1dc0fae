"""Leases: a change has arrived everywhere when every gateway that may still deliver has acknowledged it (R10).

A gateway delivers only while its lease is valid. It reckons that by its own clock, from before it asked, less a margin;
the database reckons by its own, from after it was asked: so the gateway's time ends first, also where the gateway stood
still, or could not reach the database. What the two clocks may drift apart within one lease must be below the margin.

A lease that has run out is given again only for the newest version, and while no change can be made: otherwise a gateway
could come back with an old version after those who wait for it had given it up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sluicegate.errors import DiagnosticError
from sluicegate.service.store.chain import last_entry
from sluicegate.service.store.database import CHANGES, GATEWAYS, Database, Row, Transaction

# All SQL here is put together from constants of this package; values are bound.
_HELD = f"SELECT lease_until, acknowledged, behind_since FROM {GATEWAYS} WHERE id = ?"  # noqa: S608
_INSERT = f"INSERT INTO {GATEWAYS} (lease_until, acknowledged, behind_since, id) VALUES (?, ?, ?, ?)"  # noqa: S608
_UPDATE = f"UPDATE {GATEWAYS} SET lease_until = ?, acknowledged = ?, behind_since = ? WHERE id = ?"  # noqa: S608
_DELETE = f"DELETE FROM {GATEWAYS} WHERE id = ?"  # noqa: S608
_FORGET = f"DELETE FROM {GATEWAYS} WHERE lease_until < ?"  # noqa: S608
_WAITING = f"SELECT id FROM {GATEWAYS} WHERE acknowledged < ? AND lease_until > ? ORDER BY id"  # noqa: S608
_FORGOTTEN_AFTER = 86_400.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1


def elapsed() -> float:
    """Seconds that go on while the machine sleeps, which `time.monotonic` does not promise."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Renewal:
    """Whether the lease is held for another while, and the newest version."""

    granted: bool
    newest: int


class Leases:
    """The table of gateways. Every look at it is taken in turns: a lease that was seen to be over stays over."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def renew(self, gateway: str, version: int, ttl: float) -> Renewal:
        """Acknowledge a version and hold the lease for `ttl` seconds from now, by the database's clock.

        Refused without the newest version where the lease has run out; and where the gateway has been behind for
        longer than `ttl`, so that one that cannot take a change does not hold up those who made it.
        """
        with self._database.transaction(GATEWAYS) as found:
            now = self._now(found)
            held = found.run(_HELD, gateway)
            live = bool(held) and held[0][0] > now
            if not live:
                found.lock(CHANGES)
            newest = last_entry(found)[0]
            behind = _behind_since(now, version, newest, held[0] if live else None)
            if (not live and version != newest) or (behind is not None and now - behind > ttl):
                return Renewal(False, newest)
            found.run(_UPDATE if held else _INSERT, now + ttl, version, behind, gateway)
            found.run(_FORGET, now - _FORGOTTEN_AFTER)
            return Renewal(True, newest)

    def release(self, gateway: str) -> None:
        """The gateway delivers nothing any more, and says so."""
        with self._database.transaction(GATEWAYS) as found:
            found.run(_DELETE, gateway)

    def list_waiting(self, version: int) -> list[str]:
        """Live gateways that have not acknowledged the version."""
        with self._database.transaction(GATEWAYS) as found:
            return [str(row[0]) for row in found.run(_WAITING, version, self._now(found))]

    def wait_acknowledged(self, version: int, timeout: float) -> bool:
        """True when every live gateway has acknowledged the version or its lease has run out; False when time is up."""
        deadline, pause = elapsed() + timeout, _FIRST_PAUSE
        while True:
            try:
                if not self.list_waiting(version):
                    return True
            except DiagnosticError:
                # not known is not acknowledged; the database may be back before the time is up
                if elapsed() >= deadline:
                    raise
            if elapsed() >= deadline:
                return False
            time.sleep(min(pause, max(0.0, deadline - elapsed())))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def close(self) -> None:
        self._database.close()

    def _now(self, found: Transaction) -> float:
        return float(found.run(f"SELECT {self._database.now}")[0][0])


def _behind_since(now: float, version: int, newest: int, held: Row | None) -> float | None:
    """Since when it has neither the newest version nor one more than before."""
    if version >= newest:
        return None
    if held is None or held[2] is None or version > held[1]:
        return now
    return float(held[2])


class Lease:
    """One gateway's right to deliver. `valid` is asked before each hand-over and costs no more than a look at a clock."""

    def __init__(
        self,
        leases: Leases,
        gateway: str,
        ttl: float,
        margin: float,
        clock: Callable[[], float] = elapsed,
    ) -> None:
        if not 0 < margin < ttl:
            raise ValueError("the margin of a lease lies between 0 and its length")
        self.gateway = gateway
        self._leases = leases
        self._ttl, self._margin = ttl, margin
        self._clock = clock
        self._until = float("-inf")
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def valid(self) -> bool:
        """Whether this gateway may deliver now."""
        return self._clock() < self._until

    def renew(self, version: int) -> Renewal:
        """Acknowledge the version and go on. What the database cannot confirm changes nothing: the old end stays."""
        until = self._clock() + self._ttl - self._margin
        renewal = self._leases.renew(self.gateway, version, self._ttl)
        if renewal.granted and not self._stopped.is_set():
            self._until = max(self._until, until)
        return renewal

    def keep(self, acknowledged: Callable[[], int]) -> None:
        """Renew from a thread of its own, three times in a lease, with the version that the gateway then has."""
        self._thread = threading.Thread(target=self._keep, args=(acknowledged,), name="lease", daemon=True)
        self._thread.start()

    def _keep(self, acknowledged: Callable[[], int]) -> None:
        while not self._stopped.is_set():
            try:
                self.renew(acknowledged())
            except DiagnosticError:
                # the lease runs out by itself; until then it is tried again
                self._stopped.wait(min(0.2, self._ttl / 10))
                continue
            self._stopped.wait((self._ttl - self._margin) / 3)

    def stop(self) -> None:
        """Deliver nothing from now on, and let those who wait know."""
        self._until = float("-inf")
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(self._ttl)
        self._until = float("-inf")
        if self._thread is not None and self._thread.is_alive():
            # it waits for a database that does not answer: so would this, and the lease runs out by itself
            return
        try:
            self._leases.release(self.gateway)
        except DiagnosticError:
            # they wait until the lease has run out
            return
        finally:
            self._leases.close()

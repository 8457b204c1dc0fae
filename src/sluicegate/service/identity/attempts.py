"""Lock-out: failed sign-ins per user and per client address, each failure above a limit doubling the wait.

An attempt is counted before the password is looked at, and given back when it was right: guesses made at the same time
cannot all pass before the first is counted. Names that do not exist are counted as others are. What was typed as a
name is kept only as a hash, for people type passwords there.
"""

from __future__ import annotations

import hashlib
import ipaddress

from sluicegate.service.identity.clock import Clock, to_micros
from sluicegate.service.identity.database import Database
from sluicegate.service.identity.principal import Refused
from sluicegate.service.identity.settings import LockSettings

_RETRIES = 8
_NET_V6 = 64
_MAX_DOUBLINGS = 30


class Attempts:
    """The counters, in a store that gateways may share."""

    def __init__(self, database: Database, clock: Clock, settings: LockSettings) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings

    def take(self, user: str, client: str) -> Refused | None:
        """Count an attempt at both; a refusal when either has to wait."""
        self._forget_old()
        refused = self._take(name_client(client), self._settings.client_limit)
        return refused or self._take(name_user(user), self._settings.user_limit)

    def succeed(self, user: str, client: str) -> None:
        """Clear the user's failures. The address gets back this attempt only: a right password of one's own
        must not buy guesses at those of others."""
        self._database.execute("DELETE FROM identity_attempts WHERE subject = ?", (name_user(user),))
        self._database.execute(
            "UPDATE identity_attempts SET failures = failures - 1, blocked_until = 0"
            " WHERE subject = ? AND failures > 0",
            (name_client(client),),
        )

    def unlock(self, user: str) -> None:
        """An administrator lets a user try again at once."""
        self._database.execute("DELETE FROM identity_attempts WHERE subject = ?", (name_user(user),))

    def _take(self, subject: str, limit: int) -> Refused | None:
        for _ in range(_RETRIES):
            now = self._clock.now().wall
            found = self._database.query(
                "SELECT failures, last_at, blocked_until FROM identity_attempts WHERE subject = ?", (subject,)
            )
            if not found:
                until = now + self._wait(1, limit)
                if self._insert(subject, now, until):
                    return None
                continue
            failures, last_at, blocked_until = (int(value or 0) for value in found[0])
            if blocked_until > now:
                return _blocked((blocked_until - now) / 1_000_000)
            if self._count(subject, (failures, last_at), now, now + self._wait(failures + 1, limit)):
                return None
        return Refused("sign-in-busy", "too many sign-ins at once", 1.0)

    def _insert(self, subject: str, now: int, until: int) -> bool:
        sql = "INSERT INTO identity_attempts VALUES (?, 1, ?, ?) ON CONFLICT (subject) DO NOTHING RETURNING subject"
        return bool(self._database.execute(sql, (subject, now, until)))

    def _count(self, subject: str, seen: tuple[int, int], now: int, until: int) -> bool:
        """Only when nobody else counted since: the loser looks again, and finds itself blocked where it is."""
        sql = (
            "UPDATE identity_attempts SET failures = failures + 1, last_at = ?, blocked_until = ?"
            " WHERE subject = ? AND failures = ? AND last_at = ? RETURNING subject"
        )
        return bool(self._database.execute(sql, (now, until, subject, *seen)))

    def _wait(self, failures: int, limit: int) -> int:
        if failures < limit:
            return 0
        doublings = min(failures - limit, _MAX_DOUBLINGS)
        return to_micros(min(self._settings.first_seconds * 2**doublings, self._settings.most_seconds))

    def _forget_old(self) -> None:
        before = self._clock.now().wall - to_micros(self._settings.forget_seconds)
        self._database.execute("DELETE FROM identity_attempts WHERE last_at < ?", (before,))


def _blocked(seconds: float) -> Refused:
    return Refused("sign-in-blocked", "too many failed attempts", round(seconds, 3))


def name_user(user: str) -> str:
    return "user:" + hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()


def name_client(client: str) -> str:
    """One subject per address, per /64 for IPv6 (whoever has one address there has them all)."""
    try:
        address = ipaddress.ip_address(client.partition("%")[0])
    except ValueError:
        return "client:unknown"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return f"client:{address.ipv4_mapped}"
        return f"client:{ipaddress.ip_network((address, _NET_V6), strict=False)}"
    return f"client:{address}"

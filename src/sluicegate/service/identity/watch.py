"""Whether somebody who was let in is still to be: asked for every open stream, several times a second (bypass 28)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.policy.catalog import Catalog
from sluicegate.service.identity.accounts import Accounts
from sluicegate.service.identity.clock import Clock, Now, to_micros
from sluicegate.service.identity.database import DatabaseDownError
from sluicegate.service.identity.principal import Principal, SignIn, held_roles


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """What the store said; as old as the moment before it was asked."""

    live: frozenset[str]
    cutoffs: Mapping[str, int]
    taken_at: int


class Watch:
    """Answers from a snapshot of the store, taken anew four times in `trust_seconds`, whoever and how many ask.

    Without an answer of the store for `trust_seconds` nobody is valid: whether a session was revoked is then unknown (R7).
    """

    def __init__(self, accounts: Accounts, clock: Clock) -> None:
        self._accounts = accounts
        self._clock = clock
        self._trust = to_micros(accounts.settings.trust_seconds)
        self._lock = threading.Lock()
        self._snapshot: _Snapshot | None = None

    def still_valid(self, principal: Principal, catalog: Catalog, now: Now | None = None) -> str | None:
        """None, or the code of `IDENTITY_CODES` that says why the principal's streams end now."""
        now = now or self._clock.now()
        if principal.is_expired(now):
            return "token-expired"
        return self._check_store(principal, now) or check_catalog(principal, catalog)

    def refresh(self) -> None:
        """Ask the store now; when it does not answer, what it said before counts until it is too old."""
        now = self._clock.now().monotonic
        try:
            self._snapshot = _Snapshot(self._accounts.bearers.live_ids(), self._accounts.cutoffs(), now)
        except DatabaseDownError:
            return

    def _check_store(self, principal: Principal, now: Now) -> str | None:
        found = self._look(now, self._trust // 4)
        if found is None:
            return "identity-store"
        if principal.sign_in is not SignIn.OIDC and principal.session not in found.live:
            # it may have been opened after the snapshot was taken
            found = self._look(now, 0)
            if found is None or found.taken_at < now.monotonic:
                return "identity-store"
            if principal.session not in found.live:
                return "token-revoked"
        ended = principal.sign_in is SignIn.OIDC and principal.signed_at < found.cutoffs.get(
            principal.user, 0
        )
        return "token-revoked" if ended else None

    def _look(self, now: Now, oldest: int) -> _Snapshot | None:
        with self._lock:
            found = self._snapshot
            if found is None or now.monotonic - found.taken_at >= oldest:
                self.refresh()
            found = self._snapshot
        if found is None or now.monotonic - found.taken_at >= self._trust:
            return None
        return found


def check_catalog(principal: Principal, catalog: Catalog) -> str | None:
    """What this version of the catalog says about the principal."""
    known = catalog.users.get(principal.user)
    if known is None and not principal.claimed:
        return "user-unknown"
    if known is not None and known.disabled:
        return "user-disabled"
    if not principal.roles <= held_roles(principal, catalog):
        return "role-lost"
    return None

"""What people and administrators do with accounts: set passwords, issue and revoke tokens, end sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sluicegate.policy.catalog import Catalog
from sluicegate.service.identity.attempts import Attempts
from sluicegate.service.identity.bearers import Bearer, BearerKind, Bearers, Issued
from sluicegate.service.identity.clock import Clock
from sluicegate.service.identity.database import Database
from sluicegate.service.identity.passwords import Passwords
from sluicegate.service.identity.principal import Principal, Refused, SignIn, close_roles
from sluicegate.service.identity.scopes import ADMIN, covers_all
from sluicegate.service.identity.settings import IdentitySettings

_DROPPED = "dropped"
"""Under this the store has the version up to which dropped users were looked for."""


class Accounts:
    """The accounts of a gateway. Times, counters and hashes are in the store, so that gateways may share them."""

    def __init__(self, settings: IdentitySettings, database: Database, clock: Clock) -> None:
        self.settings = settings
        self.passwords = Passwords(database, clock, settings.passwords)
        self.attempts = Attempts(database, clock, settings.lock)
        self.bearers = Bearers(database, clock)
        self._database = database
        self._clock = clock

    def set_password(self, user: str, password: str) -> Refused | None:
        """A new password ends the sessions that the old one opened; tokens have lives of their own."""
        refused = self.passwords.set(user, password)
        if refused is None:
            self.bearers.revoke_all(user, BearerKind.SESSION)
            self.attempts.unlock(user)
        return refused

    def issue_token(
        self,
        principal: Principal,
        catalog: Catalog,
        user: str,
        scopes: Iterable[str],
        seconds: float,
        roles: Iterable[str] | None = None,
        label: str = "",
    ) -> Issued | Refused:
        """A token for oneself, or by an administrator for others: never for more than its maker and its user may.

        A token makes no tokens, so that revoking it is the end of it.
        """
        wanted, asked = frozenset(scopes), None if roles is None else frozenset(roles)
        refused = self._check_maker(principal, user, wanted)
        if refused is not None:
            return refused
        known = catalog.users.get(user)
        if known is None or known.disabled:
            return Refused("user-unknown", f"the catalog has no active user `{user}`")
        if user == principal.user and asked is None:
            asked = principal.roles
        refused = _check_roles(principal, catalog, user, asked)
        if refused is not None:
            return refused
        seconds = min(seconds, self.settings.most_token_seconds)
        closed = None if asked is None else close_roles(catalog, asked)
        return self.bearers.issue(BearerKind.TOKEN, user, wanted, seconds, closed, label, principal.user)

    def _check_maker(self, principal: Principal, user: str, scopes: frozenset[str]) -> Refused | None:
        if principal.sign_in is SignIn.TOKEN:
            return Refused("scope-missing", "a token cannot make tokens; sign in")
        if user != principal.user and not principal.is_admin:
            return Refused("scope-missing", "only administrators make tokens for others")
        if not scopes or not covers_all(principal.scopes, scopes):
            return Refused("scope-missing", "a token carries scopes, none beyond those of its maker")
        if ADMIN in scopes and not principal.is_admin:
            return Refused("scope-missing", "only administrators make tokens for administration")
        return None

    def revoke(self, principal: Principal, id_: str) -> bool:
        """One's own token or session, or any for an administrator; whether there was one."""
        bearer = self.bearers.get(id_)
        if bearer is None or not (principal.is_admin or bearer.user == principal.user):
            return False
        return self.bearers.revoke(id_)

    def list_bearers(self, principal: Principal, user: str) -> tuple[Bearer, ...]:
        """One's own, or anybody's for an administrator."""
        if user != principal.user and not principal.is_admin:
            return ()
        return self.bearers.list_of(user)

    def end_all(self, user: str) -> None:
        """Sessions, tokens, and what the issuer signed until now: all of the user's end."""
        self._database.execute(
            "INSERT INTO identity_cutoffs (user_name, not_before) VALUES (?, ?)"
            " ON CONFLICT (user_name) DO UPDATE SET not_before = excluded.not_before",
            (user, self._clock.now().wall),
        )
        self.bearers.revoke_all(user)

    def cutoffs(self) -> dict[str, int]:
        """Before when a user must not have signed in."""
        rows = self._database.query("SELECT user_name, not_before FROM identity_cutoffs")
        return {str(user): int(before or 0) for user, before in rows}

    def forget_missing(
        self, catalog: Catalog, dropped_since: Callable[[int], frozenset[str]] = lambda _: frozenset()
    ) -> frozenset[str]:
        """End and remove the accounts of users that the catalog dropped: one made later by that name is another.

        `dropped_since` tells who was dropped after a version, also where the same change made another of that name.
        """
        known = self.passwords.users() | self.bearers.users()
        seen = self._find_seen()
        dropped = dropped_since(seen) if seen is not None and seen < catalog.version else frozenset[str]()
        # also who has no account here: what the issuer signed for one must not seat the other
        gone = (known - set(catalog.users)) | dropped
        for user in gone:
            self.passwords.remove(user)
            self.end_all(user)
        if seen is None or seen < catalog.version:
            # behind what it is about, so that all is done again where it was interrupted; and never back: who was made
            # since would be taken for the one before
            self._database.execute(
                "INSERT INTO identity_seen (what, version) VALUES (?, ?) ON CONFLICT (what) DO UPDATE"
                " SET version = excluded.version WHERE identity_seen.version < excluded.version",
                (_DROPPED, catalog.version),
            )
        return gone

    def _find_seen(self) -> int | None:
        rows = self._database.query("SELECT version FROM identity_seen WHERE what = ?", (_DROPPED,))
        return next((int(version or 0) for (version,) in rows), None)


def _check_roles(
    principal: Principal, catalog: Catalog, user: str, roles: frozenset[str] | None
) -> Refused | None:
    held = catalog.roles_of(user)
    if user == principal.user and not principal.is_admin:
        held &= principal.roles
    if roles is not None and not roles <= held:
        return Refused("role-not-held", f"`{user}` does not have all of these roles")
    return None

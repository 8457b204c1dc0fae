"""Local accounts: argon2id hashes in the store. A user that does not exist costs what one that does costs."""

from __future__ import annotations

import secrets
import threading
import unicodedata

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from sluicegate.service.identity.clock import Clock
from sluicegate.service.identity.database import Database
from sluicegate.service.identity.principal import Refused
from sluicegate.service.identity.settings import PasswordSettings

LONGEST = 1_024
_HASH_BYTES = 32
_SALT_BYTES = 16


class Passwords:
    """Sets and checks passwords. What was typed is neither kept nor put into messages."""

    def __init__(self, database: Database, clock: Clock, settings: PasswordSettings) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings
        self._hasher = PasswordHasher(
            time_cost=settings.time_cost,
            memory_cost=settings.memory_kib,
            parallelism=settings.parallelism,
            hash_len=_HASH_BYTES,
            salt_len=_SALT_BYTES,
            type=Type.ID,
        )
        self._room = threading.BoundedSemaphore(settings.at_once)
        self._nobody = self._hasher.hash(secrets.token_hex(32))

    def set(self, user: str, password: str) -> Refused | None:
        """Give the user this password, in place of one it had."""
        text = _normalize(password)
        if len(password) < self._settings.least_length:
            return Refused(
                "password-weak", f"a password has at least {self._settings.least_length} characters"
            )
        if text is None:
            return Refused("password-weak", f"a password has at most {LONGEST} bytes of text")
        if password.casefold() == user.casefold():
            return Refused("password-weak", "the password is the user's name")
        with self._room:
            made = self._hasher.hash(text)
        self._database.execute(
            "INSERT INTO identity_accounts (user_name, password_hash, changed_at) VALUES (?, ?, ?)"
            " ON CONFLICT (user_name) DO UPDATE SET password_hash = excluded.password_hash,"
            " changed_at = excluded.changed_at",
            (user, made, self._clock.now().wall),
        )
        return None

    def check(self, user: str, password: str) -> Refused | None:
        """None when it is the user's password. Exactly one hash is computed either way."""
        text = _normalize(password)
        if text is None:
            return wrong_password()
        stored = self._find(user)
        if not self._room.acquire(timeout=self._settings.wait_seconds):
            return Refused("sign-in-busy", "too many sign-ins at once", 1.0)
        try:
            matches = self._matches(stored or self._nobody, text)
            if stored is None or not matches:
                return wrong_password()
            if self._hasher.check_needs_rehash(stored):
                self._replace(user, stored, self._hasher.hash(text))
            return None
        finally:
            self._room.release()

    def remove(self, user: str) -> None:
        self._database.execute("DELETE FROM identity_accounts WHERE user_name = ?", (user,))

    def users(self) -> frozenset[str]:
        """Who has a local account."""
        return frozenset(
            str(name) for (name,) in self._database.query("SELECT user_name FROM identity_accounts")
        )

    def _find(self, user: str) -> str | None:
        # NUL and lone surrogates are no text to every store, and no user's name to any
        if "\0" in user or _encode(user) is None:
            user = ""
        rows = self._database.query(
            "SELECT password_hash FROM identity_accounts WHERE user_name = ?", (user,)
        )
        return str(rows[0][0]) if rows else None

    def _matches(self, stored: str, text: bytes) -> bool:
        try:
            return self._hasher.verify(stored, text)
        except (VerificationError, InvalidHashError):
            return False

    def _replace(self, user: str, before: str, made: str) -> None:
        """Not where somebody set another password meanwhile."""
        sql = "UPDATE identity_accounts SET password_hash = ? WHERE user_name = ? AND password_hash = ?"
        self._database.execute(sql, (made, user, before))


def wrong_password() -> Refused:
    return Refused("sign-in-failed", "the user or the password is wrong")


def _encode(text: str) -> bytes | None:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _normalize(password: str) -> bytes | None:
    """The same password from every keyboard; None for what nobody's password can be."""
    if len(password) > LONGEST:
        return None
    text = _encode(unicodedata.normalize("NFC", password))
    return text if text is not None and 0 < len(text) <= LONGEST else None

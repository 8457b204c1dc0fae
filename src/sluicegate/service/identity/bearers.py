"""Opaque bearer secrets: API tokens (`sg_…`) and sessions (`ss_…`), each an id to look up and 256 random bits.

The text is shown once, when it is made; the store has the SHA-256 of the secret, which nobody can turn back: there is
nothing to guess at in 256 random bits, so no slow hash is needed. Cookies and URLs can carry the text as it is.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from sluicegate.service.identity.clock import Clock, to_micros
from sluicegate.service.identity.database import Database, Row
from sluicegate.service.identity.principal import Refused
from sluicegate.service.identity.scopes import check_scope

_FORM = re.compile(r"(sg|ss)_([0-9a-f]{24})_([A-Za-z0-9_-]{43})")
_COLUMNS = "id, kind, user_name, roles, scopes, label, made_by, created_at, expires_at, revoked_at, last_used"
_USED_EVERY = to_micros(60)
_LONGEST_LABEL = 200


class BearerKind(Enum):
    """The value is the beginning of the text."""

    TOKEN = "sg"  # noqa: S105 -- how tokens begin, not one
    SESSION = "ss"


@dataclass(frozen=True, slots=True)
class Bearer:
    """What is known of a token or session; nothing in it lets anybody in. `roles` is None for all of the user's."""

    id: str
    kind: BearerKind
    user: str
    roles: frozenset[str] | None
    scopes: frozenset[str]
    label: str
    made_by: str
    created_at: int
    expires_at: int
    revoked_at: int | None = None
    last_used: int | None = None


@dataclass(frozen=True, slots=True)
class Issued:
    """A new one with its text, this once."""

    bearer: Bearer
    text: str = field(repr=False)


class Bearers:
    """Issues, finds and revokes them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def issue(
        self,
        kind: BearerKind,
        user: str,
        scopes: Iterable[str],
        seconds: float,
        roles: frozenset[str] | None = None,
        label: str = "",
        made_by: str = "",
    ) -> Issued:
        """Whether it may be issued is for the caller to know."""
        given = frozenset(scopes)
        for scope in given:
            check_scope(scope)
        now = self._clock.now().wall
        label = "".join(char for char in label[:_LONGEST_LABEL] if char.isprintable())
        expires = now + to_micros(seconds)
        bearer = Bearer(secrets.token_hex(12), kind, user, roles, given, label, made_by, now, expires)
        secret = secrets.token_urlsafe(32)
        self._store(bearer, hash_secret(secret))
        return Issued(bearer, f"{kind.value}_{bearer.id}_{secret}")

    def _store(self, bearer: Bearer, hashed: str) -> None:
        roles = None if bearer.roles is None else json.dumps(sorted(bearer.roles))
        self._database.execute(
            f"INSERT INTO identity_bearers ({_COLUMNS}, secret_hash)"  # noqa: S608 -- a constant of ours
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?)",
            (
                bearer.id,
                bearer.kind.value,
                bearer.user,
                roles,
                json.dumps(sorted(bearer.scopes)),
                bearer.label,
                bearer.made_by,
                bearer.created_at,
                bearer.expires_at,
                hashed,
            ),
        )

    def find(self, text: str) -> Bearer | Refused:
        """The one with this text, if it still counts. Only who has the secret is told what became of it."""
        match = _FORM.fullmatch(text)
        if match is None:
            return Refused("token-malformed", "this is no token of this gateway")
        kind, id_, secret = match.groups()
        rows = self._database.query(
            f"SELECT {_COLUMNS}, secret_hash FROM identity_bearers WHERE id = ? AND kind = ?",  # noqa: S608 -- as above
            (id_, kind),
        )
        stored = str(rows[0][-1]) if rows else "0" * 64
        same = hmac.compare_digest(stored, hash_secret(secret))
        if not rows or not same:
            return Refused("token-unknown", "there is no such token")
        return self._check(_read(rows[0]))

    def _check(self, bearer: Bearer) -> Bearer | Refused:
        now = self._clock.now().wall
        if bearer.revoked_at is not None:
            return Refused("token-revoked", "the token was revoked")
        if now >= bearer.expires_at:
            return Refused("token-expired", "the token has expired")
        if bearer.last_used is None or now - bearer.last_used >= _USED_EVERY:
            self._database.execute("UPDATE identity_bearers SET last_used = ? WHERE id = ?", (now, bearer.id))
        return bearer

    def get(self, id_: str) -> Bearer | None:
        rows = self._database.query(
            f"SELECT {_COLUMNS} FROM identity_bearers WHERE id = ?",  # noqa: S608 -- as above
            (id_,),
        )
        return _read(rows[0]) if rows else None

    def list_of(self, user: str) -> tuple[Bearer, ...]:
        """The user's, newest first."""
        rows = self._database.query(
            f"SELECT {_COLUMNS} FROM identity_bearers WHERE user_name = ? ORDER BY created_at DESC, id",  # noqa: S608 -- as above
            (user,),
        )
        return tuple(_read(row) for row in rows)

    def revoke(self, id_: str) -> bool:
        """Whether there was one to revoke."""
        sql = "UPDATE identity_bearers SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL RETURNING id"
        return bool(self._database.execute(sql, (self._clock.now().wall, id_)))

    def revoke_all(self, user: str, kind: BearerKind | None = None) -> int:
        """All of a user, or those of a kind; how many there were."""
        sql = "UPDATE identity_bearers SET revoked_at = ? WHERE user_name = ? AND revoked_at IS NULL"
        params: tuple[str | int, ...] = (self._clock.now().wall, user)
        if kind is not None:
            sql, params = sql + " AND kind = ?", (*params, kind.value)
        return len(self._database.execute(sql + " RETURNING id", params))

    def users(self) -> frozenset[str]:
        """Who has any that were not revoked."""
        sql = "SELECT DISTINCT user_name FROM identity_bearers WHERE revoked_at IS NULL"
        return frozenset(str(name) for (name,) in self._database.query(sql))

    def live_ids(self) -> frozenset[str]:
        """The ids of all that count now."""
        sql = "SELECT id FROM identity_bearers WHERE revoked_at IS NULL AND expires_at > ?"
        return frozenset(str(id_) for (id_,) in self._database.query(sql, (self._clock.now().wall,)))

    def purge(self, kept_seconds: float) -> int:
        """Delete what expired or was revoked longer ago than this."""
        before = self._clock.now().wall - to_micros(kept_seconds)
        sql = "DELETE FROM identity_bearers WHERE expires_at < ? OR revoked_at < ? RETURNING id"
        return len(self._database.execute(sql, (before, before)))


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _read(row: Row) -> Bearer:
    id_, kind, user, roles, scopes, label, made_by, created, expires, revoked, used = row[:11]
    return Bearer(
        str(id_),
        BearerKind(kind),
        str(user),
        None if roles is None else frozenset(json.loads(str(roles))),
        frozenset(json.loads(str(scopes))),
        str(label),
        str(made_by),
        int(created or 0),
        int(expires or 0),
        None if revoked is None else int(revoked),
        None if used is None else int(used),
    )

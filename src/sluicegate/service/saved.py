"""Queries that users keep under names of their own, in the store. A text, nothing more: what it gives is decided when it runs."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.service.identity.database import Database
from sluicegate.service.refusals import refuse

MOST_SAVED = 200
MOST_TEXT = 65_536


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """`changed` is in microseconds."""

    name: str
    query: str
    changed: int


class SavedQueries:
    """By user and name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, user: str) -> tuple[SavedQuery, ...]:
        rows = self._database.query(
            "SELECT name, query, changed_at FROM sluicegate_saved WHERE user_name = ? ORDER BY name", (user,)
        )
        return tuple(SavedQuery(str(name), str(query), int(changed or 0)) for name, query, changed in rows)

    def save(self, user: str, name: str, query: str, now: int) -> None:
        """Put the query under the name, in place of what was there."""
        if len(query) > MOST_TEXT:
            raise refuse("text-too-large", f"a saved query has at most {MOST_TEXT:,} characters")
        known = self._list_names(user)
        if name not in known and len(known) >= MOST_SAVED:
            raise refuse("saved-limit", f"you have {len(known)} saved queries already")
        self._database.execute(
            "INSERT INTO sluicegate_saved (user_name, name, query, changed_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (user_name, name) DO UPDATE SET query = excluded.query, changed_at = excluded.changed_at",
            (user, name, query, now),
        )

    def _list_names(self, user: str) -> set[str]:
        rows = self._database.query("SELECT name FROM sluicegate_saved WHERE user_name = ?", (user,))
        return {str(name) for (name,) in rows}

    def remove(self, user: str, name: str) -> bool:
        """Whether there was one."""
        gone = self._database.execute(
            "DELETE FROM sluicegate_saved WHERE user_name = ? AND name = ? RETURNING name", (user, name)
        )
        return bool(gone)

"""The audit log: events that are only added, chained by hashes, searched and exported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sluicegate.service.store import chain
from sluicegate.service.store.database import EVENTS, Database, Transaction
from sluicegate.service.store.records import (
    EVENT_COLUMNS,
    Clock,
    Event,
    Recorded,
    clean_text,
    read_event,
    utc_now,
    write_time,
)

CHANGED = "change"
"""The action of the events that the store itself records: their subject is the hash of the change."""


@dataclass(frozen=True, slots=True)
class Search:
    """What events must have; all of it. Times as `records.write_time` writes them, both ends included."""

    principal: str | None = None
    action: str | None = None
    since: str | None = None
    until: str | None = None
    version: int | None = None
    text: str | None = None
    """Somewhere in the subject, the decision, the notices, the grants or the request; case does not count."""


class AuditLog:
    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    def record(self, *events: Event) -> list[Recorded]:
        """Add events, all or none; on disk when this returns. Several at once cost about what one costs."""
        with self._database.transaction(EVENTS) as found:
            now = write_time(self._clock())
            return [record_event(found, event, now) for event in events]

    def search(self, wanted: Search = Search(), after: int = 0, limit: int = 1000) -> list[Recorded]:  # noqa: B008 — frozen
        """Events that match, oldest first; `after` a number, to read on."""
        conditions, params = _write_conditions(wanted)
        sql = (
            f"SELECT {EVENT_COLUMNS} FROM {EVENTS} WHERE number > ?{conditions}"  # noqa: S608 — constants; values are bound
            " ORDER BY number LIMIT ?"
        )
        with self._database.transaction() as found:
            return [read_event(row) for row in found.run(sql, after, *params, limit)]

    def export(self, wanted: Search = Search()) -> Iterator[Recorded]:  # noqa: B008 — frozen
        """Every event that matches, in pages: the log may be longer than memory."""
        after = 0
        while page := self.search(wanted, after, chain.PAGE):
            yield from page
            after = page[-1].number


def record_event(found: Transaction, event: Event, time: str) -> Recorded:
    """Add one event in a transaction that holds the table."""
    number, link = chain.last_event(found)
    made = Recorded(number + 1, time, _clean(event), link, "")
    made = replace(made, hash=made.seal())
    chain.add_event(found, made)
    return made


def _clean(event: Event) -> Event:
    return Event(
        clean_text(event.principal),
        clean_text(event.action),
        clean_text(event.subject),
        event.version,
        _clean_all(event.grants),
        clean_text(event.decision),
        _clean_all(event.notices),
        clean_text(event.request),
    )


def _clean_all(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(clean_text, texts))


_EQUAL = (("principal", "principal = ?"), ("action", "action = ?"), ("version", "version = ?"))
_BETWEEN = (("since", "time >= ?"), ("until", "time <= ?"))
_SEARCHED = ("subject", "decision", "notices", "grants", "request")


def _write_conditions(wanted: Search) -> tuple[str, list[object]]:
    """Conditions are ours, word for word; what is looked for is bound."""
    given = [
        (sql, value) for name, sql in (*_EQUAL, *_BETWEEN) if (value := getattr(wanted, name)) is not None
    ]
    parts, params = [sql for sql, _ in given], [value for _, value in given]
    if wanted.text is not None:
        parts.append("(" + " OR ".join(f"lower({name}) LIKE lower(?) ESCAPE '!'" for name in _SEARCHED) + ")")
        params += [f"%{_escape(wanted.text)}%"] * len(_SEARCHED)
    return "".join(f" AND {part}" for part in parts), params


def _escape(text: str) -> str:
    return "".join("!" + char if char in "!%_" else char for char in clean_text(text))

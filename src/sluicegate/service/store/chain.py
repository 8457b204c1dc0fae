"""Entries in the order in which they were added, each checked against the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.service.store.database import CHANGES, EVENTS, Row, Transaction
from sluicegate.service.store.records import (
    BEFORE_ALL,
    ENTRY_COLUMNS,
    EVENT_COLUMNS,
    Entry,
    Recorded,
    RecordError,
    entry_row,
    event_row,
    read_entry,
    read_event,
)

PAGE = 500
# All SQL here is put together from constants of this package; values are bound.
_ENTRIES = f"SELECT {ENTRY_COLUMNS} FROM {CHANGES} WHERE version > ? ORDER BY version LIMIT ?"  # noqa: S608
_EVENTS = f"SELECT {EVENT_COLUMNS} FROM {EVENTS} WHERE number > ? ORDER BY number LIMIT ?"  # noqa: S608
_LAST_ENTRY = f"SELECT version, hash FROM {CHANGES} ORDER BY version DESC LIMIT 1"  # noqa: S608
_LAST_EVENT = f"SELECT number, hash FROM {EVENTS} ORDER BY number DESC LIMIT 1"  # noqa: S608
_HASH_OF = f"SELECT hash FROM {CHANGES} WHERE version = ?"  # noqa: S608
_ADD_ENTRY = f"INSERT INTO {CHANGES} ({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_ADD_EVENT = f"INSERT INTO {EVENTS} ({EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608


def last_entry(found: Transaction) -> tuple[int, str]:
    """Version and hash of the newest; (0, zeros) where there is none."""
    return _last(found.run(_LAST_ENTRY))


def last_event(found: Transaction) -> tuple[int, str]:
    return _last(found.run(_LAST_EVENT))


def _last(rows: list[Row]) -> tuple[int, str]:
    return (int(rows[0][0]), str(rows[0][1])) if rows else (0, BEFORE_ALL)


def hash_of(found: Transaction, version: int) -> str | None:
    """The hash of a version, None where it is not there."""
    if version == 0:
        return BEFORE_ALL
    rows = found.run(_HASH_OF, version)
    return str(rows[0][0]) if rows else None


def add_entry(found: Transaction, entry: Entry) -> None:
    found.run(_ADD_ENTRY, *entry_row(entry))


def add_event(found: Transaction, event: Recorded) -> None:
    found.run(_ADD_EVENT, *event_row(event))


def read_entries(found: Transaction, after: int = 0, previous: str | None = None) -> Iterator[Entry]:
    """Entries after a version, each checked; `previous` is the hash at `after` where it is known."""
    link = previous if previous is not None else hash_of(found, after) or BEFORE_ALL
    number = after
    for row in _page(found, _ENTRIES, after):
        number += 1
        entry = _checked(row, number, link, "change")
        link = entry.hash
        yield entry


def read_events(found: Transaction, after: int = 0, previous: str = BEFORE_ALL) -> Iterator[Recorded]:
    """Every event after a number, each checked."""
    link, number = previous, after
    for row in _page(found, _EVENTS, after):
        number += 1
        event = _checked_event(row, number, link)
        link = event.hash
        yield event


def _page(found: Transaction, sql: str, after: int) -> Iterator[Row]:
    while True:
        rows = found.run(sql, after, PAGE)
        yield from rows
        if len(rows) < PAGE:
            return
        after = rows[-1][0]


def _checked(row: Row, number: int, link: str, what: str) -> Entry:
    try:
        entry = read_entry(row)
    except (RecordError, ValueError, TypeError) as error:
        _refuse(what, number, str(error))
    _check(what, number, entry.version, entry.previous == link, entry.seal() == entry.hash)
    return entry


def _checked_event(row: Row, number: int, link: str) -> Recorded:
    try:
        event = read_event(row)
    except (RecordError, ValueError, TypeError) as error:
        _refuse("event", number, str(error))
    _check("event", number, event.number, event.previous == link, event.seal() == event.hash)
    return event


def _check(what: str, wanted: int, number: int, linked: bool, sealed: bool) -> None:
    if number != wanted:
        _refuse(what, wanted, "it is missing")
    if not sealed:
        _refuse(what, number, "it is not as it was written")
    if not linked:
        _refuse(what, number, "it does not follow from the one before it")


def check_entry(entry: Entry, version: int, link: str) -> None:
    """The same checks on an entry that comes from elsewhere."""
    _check("change", version, entry.version, entry.previous == link, entry.seal() == entry.hash)


def check_event(event: Recorded, number: int, link: str) -> None:
    _check("event", number, event.number, event.previous == link, event.seal() == event.hash)


def _refuse(what: str, number: int, why: str) -> NoReturn:
    help_ = "restore the store from a backup; until then nothing is read from it"
    raise DiagnosticError(
        [Diagnostic("store-damaged", f"{what} {number} of the store is damaged: {why}", help=help_)]
    )

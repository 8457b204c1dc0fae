"""What the store keeps for good, and the hashes that chain it: a change of the catalog, an event of the audit log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sluicegate.errors import SluicegateError

BEFORE_ALL = "0" * 64
ADMINISTRATOR = "administrator"


class RecordError(SluicegateError):
    """A row that is not what was written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One version: statements that were applied together, in order."""

    version: int
    statements: tuple[str, ...]
    author: str | None
    """The user whose rights bounded the change (R19); None for an administrator, whatever users are called."""
    actor: str
    """Who made it, to be shown."""
    time: str
    reason: str
    previous: str
    hash: str

    @property
    def text(self) -> str:
        return "".join(statement + "\n" for statement in self.statements)

    @property
    def shown_author(self) -> str:
        if self.author is not None:
            return self.author
        return ADMINISTRATOR if self.actor == ADMINISTRATOR else f"{ADMINISTRATOR} ({self.actor})"

    def fields(self) -> dict[str, Any]:
        """Everything but the hash, which is over it."""
        return {
            "version": self.version,
            "statements": list(self.statements),
            "author": self.author,
            "actor": self.actor,
            "time": self.time,
            "reason": self.reason,
            "previous": self.previous,
        }

    def to_json(self) -> dict[str, Any]:
        return {**self.fields(), "hash": self.hash}

    def seal(self) -> str:
        return _hash("change", self.fields())


@dataclass(frozen=True, slots=True)
class Event:
    """What happened: never a value of a row, only who asked for what and how it was decided."""

    principal: str
    action: str
    subject: str = ""
    """The handle, the query's text, or whatever else the action was about."""
    version: int = 0
    grants: tuple[str, ...] = ()
    decision: str = ""
    notices: tuple[str, ...] = ()
    request: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its place in the chain."""

    number: int
    time: str
    event: Event
    previous: str
    hash: str

    def fields(self) -> dict[str, Any]:
        event = self.event
        return {
            "number": self.number,
            "time": self.time,
            "principal": event.principal,
            "action": event.action,
            "subject": event.subject,
            "version": event.version,
            "grants": list(event.grants),
            "decision": event.decision,
            "notices": list(event.notices),
            "request": event.request,
            "previous": self.previous,
        }

    def to_json(self) -> dict[str, Any]:
        return {**self.fields(), "hash": self.hash}

    def seal(self) -> str:
        return _hash("event", self.fields())


def _hash(kind: str, fields: dict[str, Any]) -> str:
    """Over JSON with sorted keys in ASCII: the same bytes whatever back end gave the values."""
    text = json.dumps([f"sluicegate {kind} 1", fields], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


ENTRY_COLUMNS = "version, statements, author, actor, time, reason, previous, hash"
EVENT_COLUMNS = (
    "number, time, principal, action, subject, version, grants, decision, notices, request, previous, hash"
)


def entry_row(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.version,
        json.dumps(entry.statements),
        entry.author,
        entry.actor,
        entry.time,
        entry.reason,
        entry.previous,
        entry.hash,
    )


def event_row(found: Recorded) -> tuple[Any, ...]:
    event = found.event
    return (
        found.number,
        found.time,
        event.principal,
        event.action,
        event.subject,
        event.version,
        json.dumps(event.grants),
        event.decision,
        json.dumps(event.notices),
        event.request,
        found.previous,
        found.hash,
    )


def read_entry(row: Sequence[Any]) -> Entry:
    """The entry of a row; `RecordError` where a value is of another kind than it was written as."""
    version, statements, author, *rest = row
    return Entry(_number(version), _texts(statements), _text_or_none(author), *map(_text, rest))


def read_event(row: Sequence[Any]) -> Recorded:
    number, time, principal, action, subject, version, grants, decision, notices, request, *chain = row
    event = Event(
        _text(principal),
        _text(action),
        _text(subject),
        _number(version),
        _texts(grants),
        _text(decision),
        _texts(notices),
        _text(request),
    )
    return Recorded(_number(number), _text(time), event, *map(_text, chain))


def entry_from_json(value: dict[str, Any]) -> Entry:
    """As `Entry.to_json` wrote it."""
    return read_entry(_pick(value, ENTRY_COLUMNS, ("statements",)))


def event_from_json(value: dict[str, Any]) -> Recorded:
    return read_event(_pick(value, EVENT_COLUMNS, ("grants", "notices")))


def _pick(value: object, columns: str, lists: tuple[str, ...]) -> list[Any]:
    names = columns.split(", ")
    if not isinstance(value, dict) or set(value) != set(names):
        raise RecordError("its fields are not those of an entry")
    return [json.dumps(value[name]) if name in lists else value[name] for name in names]


def _number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise RecordError("a number is not a number")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise RecordError("a text is not a text")


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _texts(value: object) -> tuple[str, ...]:
    try:
        found = json.loads(_text(value))
    except (ValueError, RecursionError):
        raise RecordError("a list is not a list") from None
    if not isinstance(found, list):
        raise RecordError("a list is not a list")
    return tuple(map(_text, found))


def clean_text(text: str) -> str:
    """Text that every back end keeps as it is: no NUL, no half of a pair."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")


Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def write_time(moment: datetime) -> str:
    """`2026-01-01T10:50:00.000000Z`: of one length, so that order as text is order in time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

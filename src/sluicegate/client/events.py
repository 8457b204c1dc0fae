"""What a query's results consist of, as the gateway tells it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from sluicegate.client.sse import Message

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows; `cursor` stands behind the last of them."""

    rows: tuple[Row, ...]
    cursor: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Results that can no longer be had; `cursor` stands behind them."""

    cursor: str


@dataclass(frozen=True, slots=True)
class Notice:
    """What the query may have now: `version`, `decision`, `notices`; at the beginning and after each change of it."""

    told: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """No grant is left; the last event."""

    reason: str


@dataclass(frozen=True, slots=True)
class Revoked:
    """The session ended or lost its right, under this version of the catalog; `reason` is a code. Nothing follows."""

    version: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The query was dropped, or its results have ended; the last event."""


Event: TypeAlias = Rows | Gap | Notice | Withdrawn | Revoked | Closed


def read_event(message: Message) -> Event | None:
    """The event of a message; None for a kind that this client does not know. Raises ValueError for a malformed one."""
    match message.kind:
        case "rows":
            return _read_rows(message)
        case "gap":
            return Gap(message.id)
        case "notice":
            return Notice(_read_table(message))
        case "withdrawn":
            return Withdrawn(_read_reason(message) or "no grant is left for the query")
        case "revoked":
            version = _read_table(message).get("version")
            return Revoked(version if isinstance(version, int) else None, _read_reason(message))
        case "closed":
            return Closed()
        case _:
            return None


def _read_rows(message: Message) -> Rows:
    rows = json.loads(message.data)
    if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows) or not message.id:
        raise ValueError("the event `rows` has no array of rows, or no cursor")
    return Rows(tuple(rows), message.id)


def _read_table(message: Message) -> dict[str, Any]:
    found = json.loads(message.data) if message.data else {}
    return found if isinstance(found, dict) else {}


def _read_reason(message: Message) -> str:
    reason = _read_table(message).get("reason")
    return reason if isinstance(reason, str) else ""

"""Messages through pyais: its classes, its field names."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.runtime.ais.reader import Dead, Message

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@cache
def load_pyais() -> tuple[Any, dict[int, Any]]:
    """Its bits of a payload, and its classes by type: it is needed only where something is decoded."""
    try:
        from pyais.bit_vector import bit_vector
        from pyais.messages import MSG_CLASS
    except ImportError as error:
        help_ = "install `sluicegate[ais]`"
        raise DiagnosticError([Diagnostic("ais-decode", "pyais is not installed", help=help_)]) from error
    return bit_vector, dict(MSG_CLASS)


def decode_message(message: Message) -> Any:
    """The message as pyais has it, or the dead letter."""
    bits, classes = load_pyais()
    known = classes.get(message.kind)
    if known is None:
        return Dead(message.line, message.raw, "ais-type", "AIS has no message of this type")
    try:
        return known.from_vector(bits(message.payload, message.fill))
    except Exception:  # noqa: BLE001 — whatever a hostile payload makes it raise, the message is none
        return Dead(message.line, message.raw, "ais-decode", "the message cannot be decoded as its type says")


def write_fields(decoded: Any, time: int | None = None) -> str:
    """One JSON object with pyais' field names; bytes as base64, as pyais writes them, and `time` where there is one."""
    found: dict[str, Any] = decoded.asdict()
    if time is not None:
        found["time"] = write_time(time)
    return json.dumps(found, default=_write_value, allow_nan=False)


def write_time(time: int) -> str:
    """Microseconds since 1970 as a UTC text, to the millisecond, or finer where it is finer."""
    moment = _BEGINNING + timedelta(microseconds=time)
    text = moment.isoformat(timespec="microseconds" if time % 1000 else "milliseconds")
    return text.replace("+00:00", "Z")


def _write_value(value: object) -> object:
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    return str(value)

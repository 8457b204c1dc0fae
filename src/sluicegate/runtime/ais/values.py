"""Values of messages as attributes: what a message calls not available is NULL, numbers have the units of the table.

Each function takes what pyais decoded; a field that a type does not have is NULL too.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sluicegate.expr.nodes import Value

STATUSES = (
    *("under way", "at anchor", "not under command", "restricted manoeuvrability", "constrained by draught"),
    *("moored", "aground", "fishing", "sailing", "reserved", "reserved", "towing astern", "pushing ahead"),
    *("reserved", "distress beacon"),
)
"""Navigational status by number; 15 is not defined."""
_SINGLE_TYPES = {
    30: "fishing",
    31: "towing",
    32: "towing",
    33: "dredger",
    34: "diving",
    35: "military",
    36: "sailing",
    37: "pleasure",
    50: "pilot",
    51: "search and rescue",
    52: "tug",
    53: "port tender",
    54: "anti-pollution",
    55: "law enforcement",
    58: "medical",
    59: "noncombatant",
}
_TYPES_BY_TEN = {
    2: "wing in ground",
    4: "high-speed craft",
    6: "passenger",
    7: "cargo",
    8: "tanker",
    9: "other",
}
_CLASSES = {1: "A", 2: "A", 3: "A", 27: "A", 18: "B", 19: "B", 9: "SAR"}
LEAST_BITS = {
    **dict.fromkeys(range(1, 28), 38),
    **dict.fromkeys((1, 2, 3, 4, 9, 11, 18), 168),
    **dict.fromkeys((7, 10, 13, 15, 16), 70),
    5: 422,
    6: 88,
    8: 56,
    12: 72,
    14: 40,
    19: 301,
    21: 270,
    27: 94,
}
"""Bits up to the last field that an attribute is made of."""
_LEAST_BITS_24 = {0: 160, 1: 162}


def find_least_bits(kind: int, decoded: Any) -> int:
    return _LEAST_BITS_24.get(decoded.partno, 160) if kind == 24 else LEAST_BITS.get(kind, 38)


def name_type(code: int | None) -> str | None:
    """The kind of a ship by its number."""
    if not code or not 0 < code < 100:
        return None
    return _SINGLE_TYPES.get(code) or _TYPES_BY_TEN.get(code // 10, "reserved")


def _field(decoded: Any, name: str) -> Any:
    return getattr(decoded, name, None)


def _between(decoded: Any, name: str, least: float, most: float) -> Value:
    found = _field(decoded, name)
    return found if found is not None and least <= found <= most else None


def _speed(decoded: Any) -> Value:
    most = {9: 1022, 27: 62}.get(decoded.msg_type, 102.2)
    found = _field(decoded, "speed")
    return float(found) if found is not None and 0 <= found <= most else None


def _course(decoded: Any) -> Value:
    found = _field(decoded, "course")
    return float(found) if found is not None and 0 <= found < 360 else None


def _turn(decoded: Any) -> Value:
    """127 to either side says that it turns, not how fast."""
    found = _field(decoded, "turn")
    return None if found is None or abs(found) in (127, 128) else float(found)


def _status(decoded: Any) -> Value:
    found = _field(decoded, "status")
    return None if found is None or not 0 <= found < len(STATUSES) else STATUSES[int(found)]


def _text(decoded: Any, name: str) -> Value:
    return _field(decoded, name) or None


def _code(decoded: Any, name: str, most: int) -> int | None:
    found = _field(decoded, name)
    return int(found) if found and 0 < found <= most else None


def _name(decoded: Any) -> Value:
    """An aid's name may go on where its message does."""
    found = _field(decoded, "shipname") or _field(decoded, "name")
    return found + (_field(decoded, "name_ext") or "") if found else None


def _sum(decoded: Any, first: str, second: str) -> Value:
    return ((_field(decoded, first) or 0) + (_field(decoded, second) or 0)) or None


def _eta(decoded: Any) -> Value:
    month, day, hour, minute = (_field(decoded, name) for name in ("month", "day", "hour", "minute"))
    if not month or not day or month > 12 or hour is None or hour > 23 or minute is None or minute > 59:
        return None
    return f"{month:02d}-{day:02d} {hour:02d}:{minute:02d}"


def _clock(decoded: Any) -> Value:
    try:
        found = datetime(
            decoded.year, decoded.month, decoded.day, decoded.hour, decoded.minute, decoded.second, tzinfo=UTC
        )
    except (ValueError, TypeError):
        return None
    return int(found.timestamp()) * 1_000_000


def _addressee(decoded: Any) -> Value:
    return _field(decoded, "dest_mmsi") or _field(decoded, "mmsi1") or None


READ: dict[str, Callable[[Any], Value]] = {
    "SID": lambda decoded: int(decoded.mmsi),
    "Message": lambda decoded: int(decoded.msg_type),
    "Repeat": lambda decoded: int(decoded.repeat),
    "Long": lambda decoded: _between(decoded, "lon", -180, 180),
    "Lat": lambda decoded: _between(decoded, "lat", -90, 90),
    "Accuracy": lambda decoded: bool(decoded.accuracy),
    "Speed": _speed,
    "Course": _course,
    "Heading": lambda decoded: _between(decoded, "heading", 0, 359),
    "Turn": _turn,
    "Status": _status,
    "Class": lambda decoded: _CLASSES.get(decoded.msg_type),
    "Altitude": lambda decoded: _between(decoded, "alt", 0, 4094),
    "Name": _name,
    "Type": lambda decoded: name_type(_code(decoded, "ship_type", 99)),
    "TypeCode": lambda decoded: _code(decoded, "ship_type", 99) or _code(decoded, "aid_type", 31),
    "Callsign": lambda decoded: _text(decoded, "callsign"),
    "IMO": lambda decoded: _code(decoded, "imo", (1 << 30) - 1),
    "Length": lambda decoded: _sum(decoded, "to_bow", "to_stern"),
    "Beam": lambda decoded: _sum(decoded, "to_port", "to_starboard"),
    "Draught": lambda decoded: _field(decoded, "draught") or None,
    "Destination": lambda decoded: _text(decoded, "destination"),
    "ETA": _eta,
    "Clock": _clock,
    "Text": lambda decoded: _text(decoded, "text"),
    "Addressee": _addressee,
    "OffPosition": lambda decoded: bool(decoded.off_position),
    "Virtual": lambda decoded: bool(decoded.virtual_aid),
    "Area": lambda decoded: _field(decoded, "dac"),
    "Function": lambda decoded: _field(decoded, "fid"),
}
"""How an attribute is read off a decoded message; those that a message's surroundings give are not here."""

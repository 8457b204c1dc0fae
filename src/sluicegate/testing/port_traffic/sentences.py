"""Messages as sentences: encoded by pyais, cut, numbered and checksummed, with a tag block for time and receiver."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sluicegate.runtime.ais.checksums import fold_bytes
from sluicegate.testing.port_traffic.fleet import Ship
from sluicegate.testing.port_traffic.motion import Fix
from sluicegate.testing.port_traffic.waters import Point

_CUT = 56
_NO_HEADING = 511


def encode_fields(kind: int, **fields: Any) -> tuple[str, int]:
    """The payload of a message and its fill bits."""
    from pyais.messages import MSG_CLASS

    return MSG_CLASS[kind].create(msg_type=kind, **fields).encode()


def encode_position(ship: Ship, fix: Fix, now: float) -> tuple[str, int]:
    """A position report of the ship's class."""
    common: dict[str, Any] = {
        "mmsi": ship.mmsi,
        "speed": round(fix.speed, 1),
        "accuracy": True,
        "lon": fix.place[0],
        "lat": fix.place[1],
        "course": round(fix.course, 1) % 360,
        "heading": _NO_HEADING if ship.is_class_b else fix.heading,
        "second": int(now) % 60,
    }
    if ship.is_class_b:
        return encode_fields(18, **common, cs=True, display=False, dsc=True, band=True, msg22=True)
    return encode_fields(1, **common, status=fix.status, turn=0)


def encode_static(ship: Ship, destination: str, eta: datetime) -> list[tuple[str, int]]:
    """Static data: one message of class A, two halves of class B."""
    size = {
        "to_bow": ship.length * 3 // 4,
        "to_stern": ship.length - ship.length * 3 // 4,
        "to_port": ship.beam // 2,
        "to_starboard": ship.beam - ship.beam // 2,
    }
    if ship.is_class_b:
        name = encode_fields(24, mmsi=ship.mmsi, partno=0, shipname=ship.name[:20])
        rest = {"ship_type": ship.code, "vendorid": "SIM", "callsign": ship.callsign, **size}
        return [name, encode_fields(24, mmsi=ship.mmsi, partno=1, **rest)]
    voyage = {"month": eta.month, "day": eta.day, "hour": eta.hour, "minute": eta.minute}
    own = {"imo": ship.imo, "callsign": ship.callsign, "shipname": ship.name[:20], "ship_type": ship.code}
    more = {"draught": ship.draught, "destination": destination, "epfd": 1}
    return [encode_fields(5, mmsi=ship.mmsi, **own, **size, **voyage, **more)]


def encode_station(mmsi: int, place: Point, now: float) -> tuple[str, int]:
    moment = datetime.fromtimestamp(now, UTC)
    clock = {name: getattr(moment, name) for name in ("year", "month", "day", "hour", "minute", "second")}
    return encode_fields(4, mmsi=mmsi, lon=place[0], lat=place[1], accuracy=True, epfd=1, **clock)


def encode_light(mmsi: int, name: str, place: Point) -> tuple[str, int]:
    return encode_fields(
        21, mmsi=mmsi, name=name, lon=place[0], lat=place[1], aid_type=6, accuracy=True, epfd=7
    )


def encode_safety(mmsi: int, text: str) -> tuple[str, int]:
    return encode_fields(14, mmsi=mmsi, text=text)


def write_sentences(
    payload: str, fill: int, channel: str, sequence: int, source: str, now: float, group: int
) -> bytes:
    """The lines of a message as a receiver would log them, each with CR LF."""
    parts = [payload[at : at + _CUT] for at in range(0, len(payload), _CUT)]
    lines = []
    for number, part in enumerate(parts, 1):
        several = len(parts) > 1
        last = fill if number == len(parts) else 0
        body = f"AIVDM,{len(parts)},{number},{sequence if several else ''},{channel},{part},{last}"
        tag = f"s:{source},c:{int(now)}"
        tag = f"g:{number}-{len(parts)}-{group},{tag}" if several else tag
        lines.append(f"\\{tag}*{fold_bytes(tag.encode()):02X}\\!{body}*{fold_bytes(body.encode()):02X}\r\n")
    return "".join(lines).encode("ascii")

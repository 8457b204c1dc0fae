"""Sentences for tests of AIS, made rather than copied: their payloads are pyais', their checksums ours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sluicegate.runtime.ais.checksums import fold_bytes
from sluicegate.runtime.ais.lines import LineCutter
from sluicegate.runtime.ais.reader import Dead, Message, Outcome, Reader

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "ais"
MMSI = 563012345


def seal(body: str) -> str:
    """The sentence with its checksum."""
    return f"{body}*{fold_bytes(body[1:].encode('latin-1')):02X}"


def tag(fields: str) -> str:
    return f"\\{fields}*{fold_bytes(fields.encode()):02X}\\"


def encode(kind: int, **fields: Any) -> tuple[str, int]:
    from pyais.messages import MSG_CLASS

    return MSG_CLASS[kind].create(msg_type=kind, **{"mmsi": MMSI, **fields}).encode()


def sentences(kind: int, sequence: int = 1, talker: str = "AIVDM", cut: int = 30, **fields: Any) -> list[str]:
    """A message in as many parts as its length asks for."""
    payload, fill = encode(kind, **fields)
    parts = [payload[at : at + cut] for at in range(0, len(payload), cut)]
    total = len(parts)
    return [
        seal(
            f"!{talker},{total},{number},{sequence if total > 1 else ''},A,{part},{fill if number == total else 0}"
        )
        for number, part in enumerate(parts, 1)
    ]


def position(**fields: Any) -> str:
    return sentences(
        1, **{"lon": 103.8, "lat": 1.25, "speed": 12.3, "course": 90.0, "heading": 91, **fields}
    )[0]


def read_all(data: bytes, sizes: Iterable[int] = ()) -> tuple[list[Outcome], Reader]:
    """Everything in the bytes, cut into pieces of these sizes, the rest at once."""
    cutter, reader, found, at = LineCutter(), Reader(), [], 0
    for size in (*sizes, len(data)):
        for number, line in cutter.feed(data[at : at + size]):
            found += reader.read(number, line)
        at += size
    for number, line in cutter.end():
        found += reader.read(number, line)
    return [*found, *reader.end()], reader


def messages(found: Iterable[Outcome]) -> list[Message]:
    return [each for each in found if isinstance(each, Message)]


def codes(found: Iterable[Outcome]) -> list[str]:
    return [each.code for each in found if isinstance(each, Dead)]

r"""Lines into sentences, each with what the line says about it, or with the reason why it is none.

A line may have several sentences, junk before them, and the four characters `\r\n` where somebody wrote a log with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from sluicegate.runtime.ais.checksums import fold_bytes, read_checksum
from sluicegate.runtime.ais.lines import LONGEST
from sluicegate.runtime.ais.tags import NO_TAG, Lead, Tag, read_lead, read_tag, read_trailer

MOST_PARTS = 9
LONGEST_PAYLOAD = 200
SIX_BITS = frozenset(b"0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVW`abcdefghijklmnopqrstuvw")

_ALPHABET = bytes(sorted(SIX_BITS))
_WRITTEN_BREAK = re.compile(rb"\\r\\n(?=[!$\\]|$)")
# a tag block, or what begins with a sentence's first character and reaches to the next of either
_PIECE = re.compile(rb"\\([^\\]*)\\|([!$][^!$\\]*)")
_SMALL = {str(number).encode(): number for number in range(10)}


class Sentence(NamedTuple):
    """A sentence with (a part of) a message of AIS, whose checksum holds."""

    raw: bytes
    talker: str
    """The sender's two letters and `VDM`, or `VDO` for what the receiver's own station sent."""
    total: int
    number: int
    sequence: str
    channel: str
    payload: bytes
    fill: int
    checksum: int
    tag: Tag


class Bad(NamedTuple):
    """A piece of a line that is a dead letter: its code and the reason, never with a value."""

    raw: bytes
    code: str
    reason: str


Found: TypeAlias = Sentence | Lead | Tag | Bad
"""A bare tag is one that stands alone on its line, for the next."""


def read_line(line: bytes) -> list[Found]:
    """Everything in a line; nothing in one that is blank."""
    if len(line) > LONGEST:
        return [Bad(line, "ais-long", f"the line has more than {LONGEST:,} bytes")]
    if (plain := _read_plain(line)) is not None:
        return [plain]
    found: list[Found] = []
    for part in _WRITTEN_BREAK.split(line):
        found += _read_pieces(part.strip())
    return found


def _read_plain(line: bytes) -> Found | None:
    """Nearly all lines: one sentence, with a tag block that holds, or none."""
    if line[:1] == b"!":
        tag, text = NO_TAG, line
    else:
        parts = line.split(b"\\")
        if len(parts) != 3 or parts[0] or parts[2][:1] != b"!":
            return None
        found = read_tag(parts[1])
        if found is None:
            return None
        tag, text = found, parts[2]
    if b"\\" in text or b"$" in text or text.count(b"!") != 1:
        return None
    return _read_piece(text, tag)


def _read_pieces(text: bytes) -> Iterator[Found]:
    if not text:
        return
    tag: Tag | None = None
    any_piece = False
    for piece in _PIECE.finditer(text):
        any_piece = True
        if piece[1] is not None:
            tag = read_tag(piece[1])
            if tag is None:
                yield Bad(piece[0], "ais-tag", "the tag block fails its checksum, or has none")
        else:
            yield _read_piece(piece[2], tag or NO_TAG)
            tag = None
    if tag is not None:
        yield tag
    if not any_piece:
        yield Bad(text, "ais-junk", "the line has no sentence")


def _read_piece(text: bytes, tag: Tag) -> Sentence | Lead | Bad:
    """What begins with `!` or `$`, with the fields behind its checksum."""
    body, star, rest = text.partition(b"*")
    written = read_checksum(rest[:2])
    if not star or written is None:
        return Bad(text, "ais-checksum", "the sentence has no checksum")
    if written != fold_bytes(body[1:]):
        return Bad(text, "ais-checksum", "the checksum is not that of the sentence")
    fields = body.split(b",")
    kind = fields[0][3:].upper()
    if text[:1] == b"$" and fields[0] == b"$PGHP":
        return read_lead(body) or Bad(text, "ais-pghp", "the time of the `$PGHP` line cannot be read")
    if text[:1] != b"!" or kind not in (b"VDM", b"VDO"):
        return Bad(text, "ais-other", "the sentence carries no message of AIS")
    raw = text[: len(body) + 3]
    trailer = rest[2:].strip()
    return _read_fields(raw, fields, written, tag.behind(read_trailer(trailer)) if trailer else tag)


def _read_fields(raw: bytes, fields: list[bytes], checksum: int, tag: Tag) -> Sentence | Bad:
    if len(fields) != 7:
        return Bad(raw, "ais-fields", "the sentence has not seven fields")
    total, number, fill = _SMALL.get(fields[1]), _SMALL.get(fields[2]), _SMALL.get(fields[6])
    if not total or not number or number > total or fill is None or fill > 5:
        return Bad(raw, "ais-fields", "a number of the sentence is out of range")
    sequence, channel, payload = fields[3:6]
    if len(sequence) > 2 or len(channel) > 2 or not raw.isascii():
        return Bad(raw, "ais-fields", "the sentence's sequence or channel is none")
    if not payload or len(payload) > LONGEST_PAYLOAD or payload.translate(None, _ALPHABET):
        return Bad(raw, "ais-payload", "the payload is empty, too long, or not in the alphabet of six bits")
    talker = fields[0][1:].decode("ascii").upper()
    return Sentence(
        raw,
        talker,
        total,
        number,
        sequence.decode("ascii"),
        channel.decode("ascii"),
        payload,
        fill,
        checksum,
        tag,
    )

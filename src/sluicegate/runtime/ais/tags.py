r"""What stands around a sentence and says when it came, and from where.

\s:2573535,c:1671533231*08\!AIVDM,…        a tag block: source, time, group
$PGHP,1,2010,6,11,11,46,11,390,…,2B*5B     a line before it: time, site, and the checksum of what follows
…*28,d-109,S2105,r003669946,1325394060     fields behind it: the station, and the logger's time
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from sluicegate.runtime.ais.checksums import fold_bytes, read_checksum

_EPOCH = re.compile(r"[0-9]{9,13}(?:\.[0-9]{0,9})?")
_GROUP = re.compile(r"([1-9])-([1-9])-([0-9]{1,12})")
# as IEC 61162-450 drafts wrote it
_OLD_GROUP = re.compile(r"([1-9])G([1-9])")
_STATION = re.compile(rb"[rRbBD][A-Za-z0-9_-]+")
_LONGEST_SOURCE = 32
_MILLISECONDS_FROM = 100_000_000_000
_LATEST = 253_402_300_799 * 1_000_000


class Tag(NamedTuple):
    """Where a sentence came from and when (microseconds since 1970), as far as it is told; and its place in a group.

    Here and in what follows values are named tuples: one is made for each sentence, three times as fast as a dataclass.
    """

    source: str | None = None
    time: int | None = None
    group: tuple[int, int, str] | None = None

    def behind(self, other: Tag) -> Tag:
        """What this says, and where it says nothing, what the other does."""
        return Tag(
            self.source if self.source is not None else other.source,
            self.time if self.time is not None else other.time,
            self.group or other.group,
        )


NO_TAG = Tag()


@lru_cache(maxsize=1024)
def read_tag(text: bytes) -> Tag | None:
    """A tag block, without its backslashes; None where its checksum does not hold. Fields that are not known do no harm."""
    body, star, written = text.rpartition(b"*")
    if not star or read_checksum(written) != fold_bytes(body) or not body.isascii():
        return None
    source, time, group = None, None, None
    for field in body.decode("ascii").split(","):
        code, _, value = field.partition(":")
        if code == "s" and value:
            source = value[:_LONGEST_SOURCE]
        elif code == "c":
            time = read_epoch(value)
        elif code == "g" and (found := _GROUP.fullmatch(value)):
            group = int(found[1]), int(found[2]), found[3]
        elif found := _OLD_GROUP.fullmatch(code):
            group = int(found[1]), int(found[2]), value[:_LONGEST_SOURCE]
    return Tag(source, time, group)


def read_epoch(text: str) -> int | None:
    """Seconds or milliseconds since 1970, in microseconds."""
    if not _EPOCH.fullmatch(text):
        return None
    whole, _, part = text.partition(".")
    if int(whole) >= _MILLISECONDS_FROM:
        return int(whole) * 1000
    time = int(whole) * 1_000_000 + int(part[:6].ljust(6, "0"))
    return time if time <= _LATEST else None


def read_trailer(text: bytes) -> Tag:
    """The fields behind a checksum. Of several times the first is taken: it follows the receiver's own clock."""
    source, time = None, None
    for field in text.split(b","):
        if time is None and field[:1].isdigit() and field.isascii():
            time = read_epoch(field.decode("ascii"))
        elif source is None and time is None and _STATION.fullmatch(field):
            source = field[:_LONGEST_SOURCE].decode("ascii")
    return Tag(source, time)


class Lead(NamedTuple):
    """A `$PGHP` line: the tag of what follows, and its checksum where it says one."""

    tag: Tag
    checksum: int | None


def read_lead(body: bytes) -> Lead | None:
    """The text of a `$PGHP` line between `$` and `*`, whose checksum holds; None where its time is none."""
    fields = body.decode("ascii", "replace").split(",")
    if len(fields) < 9 or not all(each.isascii() and each.isdigit() for each in fields[2:9]):
        return None
    try:
        year, month, day, hour, minute, second, milli = map(int, fields[2:9])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    if milli > 999:
        return None
    time = int(moment.timestamp()) * 1_000_000 + milli * 1000
    source = next((each for each in (*fields[11:12], *fields[9:10]) if each), None)
    told = read_checksum(fields[13].encode()) if len(fields) > 13 else None
    # a station writes 00 for what it sends itself
    return Lead(Tag(source and source[:_LONGEST_SOURCE], time), told or None)

"""Where queries stand in the source logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.units import Unit


@dataclass(frozen=True, slots=True)
class Mark:
    """The number of the first batch not read, and the watermark then, in microseconds."""

    end: int
    watermark: int | None


Place: TypeAlias = tuple[tuple[str, Mark], ...]
"""A mark for each stream, by name, sorted."""


def find_place(logs: Mapping[str, SourceLog], streams: Iterable[str]) -> Place:
    """The ends of the logs. The watermark is read first: rows that come in between may only be more."""
    found = []
    for name in sorted(set(streams)):
        watermark = logs[name].watermark
        found.append((name, Mark(logs[name].end, watermark)))
    return tuple(found)


def extend_place(place: Place, now: Place) -> Place:
    """The place, with the streams that a new version reads besides, from now on, and without those that it does not."""
    known = dict(place)
    return tuple((name, known.get(name, mark)) for name, mark in now)


def find_later(one: Place, other: Place | None) -> Place:
    """The one that is further on."""
    if other is None or dict(one).keys() != dict(other).keys():
        return one
    ends = [(mark.end, dict(other)[name].end) for name, mark in one]
    return one if all(mine >= theirs for mine, theirs in ends) else other


def find_time(unit: Unit, place: Place) -> int | None:
    """Results below this event time are final; None: none yet. A cadence holds them back to its next multiple (D5)."""
    marks = dict(place)
    found = [marks[name].watermark for name in unit.timed]
    if not found or None in found:
        return None
    least = min(each for each in found if each is not None)
    return least // unit.cadence * unit.cadence if unit.cadence else least


def place_json(place: Place) -> dict[str, Any]:
    return {name: [mark.end, mark.watermark] for name, mark in place}


def read_place(found: Mapping[str, Any]) -> Place:
    return tuple(sorted((name, Mark(int(end), watermark)) for name, (end, watermark) in found.items()))


def advance_place(now: Place, before: Place, after: Place) -> Place:
    """The place, taken on from where it still is as before; a stream that it has come to by itself stays there."""
    old, new = dict(before), dict(after)
    return tuple((name, new[name] if name in new and old.get(name) == mark else mark) for name, mark in now)

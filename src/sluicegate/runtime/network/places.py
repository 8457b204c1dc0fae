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

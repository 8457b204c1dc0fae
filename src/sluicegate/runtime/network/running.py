"""Running queries, on record: what survives a restart."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.authorize import Allowed
from sluicegate.runtime.network.places import Place, place_json, read_place
from sluicegate.runtime.network.seats import Seat, read_seat, seat_json


@dataclass(frozen=True, slots=True)
class Running:
    """A query that runs. `start`: it reads no tuple before it; `since`: its version began there (R11)."""

    handle: str
    number: int
    seat: Seat
    query: str
    version: int
    allowed: Allowed
    start: int | None
    since: int | None
    place: Place
    paused: bool = False
    switch: str | None = None
    """What query-level punctuations call it: it gives only what lies within its switches' sessions (R18)."""

    @property
    def user(self) -> str:
        return self.seat.user


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is known of a query from before a restart."""

    handle: str
    seat: Seat
    query: str
    version: int
    mark: str
    start: int | None
    since: int | None
    place: Place
    paused: bool
    logs: dict[str, str]
    """The names of the logs that the place is in: those of another declaration have other names."""
    switch: str | None = None

    def take_up(
        self, number: int, version: int, allowed: Allowed, since: int | None, place: Place
    ) -> Running:
        """The query, as it goes on after the restart."""
        who = (self.handle, number, self.seat, self.query)
        return Running(*who, version, allowed, self.start, since, place, self.paused, self.switch)


class Records:
    """A file for each running query, replaced whole."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder

    def save(self, running: Running, logs: Mapping[str, SourceLog]) -> None:
        content = {
            "handle": running.handle,
            "seat": seat_json(running.seat),
            "query": running.query,
            "version": running.version,
            "mark": running.allowed.mark,
            "start": running.start,
            "since": running.since,
            "place": place_json(running.place),
            "paused": running.paused,
            "switch": running.switch,
            "logs": {name: logs[name].folder.name for name, _ in running.place},
        }
        self._write(self._path(running.handle), content)

    def remove(self, handle: str) -> None:
        self._path(handle).unlink(missing_ok=True)

    def load(self) -> Iterator[Recorded]:
        for path in sorted(self._folder.glob("*.json")):
            found = json.loads(path.read_text(encoding="utf-8"))
            yield Recorded(**{**found, "seat": read_seat(found["seat"]), "place": read_place(found["place"])})

    def _path(self, handle: str) -> Path:
        return self._folder / f"{handle.encode().hex()}.json"

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        temporary = path.with_suffix(".tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

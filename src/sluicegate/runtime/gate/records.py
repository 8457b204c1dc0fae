"""A handle in memory: which ticks have rows of it, under which version, and what a reader gets next."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition
from typing import TypeAlias

from sluicegate.runtime.gate.cursors import START, Position
from sluicegate.runtime.gate.events import Closed, Withdrawn
from sluicegate.runtime.gate.layout import Layout

OPEN, WITHDRAWN, CLOSED = "open", "withdrawn", "closed"


@dataclass(frozen=True, slots=True)
class Take:
    """Rows that may be handed over, from this one on."""

    tick: int
    row: int
    is_reviewed: bool


@dataclass(frozen=True, slots=True)
class Skip:
    """Rows that can no longer be had, and where it goes on."""

    first: int
    last: int
    after: Position


Step: TypeAlias = Take | Skip


@dataclass(slots=True)
class Record:
    """Read and changed under the gate's lock. `versions` goes with `ticks`; `version` is None until opened after a start."""

    number: int
    handle: str
    changed: Condition
    version: int | None = None
    state: str = OPEN
    reason: str = ""
    ack: Position = START
    dropped: Position = START
    lost: int = -1
    layouts: dict[int, Layout] = field(default_factory=dict)
    ticks: array[int] = field(default_factory=lambda: array("q"))
    versions: array[int] = field(default_factory=lambda: array("q"))
    held: array[int] = field(default_factory=lambda: array("q"))
    """Ticks whose files have rows of it, also where a review left none."""
    reviewed: set[int] = field(default_factory=set)
    may_pend: bool = False
    delivering: int = 0
    is_busy: bool = False
    """Whether a change came while something was being delivered, and its end has not been seen."""
    changes: int = 0
    told: Callable[[str], None] = lambda _: None

    @property
    def is_running(self) -> bool:
        return self.state == OPEN and self.version is not None

    @property
    def settled(self) -> Position:
        """Before this nobody waits for rows of an older version."""
        return max(self.ack, self.dropped)

    def tell(self) -> None:
        """Wake those who wait for something of this handle."""
        self.changes += 1
        self.changed.notify_all()
        self.told(self.handle)

    def end_event(self) -> Withdrawn | Closed:
        match self.state:
            case "withdrawn":
                return Withdrawn(self.reason)
            case "closed":
                return Closed()
            case _:
                raise TypeError(f"a handle that is {self.state} has not ended")

    def find_step(self, at: Position) -> Step | None:
        """What a reader at this place gets; None: nothing yet, or held back until it is reviewed."""
        if at.tick <= self.lost:
            return Skip(at.tick, self.lost, Position(self.lost + 1, 0))
        first = bisect_left(self.ticks, at.tick)
        last = first
        while last < len(self.ticks) and self._is_forgone(last):
            last += 1
        if last > first:
            end = self.ticks[last - 1]
            return Skip(self.ticks[first], end, Position(end + 1, 0))
        if first == len(self.ticks) or self.versions[first] != self.version:
            return None
        tick = self.ticks[first]
        return Take(tick, at.row if tick == at.tick else 0, tick in self.reviewed)

    def _is_forgone(self, place: int) -> bool:
        """Of an older version, and settled: nobody will review it."""
        behind = Position(self.ticks[place] + 1, 0) <= self.settled
        return behind and self.versions[place] != self.version

    def find_pending(self) -> list[tuple[Take, int]]:
        """Unsettled rows of older versions, each with its version."""
        # asked in every tick: only a change of version makes rows old, and most handles have none
        found = [self.find_pending_at(tick) for tick in self.ticks] if self.may_pend else []
        pending = [each for each in found if each is not None]
        self.may_pend = bool(pending)
        return pending

    def find_pending_at(self, tick: int) -> tuple[Take, int] | None:
        place, settled = self.find_place(tick), self.settled
        if place is None or self.versions[place] == self.version or Position(tick + 1, 0) <= settled:
            return None
        row = settled.row if tick == settled.tick else 0
        return Take(tick, row, tick in self.reviewed), self.versions[place]

    def find_place(self, tick: int) -> int | None:
        place = bisect_left(self.ticks, tick)
        return place if place < len(self.ticks) and self.ticks[place] == tick else None

    def enter(self, tick: int, version: int) -> None:
        self.ticks.append(tick)
        self.held.append(tick)
        self.versions.append(version)

    def enter_review(self, tick: int, version: int, is_empty: bool) -> None:
        """The tick's rows were reviewed under this version; without any left it is as if there had been none."""
        place = self.find_place(tick)
        if place is None:
            return
        if is_empty:
            del self.ticks[place], self.versions[place]
            self.reviewed.discard(tick)
        else:
            self.versions[place] = version
            self.reviewed.add(tick)

    def cut(self, tick: int) -> bool:
        """Forget what lies at or before the tick; whether there was anything."""
        place = bisect_right(self.ticks, tick)
        del self.held[: bisect_right(self.held, tick)]
        if place == 0:
            return False
        self.lost = self.ticks[place - 1]
        del self.ticks[:place], self.versions[:place]
        self.reviewed = {each for each in self.reviewed if each > tick}
        return True

    def find_end(self) -> Position:
        """Behind the handle's own last row: how far others have come is not told."""
        last = self.ticks[-1] if self.ticks else self.lost
        return max(Position(last + 1, 0), self.settled)

    def find_oldest(self) -> int | None:
        """The oldest version that still matters."""
        known = [*self.versions] if self.version is None else [*self.versions, self.version]
        return min(known, default=None)

    def forget_layouts(self) -> None:
        oldest = self.find_oldest()
        if oldest is not None:
            self.layouts = {version: each for version, each in self.layouts.items() if version >= oldest}

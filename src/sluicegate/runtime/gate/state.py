"""What all parts of the gate share: the lock, the handles, the log and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from threading import Condition, RLock
from typing import Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.runtime.gate.cursors import START, Position, read_cursor, refuse_cursor, write_cursor
from sluicegate.runtime.gate.events import Committed, Cursor
from sluicegate.runtime.gate.files import TickFile
from sluicegate.runtime.gate.records import OPEN, Record
from sluicegate.runtime.gate.registry import Registry
from sluicegate.runtime.gate.store import Store


class State:
    """Loaded from the folder; everything but `store`'s reading happens under `lock`."""

    def __init__(self, folder: Path, most_bytes: int, most_ticks: int) -> None:
        self.lock = RLock()
        self.is_shut = False
        self.listeners: list[Callable[[str], None]] = []
        self.store = Store(folder)
        self.registry = Registry(folder / "handles.sqlite")
        self.last: tuple[Committed, dict[str, Any]] | None = None
        self.highest = 0
        self._most_bytes, self._most_ticks = most_bytes, most_ticks
        self._sizes: dict[int, int] = {}
        self._unclean: dict[int, set[int]] = {}
        """By tick, the handles that have ended and whose rows are in its file."""
        self._bytes = 0
        self._is_last_empty = False
        self.handles: dict[str, Record] = {}
        self.numbers: dict[int, Record] = {}
        try:
            with self.lock:
                self._load_records()
                self._load_ticks()
                self._load_reviews()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the folder go."""
        self.is_shut = True
        self.registry.close()
        self.store.close()

    def _load_records(self) -> None:
        for each in self.registry.load():
            record = self.add_record(each.number, each.handle)
            record.state, record.reason, record.lost = each.state, each.reason, each.lost
            record.ack, record.dropped = each.ack, each.dropped
        for number, version, layout in self.registry.load_layouts():
            self.numbers[number].layouts[version] = layout

    def _load_ticks(self) -> None:
        cut = self.registry.cut
        for tick in self.store.list_ticks():
            if tick <= cut:
                # a cut that the process did not live to finish
                self.store.remove_tick(tick)
            else:
                self.enter(self.store.open_tick(tick))

    def _load_reviews(self) -> None:
        for number, tick in self.store.list_reviews():
            record = self.numbers.get(number)
            if record is None or record.find_place(tick) is None:
                self.store.remove_review(number, tick)
                continue
            kept, version = self.store.read_review(number, tick)
            record.enter_review(tick, version, is_empty=not kept.table.num_rows and not kept.start)

    def add_record(self, number: int, handle: str) -> Record:
        old = self.handles.get(handle)
        if old is not None:
            self.note_ended(old)
            del self.numbers[old.number]
        record = Record(number, handle, Condition(self.lock), told=self._tell)
        self.handles[handle] = self.numbers[number] = record
        self.highest = max(self.highest, number)
        return record

    def _tell(self, handle: str) -> None:
        for each in self.listeners:
            each(handle)

    def find_record(self, handle: str) -> Record:
        found = self.handles.get(handle)
        if found is None or (found.state == "open" and found.version is None):
            raise DiagnosticError([Diagnostic("gate-handle", f"no running query has the handle `{handle}`")])
        return found

    def read_cursor(self, record: Record, cursor: Cursor | None) -> Position:
        if cursor is None:
            return START
        at = read_cursor(self.registry.key, record.number, cursor)
        end = self.last[0].tick + 1 if self.last is not None else 0
        if at > Position(end, 0):
            raise refuse_cursor()
        return at

    def write_cursor(self, record: Record, at: Position) -> Cursor:
        return write_cursor(self.registry.key, record.number, at)

    def enter(self, tick: TickFile) -> None:
        """A complete tick becomes part of the log; its handles' readers are woken."""
        if self.last is not None and self._is_last_empty:
            # it held nothing but positions, and newer ones are here
            self._remove(self.last[0].tick)
        number = tick.committed.tick
        self.last = tick.committed, tick.positions
        self._is_last_empty = not tick.index
        self._sizes[number] = tick.size
        self._bytes += tick.size
        for handle, rows in tick.index.items():
            # a number that no handle has any more, or was lost with its registration, is never given out again
            self.highest = max(self.highest, handle)
            record = self.numbers.get(handle)
            if record is None or record.state != OPEN:
                self._unclean.setdefault(number, set()).add(handle)
            if record is not None:
                record.enter(number, rows.version)
                record.tell()

    def add_bytes(self, tick: int, size: int) -> None:
        """A review of one of the tick's handles lies beside it."""
        self._sizes[tick] += size
        self._bytes += size

    def note_ended(self, record: Record) -> None:
        """Nobody will be handed its rows any more."""
        for tick in record.held:
            if tick in self._sizes:
                self._unclean.setdefault(tick, set()).add(record.number)

    def take_unclean(self, most: int) -> list[tuple[int, frozenset[int]]]:
        """Ticks that hold rows of handles that have ended, and those handles' numbers; each is told once."""
        ticks = list(islice(self._unclean, most))
        return [(tick, frozenset(self._unclean.pop(tick))) for tick in ticks]

    def put_back_unclean(self, due: Iterable[tuple[int, frozenset[int]]]) -> None:
        """Of ticks that are still there, what was told and could not be done."""
        for tick, ended in due:
            if self.has_tick(tick):
                self._unclean.setdefault(tick, set()).update(ended)

    def replace_tick(self, made: TickFile, ended: frozenset[int]) -> None:
        """It was written anew, without the rows of these."""
        tick = made.committed.tick
        self.store.remove_open(tick)
        self._bytes += made.size - self._sizes[tick]
        self._sizes[tick] = made.size
        for number in ended:
            self.store.remove_review(number, tick)

    def has_tick(self, tick: int) -> bool:
        return tick in self._sizes

    def trim(self) -> None:
        """Cut the oldest ticks off, an eighth at once, whoever still reads there; the last one stays, for its positions."""
        if len(self._sizes) <= self._most_ticks and self._bytes <= self._most_bytes:
            return
        cut = list(self._find_cut())
        if not cut:
            return
        records = [record for record in self.numbers.values() if record.cut(cut[-1])]
        oldest = [(each.find_oldest(), each.number) for each in records]
        self.registry.set_cut(
            cut[-1],
            [(each.lost, each.number) for each in records],
            [(version, number) for version, number in oldest if version is not None],
        )
        for record in records:
            record.forget_layouts()
            record.tell()
        for number, tick in self.store.list_reviews():
            if tick <= cut[-1]:
                self.store.remove_review(number, tick)
        for tick in cut:
            self._remove(tick)

    def _find_cut(self) -> Iterator[int]:
        ticks, size = len(self._sizes), self._bytes
        ticks_goal = self._most_ticks - self._most_ticks // 8
        bytes_goal = self._most_bytes - self._most_bytes // 8
        for tick in list(self._sizes)[:-1]:
            if ticks <= ticks_goal and size <= bytes_goal:
                return
            yield tick
            ticks, size = ticks - 1, size - self._sizes[tick]

    def _remove(self, tick: int) -> None:
        self._bytes -= self._sizes.pop(tick)
        self._unclean.pop(tick, None)
        self.store.remove_tick(tick)

"""R10 under load: readers, a committer and one who changes versions, all at once; every row tells its version."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa

from sluicegate.runtime.gate.events import Event, Part, Rows
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.layout import Field, Layout

SECONDS = 2.0
MADE = Layout((Field("id", 0), Field("made", 1)))
HANDLES = ("a", "b")


class Race:
    """`returned` is the last version whose change had returned: what a look that begins later may show."""

    def __init__(self, folder: Path) -> None:
        self.gate = Gate(folder, most_ticks=16)
        self.numbers = {name: self.gate.open(name, 1, MADE) for name in HANDLES}
        self.current = dict.fromkeys(HANDLES, 1)
        self.returned = dict.fromkeys(HANDLES, 1)
        self.over = threading.Event()
        self.faults: list[str] = []
        self.served = 0
        self.dropped = 0
        self.reviewed = 0

    def commit(self) -> None:
        tick, ids = 0, 0
        while not self.over.is_set():
            versions = {self.numbers[name]: self.current[name] for name in HANDLES}
            rows = [(number, ids + at, version) for at in range(20) for number, version in versions.items()]
            ids += 20
            columns = [list(each) for each in zip(*rows, strict=True)]
            table = pa.table(dict(zip(("q", "o0", "o1"), columns, strict=True)))
            self.dropped += len(self.gate.commit(tick, [Part(table, versions)], {}).stale)
            tick += 1

    def change(self) -> None:
        version = 1
        while not self.over.is_set():
            version += 1
            for name in HANDLES:
                self.current[name] = version
                self.gate.change(name, version, MADE)
                self.returned[name] = version
            # nothing of before is allowed now
            for name in HANDLES:
                for each in self.gate.pending(name):
                    none = pa.table({"o0": pa.array([], pa.int64()), "o1": pa.array([], pa.int64())})
                    self.reviewed += self.gate.review(name, each.tick, version, none)
            time.sleep(0.01)

    def read(self, name: str) -> None:
        cursor, last = None, -1
        while not self.over.is_set():
            floor = self.returned[name]
            events, cursor = self.gate.read(name, cursor, most_rows=7, wait=0.05)
            last = self.check(name, events, floor, last)

    def follow(self, name: str) -> None:
        events, last = self.gate.follow(name, None, most_rows=7), -1
        while not self.over.is_set():
            floor = self.returned[name]
            event = next(events, None)
            if event is None:
                return
            last = self.check(name, [event], floor, last)

    def deliver(self, name: str) -> None:
        """Stricter: the version that has returned is looked at while the rows are being taken."""
        cursor, seen = None, [-1]

        def take(events: list[Event]) -> None:
            seen[0] = self.check(name, events, self.returned[name], seen[0])
            time.sleep(0.001)
            self.check(name, events, self.returned[name], -1)

        while not self.over.is_set():
            cursor = self.gate.deliver(name, cursor, take, most_rows=7, wait=0.05)

    def check(self, name: str, events: list[Event], floor: int, last: int) -> int:
        for row in [row for event in events if isinstance(event, Rows) for row in event.rows]:
            if row["made"] < floor:
                self.faults.append(f"{name}: version {row['made']} after {floor}")
            if -1 < row["id"] <= last:
                self.faults.append(f"{name}: row {row['id']} after {last}")
            last = row["id"] if last >= -1 else last
            self.served += 1
        return last


def test_nothing_of_an_old_version_is_handed_over_after_the_change_returned(tmp_path: Path) -> None:
    race = Race(tmp_path)
    calls = [
        (race.commit,),
        (race.change,),
        (race.read, "a"),
        (race.follow, "a"),
        (race.read, "b"),
        (race.deliver, "b"),
    ]
    broken: list[BaseException] = []

    def guard(call: tuple) -> None:
        try:
            call[0](*call[1:])
        except Exception as error:  # noqa: BLE001 — told by the test, whatever it is
            broken.append(error)
            race.over.set()

    threads = [threading.Thread(target=guard, args=(call,)) for call in calls]
    for each in threads:
        each.start()
    race.over.wait(SECONDS)
    race.over.set()
    for each in threads[:3] + threads[4:]:
        each.join(10)
    race.gate.shut()
    threads[3].join(10)
    assert not broken
    assert not any(each.is_alive() for each in threads)
    assert race.faults == []
    print(
        f"\n{race.returned['a']} versions, {race.served} rows served, {race.dropped} times dropped, {race.reviewed} reviews"
    )
    assert race.returned["a"] > 3
    assert race.served > 20
    assert race.reviewed > 0

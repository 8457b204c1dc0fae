"""The gate against a model that keeps rows in lists: each allowed row once, nothing denied, no silence about what is lost."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sluicegate.runtime.gate.events import Closed, Gap, Rows, Withdrawn
from sluicegate.runtime.gate.gate import Gate
from unit.gate_world import PAIR, make_allowed, make_part

HANDLES = ["a", "b"]
handles = st.sampled_from(HANDLES)


def _allows(version: int, row: int) -> bool:
    """Each version hides another third of all rows."""
    return row % 3 != version % 3


@dataclass
class ModelRow:
    id: int
    place: tuple[int, int]
    version: int


@dataclass
class ModelHandle:
    number: int
    version: int
    rows: list[ModelRow] = field(default_factory=list)
    settled: tuple[int, int] = (0, 0)
    reason: str | None = None
    was_settled: bool = False


@dataclass
class Reader:
    handle: str
    cursor: str | None = None
    at: tuple[int, int] = (0, 0)
    seen: list[int] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    last_gap: int = -1


class GateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        # the process crashes here, not the machine
        self.sync = patch("os.fsync")
        self.sync.start()
        self.folder = self.home / "0"
        self.starts = 0
        self.tick = -1
        self.ids = 0
        self.inputs: dict[tuple[str, int], list[int]] = {}
        self.most = 100

    @initialize(most=st.sampled_from([3, 5, 100]))
    def begin(self, most: int) -> None:
        self.most = most
        self.gate = Gate(self.folder, most_ticks=most)
        self.model = {name: ModelHandle(self.gate.open(name, 1, PAIR), 1) for name in HANDLES}
        self.readers = [Reader(name) for name in HANDLES for _ in range(2)]

    def teardown(self) -> None:
        if hasattr(self, "gate"):
            self.gate.shut()
        self.sync.stop()
        shutil.rmtree(self.home)

    def _running(self) -> list[str]:
        return [name for name, each in self.model.items() if each.reason is None]

    @rule(
        counts=st.tuples(st.integers(0, 4), st.integers(0, 4)),
        late=st.just(set()) | st.sets(handles),
        step=st.integers(1, 3),
    )
    def commit(self, counts: tuple[int, int], late: set[str], step: int) -> None:
        """`late` handles were evaluated under the version before."""
        self.tick += step
        rows, versions = {}, {}
        for name, count in zip(HANDLES, counts, strict=True):
            model = self.model[name]
            ids = self.inputs[name, self.tick] = list(range(self.ids, self.ids + count))
            self.ids += count
            versions[model.number] = model.version - (name in late)
            rows[model.number] = [each for each in ids if _allows(versions[model.number], each)]
            if name not in late and model.reason is None:
                model.rows += [
                    ModelRow(each, (self.tick, at), model.version)
                    for at, each in enumerate(rows[model.number])
                ]
        done = self.gate.commit(self.tick, [make_part(rows, versions)], {"tick": self.tick})
        ended = {each.number for each in self.model.values() if each.reason is not None}
        assert done.ended == ended
        assert done.stale == {self.model[name].number for name in late} - ended
        assert self.gate.commit(self.tick, [make_part(rows, versions)], {}).stale == done.stale

    @rule(name=handles, jump=st.integers(1, 2))
    def change(self, name: str, jump: int) -> None:
        model = self.model[name]
        if model.reason is None:
            model.version += jump
            self.gate.change(name, model.version, PAIR)

    @rule(name=handles)
    @precondition(lambda self: self.tick > 4)
    def withdraw(self, name: str) -> None:
        if self.model[name].reason is None:
            self.model[name].reason = f"why {self.tick}"
            self.gate.withdraw(name, f"why {self.tick}")

    @rule(name=handles)
    def open_again(self, name: str) -> None:
        if self.model[name].reason is not None:
            version = self.model[name].version
            self.model[name] = ModelHandle(self.gate.open(name, version, PAIR), version)
            self.readers = [Reader(each.handle) if each.handle == name else each for each in self.readers]

    @rule(at=st.integers(0, 3), most=st.integers(1, 5))
    def read_some(self, at: int, most: int) -> None:
        self._read(self.readers[at], most)

    @rule(most=st.integers(2, 20))
    def read_all(self, most: int) -> None:
        for reader in self.readers:
            while self._read(reader, most):
                pass

    def _read(self, reader: Reader, most: int) -> bool:
        """Whether there was something and may be more."""
        model = self.model[reader.handle]
        events, reader.cursor = self.gate.read(reader.handle, reader.cursor, most)
        for event in events:
            match event:
                case Rows():
                    for row in event.rows:
                        self._take(reader, model, row["id"], event.tick)
                case Gap(first, last, _):
                    assert reader.last_gap <= first
                    reader.last_gap = last
                    reader.lost |= self._find_lost(model, first, last)
                    assert self.most < 100 or model.was_settled
                case Withdrawn(reason):
                    assert reason == model.reason
                case Closed():
                    raise AssertionError("nobody closed it")
        assert bool(model.reason) == any(isinstance(event, Withdrawn) for event in events)
        if not events:
            self._check_complete(reader, model)
        return bool(events) and model.reason is None

    def _find_lost(self, model: ModelHandle, first: int, last: int) -> set[int]:
        """What a gap may stand for: rows that are cut off, or of a version that nobody reviews any more."""
        return {
            each.id
            for each in model.rows
            if first <= each.place[0] <= last
            and (
                each.place[0] < self._oldest()
                or (each.version != model.version and each.place < model.settled)
            )
        }

    def _take(self, reader: Reader, model: ModelHandle, row: int, tick: int) -> None:
        found = [each for each in model.rows if each.id == row]
        assert found, "a row that was never committed, or that a review left out"
        assert found[0].version == model.version
        assert _allows(model.version, row)
        assert found[0].place[0] == tick
        assert not reader.seen or reader.seen[-1] < row
        reader.seen.append(row)
        reader.at = (found[0].place[0], found[0].place[1] + 1)

    def _check_complete(self, reader: Reader, model: ModelHandle) -> None:
        """With nothing more to read, every row was read, told as lost, or waits behind a review."""
        waiting = min((each.place[0] for each in self._pending(model)), default=self.tick + 1)
        missing = {each.id for each in model.rows if each.place[0] < waiting} - {*reader.seen} - reader.lost
        assert not missing

    def _oldest(self) -> int:
        return min((int(path.stem) for path in self.folder.glob("ticks/*.arrow")), default=0)

    def _pending(self, model: ModelHandle) -> list[ModelRow]:
        oldest = self._oldest()
        return [
            each
            for each in model.rows
            if each.version != model.version and each.place >= model.settled and each.place[0] >= oldest
        ]

    @rule(at=st.integers(0, 3))
    def acknowledge(self, at: int) -> None:
        reader = self.readers[at]
        model = self.model[reader.handle]
        if reader.cursor is not None and model.reason is None:
            self.gate.ack(reader.handle, reader.cursor)
            reached = max(reader.at, (reader.last_gap + 1, 0))
            model.settled = max(model.settled, reached)
            model.was_settled = True

    @rule(name=handles, data=st.data())
    def review(self, name: str, data: st.DataObject) -> None:
        model = self.model[name]
        if model.reason is not None:
            return
        found = self.gate.pending(name)
        ids = [row for each in found for row in each.table.column("id").to_pylist()]
        assert ids == [each.id for each in self._pending(model)]
        for each in found[: data.draw(st.integers(0, 3))]:
            allowed = [row for row in self.inputs[name, each.tick] if _allows(model.version, row)]
            assert self.gate.review(name, each.tick, model.version, make_allowed(reversed(allowed)))
            under = each.table.column("id").to_pylist()
            model.rows = [row for row in model.rows if row.id not in under or row.id in allowed]
            for row in model.rows:
                row.version = model.version if row.id in under else row.version

    @rule(name=handles)
    def drop_pending(self, name: str) -> None:
        model = self.model[name]
        if model.reason is None:
            pending = self._pending(model)
            self.gate.drop_pending(name)
            if pending:
                model.settled = (max(each.place[0] for each in pending) + 1, 0)
                model.was_settled = True

    @rule(revoked=st.sets(handles), torn=st.integers(0, 200))
    def crash(self, revoked: set[str], torn: int) -> None:
        """The folder as it lies there is all that is left; some versions rise while nothing runs."""
        self.starts += 1
        image = self.home / str(self.starts)
        shutil.copytree(self.folder, image)
        self.gate.shut()
        for path in list(image.glob("ticks/*.arrow"))[:1]:
            torn_file = path.with_name(f"{self.tick + 1:020d}.abcd.part")
            torn_file.write_bytes(path.read_bytes()[:torn])
        self.folder = image
        self.gate = Gate(image, most_ticks=self.most)
        for name in self._running():
            self.model[name].version += name in revoked
            assert self.gate.open(name, self.model[name].version, PAIR) == self.model[name].number

    @invariant()
    def the_log_is_bounded(self) -> None:
        assert len(list(self.folder.glob("ticks/*.arrow"))) <= self.most
        assert self.tick < 0 or self.gate.last() == (self.tick, {"tick": self.tick})


GateMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=50, deadline=None)
TestGateMachine = GateMachine.TestCase

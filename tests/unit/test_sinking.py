"""The sinks of an engine's queries: each is one query's, ends with it, and tells so."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.runtime.gate.events import Closed, Gap, Rows, Withdrawn
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.sinking import DeclaredSink, Sinks
from unit.gate_world import PAIR, make_part, open_one

PLACE = DeclaredSink("place", "parquet", "any", users=frozenset({"ann"}))


class Broker:
    """Takes rows and events, or nothing while it is away."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.told: list[object] = []
        self.tries, self.is_away = 0, False
        self.may_end = threading.Event()
        self.may_end.set()

    def _answer(self) -> None:
        self.tries += 1
        self.may_end.wait(10)
        if self.is_away:
            raise OSError("the broker is away")

    def write(self, rows: Rows) -> None:
        self._answer()
        self.ids += rows.table.column("id").to_pylist()

    def tell(self, event: Gap | Withdrawn | Closed) -> None:
        self._answer()
        self.told.append(event)


def _open(gate: Gate, folder: Path, broker: Broker) -> Sinks:
    return Sinks(gate, folder, {PLACE.name: PLACE}, lambda *_: broker, lambda *_: True)


def _await(is_so: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _is_forgotten(folder: Path) -> bool:
    return not list(folder.glob("*.sink")) and not list(folder.glob("*.place"))


@pytest.mark.parametrize("is_written", [True, False], ids=["rows went before", "none went before"])
def test_a_query_that_is_registered_again_has_no_sink(tmp_path: Path, is_written: bool) -> None:
    gate, number = open_one(tmp_path / "gate")
    broker = Broker()
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.attach("h", number, PLACE)
    if is_written:
        gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
        _await(lambda: broker.ids == [1])
    broker.is_away = True
    gate.commit(1, [make_part({number: [2]}, {number: 1})], {})
    _await(lambda: broker.tries > is_written)
    gate.close("h")
    again = gate.open("h", 1, PAIR)
    gate.commit(2, [make_part({again: [3]}, {again: 1})], {})
    assert sinks.state("h") is None
    broker.is_away = False
    _await(lambda: _is_forgotten(tmp_path / "sinks"))
    assert (broker.ids, broker.told) == ([1] if is_written else [], [Closed()])
    assert broker.tries < 10
    sinks.stop()


def test_what_the_gate_has_forgotten_ends(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "gate")
    broker = Broker()
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.attach("h", number, PLACE)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    _await(lambda: broker.ids == [1])
    with gate.lock:
        gate.close("h")
        gate.forget("h")
    _await(lambda: _is_forgotten(tmp_path / "sinks"))
    assert broker.told == [Closed()]
    sinks.stop()


def test_one_attached_to_the_new_query_takes_the_place_of_the_old(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "gate")
    broker = Broker()
    broker.is_away = True
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.attach("h", number, PLACE)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    _await(lambda: broker.tries > 0)
    gate.close("h")
    again = gate.open("h", 1, PAIR)
    sinks.attach("h", again, PLACE)
    broker.is_away = False
    gate.commit(1, [make_part({again: [2]}, {again: 1})], {})
    _await(lambda: broker.ids == [2])
    assert json.loads((tmp_path / "sinks" / "h.sink").read_text())["number"] == again
    sinks.stop()


def test_an_end_is_told_after_a_restart(tmp_path: Path) -> None:
    """Also where the revocation came while nobody ran."""
    gate, number = open_one(tmp_path / "gate")
    broker = Broker()
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.attach("h", number, PLACE)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    _await(lambda: broker.ids == [1])
    sinks.stop()
    gate.shut()
    gate = Gate(tmp_path / "gate")
    gate.withdraw("h", "no grant is left")
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.start()
    _await(lambda: _is_forgotten(tmp_path / "sinks"))
    assert (broker.ids, broker.told) == ([1], [Withdrawn("no grant is left")])
    sinks.stop()


def test_a_note_that_does_not_say_which_query_is_of_none(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "gate")
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    broker = Broker()
    sinks = _open(gate, tmp_path / "sinks", broker)
    (tmp_path / "sinks" / "h.sink").write_text(json.dumps({"handle": "h", "sink": PLACE.name}))
    sinks.start()
    assert sinks.state("h") is None
    assert _is_forgotten(tmp_path / "sinks")
    sinks.stop()
    assert broker.tries == 0


def test_a_write_under_way_to_a_sink_that_was_taken_away_is_waited_for(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "gate")
    broker = Broker()
    broker.may_end.clear()
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.attach("h", number, PLACE)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    _await(lambda: broker.tries > 0)
    sinks.settle(lambda *_: False, 0.0)
    with pytest.raises(DiagnosticError, match="has not ended"):
        sinks.settle(lambda *_: True, 0.1)
    threading.Timer(0.2, broker.may_end.set).start()
    sinks.settle(lambda *_: True, 10)
    assert broker.ids == [1]
    sinks.stop()

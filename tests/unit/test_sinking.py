"""The sinks of an engine's queries: each is one query's, ends with it, and tells so."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.runtime import sinking
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


def test_one_that_is_let_go_stays_until_its_write_has_ended(tmp_path: Path) -> None:
    """A change waits for that write (R10), and one that is attached meanwhile begins behind it, and is kept."""
    gate, number = open_one(tmp_path / "gate")
    broker = Broker()
    broker.may_end.clear()
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.attach("h", number, PLACE)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    _await(lambda: broker.tries > 0)
    leaving = threading.Thread(target=sinks.detach, args=("h",))
    leaving.start()
    _await(lambda: sinks._attached["h"].is_leaving)
    with pytest.raises(DiagnosticError, match="has not ended"):
        sinks.settle(lambda *_: True, 0.1)
    again = threading.Thread(target=sinks.attach, args=("h", number, PLACE))
    again.start()
    again.join(0.3)
    assert again.is_alive()
    assert sum(each.name == "sink of h" for each in threading.enumerate()) == 1
    broker.may_end.set()
    for each in (leaving, again):
        each.join(10)
        assert not each.is_alive()
    assert (tmp_path / "sinks" / "h.sink").exists()
    state = sinks.state("h")
    assert state is not None
    assert state.is_running
    assert sinks.detach("h")
    assert not sinks.detach("h")
    assert _is_forgotten(tmp_path / "sinks")


def test_ends_that_cannot_be_told_do_not_gather(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sinking, "MOST_ENDED", 2)
    gate, number = open_one(tmp_path / "gate")
    broker = Broker()
    broker.is_away = True
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.attach("h", number, PLACE)
    for at in range(5):
        sinks.attach(f"q{at}", gate.open(f"q{at}", 1, PAIR), PLACE)
        gate.close(f"q{at}")
    sinks.attach("last", gate.open("last", 1, PAIR), PLACE)
    kept = ["h", "last", "q3", "q4"]
    _await(lambda: sorted(path.stem for path in (tmp_path / "sinks").glob("*.sink")) == kept)
    _await(lambda: sorted(sinks._attached) == kept)
    told = [each for each in caplog.messages if "is given up" in each]
    assert [f"q{at}" in each for at, each in enumerate(told)] == [True] * 3
    sinks.stop()
    monkeypatch.setattr(sinking, "MOST_ENDED", 1)
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.start()
    _await(lambda: sorted(sinks._attached) == ["h", "last", "q4"])
    sinks.stop()


def test_a_damaged_place_keeps_nobody_else_from_going_on(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "gate")
    other = gate.open("other", 1, PAIR)
    broker = Broker()
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.attach("h", number, PLACE)
    sinks.attach("other", other, PLACE)
    sinks.stop()
    (tmp_path / "sinks" / "h.place").write_text("no JSON")
    sinks = _open(gate, tmp_path / "sinks", broker)
    sinks.start()
    gate.commit(0, [make_part({number: [1], other: [2]}, {number: 1, other: 1})], {})
    _await(lambda: broker.ids == [2] and sinks.count_failing() == 1)
    state = sinks.state("h")
    assert state is not None
    assert state.problem == "the rows were not taken (gate-log)"
    assert sinks.detach("h")
    sinks.attach("h", number, PLACE)
    _await(lambda: broker.ids == [2, 1])
    sinks.stop()


def test_a_query_s_user_is_told_a_code_and_the_operator_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gate, number = open_one(tmp_path / "gate")
    refused = DiagnosticError([Diagnostic("kafka-option", "there is no file /etc/secret.jks")])

    def refuse(*_: object) -> Broker:
        raise refused

    broker = Broker()
    sinks = _open(gate, tmp_path / "sinks", broker)
    closed = Sinks(gate, tmp_path / "none", {PLACE.name: PLACE}, refuse, lambda *_: True)
    with pytest.raises(DiagnosticError, match="kafka-option") as found:
        closed.attach("h", number, PLACE)
    assert "secret" not in str(found.value)
    assert "/etc/secret.jks" in caplog.messages[-1]
    broker.write = refuse  # type: ignore[method-assign, assignment]
    sinks.attach("h", number, PLACE)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    _await(lambda: sinks.count_failing() == 1)
    state = sinks.state("h")
    assert state is not None
    assert state.problem == "the rows were not taken (kafka-option)"
    assert "/etc/secret.jks" in caplog.messages[-1]
    sinks.stop()

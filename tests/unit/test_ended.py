"""Handles of queries that ended are told of for a while, and then forgotten."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.runtime.ended import Ended
from sluicegate.runtime.gate.events import Closed
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.registry import Registry
from unit.gate_world import PAIR


def test_only_the_last_to_end_are_known(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    ended = Ended(gate, most=2)
    for handle in ("a", "b", "c", "d"):
        gate.open(handle, 1, PAIR)
    for handle in ("b", "a", "c"):
        gate.close(handle)
        ended.add(handle)
    ended.forget()
    assert gate.known() == {"a": "closed", "c": "closed", "d": "open"}
    assert gate.read("a")[0] == [Closed()]
    with pytest.raises(DiagnosticError):
        gate.read("b")
    # after a start too
    gate.shut()
    gate = Gate(tmp_path)
    Ended(gate, most=1).forget()
    assert gate.known() == {"c": "closed", "d": "open"}


def test_a_handle_that_is_taken_again_is_not_forgotten(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    ended = Ended(gate, most=0)
    gate.open("a", 1, PAIR)
    gate.close("a")
    ended.add("a")
    gate.open("a", 1, PAIR)
    ended.discard("a")
    ended.add("never")
    ended.forget()
    assert gate.known() == {"a": "open"}


def test_a_kill_while_a_handle_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(tmp_path)
    gate.open("a", 1, PAIR)
    gate.close("a")
    write = Registry._write

    def kill(registry: Registry, text: str, *values: object) -> None:
        if "layouts" in text:
            raise KeyboardInterrupt
        write(registry, text, *values)

    with monkeypatch.context() as patch:
        patch.setattr(Registry, "_write", kill)
        with pytest.raises(KeyboardInterrupt):
            gate.forget("a")
    gate.shut()
    gate = Gate(tmp_path)
    assert gate.known() == {"a": "closed"}
    gate.forget("a")
    gate.shut()
    # as an older version may have left it
    with closing(sqlite3.connect(tmp_path / "handles.sqlite")) as base, base:
        base.execute("INSERT INTO layouts VALUES (1, 1, '[]')")
    gate = Gate(tmp_path)
    assert gate.known() == {}
    gate.shut()

"""A batch of whose rows the driver does not find all is not complete."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import INT, TIMESTAMP
from sluicegate.policy.model import Stream

pa = pytest.importorskip("pyarrow")

STREAM = Stream("S", (("ts", TIMESTAMP), ("x", INT)), "ts")


def _write(folder: Path, patch: pytest.MonkeyPatch, here: int, written: int | None) -> int:
    """A batch whose tasks wrote so many rows, of which so many came to the driver's folder."""
    from sluicegate.runtime.feed import write_batch as module
    from sluicegate.runtime.feed.log_files import log_schema, write_rows
    from sluicegate.runtime.feed.source_log import SourceLog

    schema = log_schema(STREAM)
    columns = [pa.array([0] * here, each.type) for each in schema if each.name != "_late"]
    table = pa.table([*columns, pa.array([False] * here)], schema=schema)

    def write(_: Any, to: Path) -> int | None:
        to.mkdir()
        if here:
            write_rows(to, [table])
        return written

    frame: Any = SimpleNamespace(columns=[], coalesce=lambda _: frame)
    context = SimpleNamespace(defaultParallelism=2)
    frame.sparkSession = SimpleNamespace(conf=SimpleNamespace(set=lambda *_: None), sparkContext=context)
    patch.setattr(module, "number_rows", lambda *_: frame)
    patch.setattr(module, "write_files", write)
    return module.write_batch(SourceLog(folder, STREAM), frame, 0).rows


def test_rows_that_are_elsewhere_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for at, (here, written) in enumerate([(0, 3), (2, 3), (3, 2)]):
        with pytest.raises(DiagnosticError) as refused:
            _write(tmp_path / f"{at}", monkeypatch, here, written)
        assert refused.value.diagnostics[0].code == "cluster-path"
    assert _write(tmp_path / "all", monkeypatch, 3, 3) == 3
    assert _write(tmp_path / "local", monkeypatch, 3, None) == 3


def test_a_number_that_is_not_told_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    from sluicegate.runtime.feed import write_batch as module

    class Silent:
        told = Event()

        @property
        def get(self) -> dict[str, int]:
            self.told.wait()
            return {}

    monkeypatch.setattr(module, "PATIENCE", 0.01)
    with pytest.raises(DiagnosticError) as refused:
        module._wait_for_count(Silent())  # type: ignore[arg-type]
    assert refused.value.diagnostics[0].code == "feed-failed"
    Silent.told.set()

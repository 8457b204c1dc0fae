"""What several files of unit tests begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.language.load import read_catalog

if TYPE_CHECKING:
    from sluicegate.runtime.engine import Engine

_LOCAL: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))


@pytest.fixture
def make_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Engine]]:
    """Engines without Spark, one after another over the same folder, as processes that follow each other."""
    from sluicegate.runtime import engine as engines

    made: list[Engine] = []
    monkeypatch.setattr(engines, "check_session", lambda _: None)
    monkeypatch.setattr(engines, "check_shared", lambda *_: None)

    def make(text: str, push: bool = True) -> Engine:
        if made:
            made[-1].stop()
        made.append(engines.Engine(_LOCAL, read_catalog(text), tmp_path / "state", push=push))
        return made[-1]

    yield make
    made[-1].stop()

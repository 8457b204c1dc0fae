"""The measurement of AIS runs and says what it measures; how fast it is depends on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyais")
pytest.importorskip("pyarrow")

from sluicegate.bench import ais


def test_the_measurement_runs(tmp_path: Path) -> None:
    result = ais.run(json=True, out=tmp_path, quick=True)
    works = result["works"]
    assert isinstance(works, list)
    assert all(each["sentences_per_second"] > 0 for each in works)
    assert isinstance(result["pyais_share"], dict)
    assert (tmp_path / "ais.json").is_file()

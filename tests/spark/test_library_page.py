"""The example of `docs/library.md` does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("folding")
def test_the_notebook_runs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs/library.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sluicegate.runtime.session.make_session", lambda: spark)
    found: dict[str, Any] = {}
    exec(code, found)
    spark.catalog.dropTempView("seen")
    assert {row["SID"] for row in found["pressures"]} == {"s1"}
    assert [tuple(row) for row in found["first"]] == [("s1", 1.0)]
    assert sorted(tuple(row) for row in found["both"]) == [("s1", 1.0), ("s2", 2.0)]

"""Tests on Spark; without pyspark they are skipped, and the reason says how to have them run."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
NEEDED = ("pyspark", "pyarrow")
SKIPPED = "Spark is not installed; to run these tests: .venv/bin/python -m pip install -e '.[spark]'"


def _is_missing() -> bool:
    return any(find_spec(name) is None for name in NEEDED)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _is_missing():
        terminalreporter.write_line(SKIPPED)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("spark")
            if _is_missing():
                item.add_marker(pytest.mark.skip(reason=SKIPPED))


@pytest.fixture(params=["true", "false"], ids=["compiled whole", "by operator"])
def either(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session, once with whole stages compiled and once without: two ways in which Spark computes expressions."""
    spark.conf.set("spark.sql.codegen.wholeStage", request.param)
    yield spark
    spark.conf.set("spark.sql.codegen.wholeStage", "false")

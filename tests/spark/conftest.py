"""One Spark session for all tests here; without pyspark they are skipped, and the reason says how to have them run."""

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


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from sluicegate.runtime.session import make_session

    session = make_session(
        shuffle_partitions=1,
        extra={
            # tiny data: compiling and adapting whole plans costs more than it saves
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.adaptive.enabled": "false",
            # tiny data must not be computed while the plan is made either: what is tested is what runs on much data
            "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
        },
    )
    yield session
    session.stop()


@pytest.fixture(params=["true", "false"], ids=["compiled whole", "by operator"])
def either(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session, once with whole stages compiled and once without: two ways in which Spark computes expressions."""
    spark.conf.set("spark.sql.codegen.wholeStage", request.param)
    yield spark
    spark.conf.set("spark.sql.codegen.wholeStage", "false")

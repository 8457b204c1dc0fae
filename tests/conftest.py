"""What all tests share: Hypothesis profiles and the count of differential cases."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from counters import summarize_cases
from file_order import find_place
from kafka_broker import broker
from spark_session import folding, spark

__all__ = ["broker", "folding", "spark"]

settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],  # two shared cores: time says nothing about the strategy
)
settings.register_profile("dev", deadline=None, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: find_place(item.path.parent.name, item.path.name))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in summarize_cases():
        terminalreporter.write_line(line)

"""Stages: each moment belongs to the innermost, and nobody pays who does not ask."""

from __future__ import annotations

import time

import pytest

from sluicegate.runtime.stages import stage, time_stages


def test_each_stage_has_its_own_time() -> None:
    with time_stages() as times, stage("outer"):
        time.sleep(0.01)
        with stage("inner"):
            time.sleep(0.05)
        time.sleep(0.01)
    assert times["inner"] >= 0.05
    assert 0.02 <= times["outer"] < times["inner"]


def test_a_stage_that_fails_ends() -> None:
    with time_stages() as times, pytest.raises(ValueError, match="no"), stage("one"), stage("two"):
        raise ValueError("no")
    assert set(times) == {"one", "two"}
    with time_stages() as later, stage("one"):
        pass
    assert set(later) == {"one"}


def test_without_somebody_who_asks_nothing_is_timed() -> None:
    with stage("one"):
        pass
    with time_stages() as times:
        pass
    assert times == {}

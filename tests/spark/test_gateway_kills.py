"""A gateway in a process of its own, killed while it is written to: what it acknowledged is there, what is denied is not shown."""

from __future__ import annotations

from pathlib import Path

from sluicegate.testing.recovery.gateway_kills import run_kills


def test_three_kills_of_a_gateway_lose_nothing(tmp_path: Path) -> None:
    """The long run is `python -m sluicegate.testing.recovery.gateway_kills`."""
    report = run_kills(tmp_path, 3, seed=3, seconds=5.0)
    assert report.problems == []
    assert report.kills.total() == 3
    assert all(report.checked[what] > 0 for what in ("changes", "handles", "tokens"))
    assert report.rows > 0

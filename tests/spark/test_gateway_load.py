"""Readers over HTTP while policies change every second: nothing is handed over that the version in force denies (R10–R12)."""

from __future__ import annotations

from pathlib import Path

from sluicegate.testing.load.run import Size, run_load


def test_gateway_under_load(tmp_path: Path) -> None:
    """The long run, of 200 readers on 50 queries, is `python -m sluicegate.testing.load.run`.

    Here there are 72 readers on 18 queries: on two cores Spark would need the 30 seconds for the first rows of 50.
    """
    size = Size(steady=2, moved=2, granted=2, queries=18)
    report = run_load(tmp_path, seconds=30.0, seed=1, size=size, light=True)
    assert report.violations == []
    assert (report.queries, report.readers) == (18, 72)
    assert len(report.seconds) >= 15
    assert all(report.rows[f"{group} rows"] for group in ("steady", "changed"))
    assert all(report.rows[f"steady {shape}"] for shape in ("sums", "pairs"))
    assert report.whole > 500
    assert report.events["withdrawn"] + report.events["revoked"] > 0

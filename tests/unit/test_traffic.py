"""Generated traffic: the same for the same seed, on the roads, spread as asked, and written as it was made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

from sluicegate.testing.traffic import (  # noqa: E402 — only where there is pyarrow
    HEALTH,
    HEART,
    POSITION,
    Spread,
    Traffic,
    make_positions,
    make_readings,
    write_traffic,
)

TRAFFIC = Traffic(objects=20, steps=50, seed=3)


def _all(tables: Any) -> Any:
    return pa.concat_tables(list(tables))


def test_the_same_parameters_give_the_same_rows() -> None:
    for make in (make_positions, make_readings):
        first = _all(make(TRAFFIC))
        assert first.num_rows == 20 * 50
        assert first == _all(make(TRAFFIC, rows=60))
        assert first != _all(make(replace(TRAFFIC, seed=4)))


def test_objects_move_no_faster_than_the_roads_allow() -> None:
    traffic = replace(TRAFFIC, period=60_000_000)
    found = _all(make_positions(traffic))["Pos"].to_numpy().reshape(50, 20)
    assert found.min() >= 0
    assert found.max() <= traffic.extent
    way = np.abs(np.diff(found, axis=0))
    assert way.max() <= max(traffic.speeds) / 60 + 1e-9
    assert (way.sum(axis=0) > 0.5).all()


def test_event_times_are_even_and_rise() -> None:
    times = _all(make_readings(TRAFFIC))["ts"].cast("int64").to_numpy()
    assert times[0] == TRAFFIC.start
    assert (np.diff(times) == 50_000).all()


def test_disorder_is_no_greater_than_asked() -> None:
    traffic = replace(TRAFFIC, disorder=2_000_000)
    times = _all(make_positions(traffic))["ts"].cast("int64").to_numpy()
    behind = np.maximum.accumulate(times) - times
    assert 0 < behind.max() <= 2_000_000
    assert sorted(times) == sorted(_all(make_positions(TRAFFIC))["ts"].cast("int64").to_numpy())


@pytest.mark.parametrize(("spread", "within"), [(Spread.UNIFORM, 1 / 3), (Spread.NORMAL, 0.6827)])
def test_readings_are_spread_as_asked(spread: Spread, within: float) -> None:
    heart = _all(make_readings(replace(TRAFFIC, spread=spread, steps=1000)))["Heart"].to_numpy()
    low, high = HEART
    assert heart.min() >= low
    assert heart.max() <= high
    assert heart.mean() == pytest.approx((low + high) / 2, abs=1)
    near = np.abs(heart - (low + high) / 2) <= (high - low) / 6
    assert near.mean() == pytest.approx(within, abs=0.03)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_files_hold_what_was_made(tmp_path: Path, suffix: str) -> None:
    from sluicegate.runtime.inputs import load_input

    paths = write_traffic(tmp_path, TRAFFIC, suffix, rows=300)
    for path, stream, make in zip(paths, (POSITION, HEALTH), (make_positions, make_readings), strict=True):
        loaded = load_input(stream, path)
        assert loaded.dead == ()
        assert loaded.table.drop_columns(["_offset"]) == _all(make(TRAFFIC)).combine_chunks()


def test_parameters_without_meaning_are_refused(tmp_path: Path) -> None:
    for change in ({"objects": 0}, {"side": 1}, {"speeds": ()}, {"extent": 0.0}, {"steps": -1}):
        with pytest.raises(ValueError, match="traffic needs"):
            replace(TRAFFIC, **change)
    with pytest.raises(ValueError, match=r"\.jsonl or \.parquet"):
        write_traffic(tmp_path, TRAFFIC, ".csv")

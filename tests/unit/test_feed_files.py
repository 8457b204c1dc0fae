"""Files of feeds, without Spark: positions in replayed files, and dead letters that stay few."""

from __future__ import annotations

from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")

LINES = [b'{"ts": "2026-01-01T00:00:01Z"}\n', b"\n", b"x" * (9 << 20) + b"\n", b'{"ts": "bad"}\n', b"last"]


@pytest.mark.parametrize("step", [1, 2, 5, None])
def test_lines_are_found_again_by_position(tmp_path: Path, step: int | None) -> None:
    from sluicegate.runtime.feed.replay_files import LineFile, Position

    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(LINES))
    file = LineFile(path, "ts")
    at, found = Position(), []
    while (after := file.advance(at, step)) != at:
        batches = [batch["value"].to_pylist() for batch in file.read(at, after)]
        found += [line for batch in batches for line in batch]
        assert after.row == len(found)
        at = after
    # of the endless line enough is kept to show that it is one
    assert [line if len(line) < 100 else len(line) > 1 << 20 for line in found] == [
        LINES[0],
        LINES[1],
        True,
        LINES[3],
        LINES[4],
    ]
    assert file.times(Position(), 2) == [1767225601000000, None]


def test_dead_letters_are_bounded_and_private(tmp_path: Path) -> None:
    from sluicegate.runtime.feed.dead_letters import DeadLetters

    letters = DeadLetters(tmp_path, largest=10_000)
    for number in range(20):
        offset = number << 32
        rows = {"_offset": [offset + 1, offset], "_problem": ["why"] * 2, "_raw": ["x" * 1000] * 2}
        letters.append(number, pa.table(rows))
    kept = [each.offset for each in letters.read()]
    assert kept[-2:] == [19 << 32, (19 << 32) + 1]
    assert 2 <= len(kept) < 10
    assert [each.offset for each in letters.read(after=19 << 32)] == [(19 << 32) + 1]
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "dead").iterdir()} == {0o600}

"""The log of a stream: batches that are complete or absent, whatever stops; cut and put together without a trace."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.errors import DiagnosticError, InvariantError
from sluicegate.expr.types import INT, STRING, TIMESTAMP
from sluicegate.expr.values import TIMESTAMP_MAX
from sluicegate.policy.model import Stream

pa = pytest.importorskip("pyarrow")

if TYPE_CHECKING:
    from sluicegate.runtime.feed.source_log import SourceLog

STREAM = Stream("S", (("ts", TIMESTAMP), ("x", INT)), "ts", watermark=10)
TABLE = Stream("T", (("x", INT),))


def _open(folder: Path, stream: Stream = STREAM) -> SourceLog:
    from sluicegate.runtime.feed.source_log import SourceLog

    return SourceLog(folder, stream)


def _append(log: SourceLog, *times: int | None) -> None:
    from sluicegate.runtime.feed.append import append_table

    number = pa.array([0 if each is None else each for each in times], pa.int32())
    append_table(log, pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "x": number}))


def _filled(folder: Path, count: int = 4) -> SourceLog:
    log = _open(folder)
    for number in range(count):
        _append(log, number * 100, number * 100 + 50)
    return log


def _rows(log: SourceLog, begin: int = 0, end: int | None = None) -> list[tuple[int, int, bool]]:
    import pyarrow.parquet as pq

    with log.reading():
        tables = [pq.read_table(each.path) for each in log.batches(begin, end)]
        return [
            row
            for table in tables
            for row in zip(*(table[name].to_pylist() for name in ("x", "_offset", "_late")), strict=True)
        ]


def test_an_empty_log(tmp_path: Path) -> None:
    log = _open(tmp_path)
    assert (log.begin, log.end, log.greatest, log.watermark, log.forgotten, log.finished) == (
        0,
        0,
        None,
        None,
        None,
        False,
    )
    assert log.batches() == ()


def test_batches_are_numbered_and_late_rows_marked(tmp_path: Path) -> None:
    log = _open(tmp_path)
    _append(log, 100, 20)
    _append(log, 89, 90, None)
    first, second = log.batches()
    assert (first.least, first.greatest, first.watermark, first.rows) == (20, 100, 90, 2)
    assert (second.least, second.greatest, second.watermark, second.rows) == (89, 90, 90, 3)
    # the watermark before the first batch is unknown: nothing in it is late
    assert _rows(log) == [
        (100, 0, False),
        (20, 1, False),
        (89, 1 << 32, True),
        (90, (1 << 32) + 1, False),
        (0, (1 << 32) + 2, False),
    ]


def test_what_is_complete_is_there_after_opening_again(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    again = _open(tmp_path)
    assert again.batches() == log.batches()
    assert (again.end, again.greatest, again.watermark) == (4, 350, 340)
    assert again.is_complete(3)
    assert not again.is_complete(4)
    assert [each.first for each in again.batches(1, 3)] == [1, 2]
    assert [each.first for each in again.reaching(151)] == [2, 3]
    assert [each.first for each in again.reaching(150, end=3)] == [1, 2]


def test_data_without_a_description_is_discarded(tmp_path: Path) -> None:
    log = _filled(tmp_path, 2)
    half = log.data_folder(2)
    half.mkdir()
    (half / "part-00000.parquet").write_bytes(b"PAR1 half of")
    (tmp_path / "meta" / "000000000002-000000000002.json.new").write_text('{"first": 2')
    again = _open(tmp_path)
    assert again.end == 2
    assert not half.exists()
    assert not list((tmp_path / "meta").glob("*.new"))
    _append(again, 500)
    assert _open(tmp_path).end == 3


def test_a_replayed_batch_is_left_as_it_is(tmp_path: Path) -> None:
    log = _filled(tmp_path, 2)
    before = (log.batches(), _rows(log))
    log.commit(replace(log.batches()[0], rows=99))
    assert (log.batches(), _rows(log)) == before


def test_a_batch_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    log = _filled(tmp_path, 2)
    for number in (3, 7):
        with pytest.raises(InvariantError, match="does not follow"):
            log.commit(log.describe(number, 0, None, None))
    log.finish()
    with pytest.raises(InvariantError, match="has ended"):
        log.commit(log.describe(2, 0, None, None))


@pytest.mark.parametrize("damage", ["meta", "fields", "data", "missing", "state"])
def test_damage_is_told_and_not_guessed_at(tmp_path: Path, damage: str) -> None:
    log = _filled(tmp_path)
    log.cut(1, None)
    meta = tmp_path / "meta" / "000000000001-000000000001.json"
    data = log.data_folder(1)
    match damage:
        case "meta":
            meta.write_text(meta.read_text()[:20])
        case "fields":
            meta.write_text(json.dumps({**json.loads(meta.read_text()), "more": 1}))
        case "data":
            file = next(data.glob("*.parquet"))
            file.write_bytes(file.read_bytes()[:-10])
        case "missing":
            shutil.rmtree(data)
        case "state":
            (tmp_path / "state.json").write_text("{")
    with pytest.raises(DiagnosticError, match=r"error\[feed-log\]"):
        _open(tmp_path)


def test_the_end_of_a_bounded_input_is_remembered(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.finish()
    again = _open(tmp_path)
    assert again.finished
    assert again.watermark == TIMESTAMP_MAX
    assert again.greatest == 350


def test_a_table_has_no_watermark(tmp_path: Path) -> None:
    from sluicegate.runtime.feed.append import append_table

    log = _open(tmp_path, TABLE)
    append_table(log, pa.table({"x": pa.array([1], pa.int32())}))
    log.finish()
    assert (log.watermark, log.greatest, log.batches()[0].least) == (None, None, None)
    assert log.reaching(5) == log.batches()


def test_cut_forgets_what_is_neither_new_nor_recent(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.cut(before=3, least_time=150)
    assert [each.first for each in log.batches()] == [1, 2, 3]
    assert (log.begin, log.forgotten) == (1, 50)
    log.cut(before=4, least_time=None)
    assert (log.begin, log.end, log.forgotten, log.greatest) == (4, 4, 350, 350)
    again = _open(tmp_path)
    assert (again.begin, again.end, again.forgotten, again.greatest, again.watermark) == (4, 4, 350, 350, 340)
    assert list((tmp_path / "data").iterdir()) == []
    _append(again, 400)
    assert _rows(again) == [(400, 4 << 32, False)]


def test_a_hole_is_told(tmp_path: Path) -> None:
    log = _open(tmp_path)
    for time in (100, 10, 110, 120):
        _append(log, time)
    assert log.covers(0, 4)
    assert log.covers(4, 4)
    assert not log.covers(0, 5)
    log.cut(before=4, least_time=50)
    assert [each.first for each in log.batches()] == [0, 2, 3]
    assert [log.covers(at, at + 1) for at in range(4)] == [True, False, True, True]
    assert not log.covers(0, 3)
    log.compact(before=4)
    assert [(each.first, each.last) for each in log.batches()] == [(0, 0), (2, 3)]
    assert log.covers(3, 4)
    assert not log.covers(1, 4)


def test_batches_without_times_go_with_those_before_them(tmp_path: Path) -> None:
    log = _open(tmp_path)
    for time in (None, 100, None, 200, None):
        _append(log, time)
    log.cut(before=5, least_time=100)
    assert [each.first for each in log.batches()] == [1, 2, 3, 4]
    log.cut(before=5, least_time=150)
    assert [each.first for each in log.batches()] == [3, 4]
    log.cut(before=5, least_time=250)
    assert log.batches() == ()


def test_batches_put_together_hold_the_same(tmp_path: Path) -> None:
    log = _filled(tmp_path, 6)
    before = _rows(log)
    log.compact(before=5)
    merged, last = log.batches()
    assert (merged.first, merged.last, merged.rows, merged.least, merged.greatest) == (0, 4, 10, 0, 450)
    assert (merged.watermark, last.first) == (440, 5)
    assert _rows(log) == before
    assert log.batches(2, 3) == (merged,)
    again = _open(tmp_path)
    assert again.batches() == (merged, last)
    assert _rows(again) == before


def test_few_rows_are_not_put_to_many_again_and_again(tmp_path: Path) -> None:
    log = _filled(tmp_path, 8)
    log.compact(before=8)
    big = log.batches()[0]
    _append(log, 900)
    log.compact(before=9)
    assert log.batches()[0] == big
    log.compact(before=9, largest=10)
    assert len(log.batches()) == 2


def test_a_crash_while_putting_together_changes_nothing(tmp_path: Path) -> None:
    log = _filled(tmp_path / "a", 4)
    before = _rows(log)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    log.compact(before=4)
    # the new batch is complete, and the old ones were not removed yet
    shutil.copytree(tmp_path / "b", tmp_path / "a", dirs_exist_ok=True)
    again = _open(tmp_path / "a")
    assert [(each.first, each.last) for each in again.batches()] == [(0, 3)]
    assert _rows(again) == before
    assert len(list((tmp_path / "a" / "meta").iterdir())) == 1
    # the new batch's rows were written, and it is not complete yet
    made = next((tmp_path / "a" / "data").iterdir())
    shutil.copytree(made, tmp_path / "b" / "data" / made.name)
    assert _rows(_open(tmp_path / "b")) == before
    assert not (tmp_path / "b" / "data" / made.name).exists()


def test_files_stay_while_somebody_reads(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    with log.reading():
        held = log.batches()
        log.compact(before=4)
        log.cut(4, None)
        with log.reading():
            assert log.batches() == ()
        assert all(each.path.exists() for each in held)
    assert list((tmp_path / "data").iterdir()) == []


def test_reading_while_others_append_and_put_together(tmp_path: Path) -> None:
    log = _open(tmp_path)
    failures: list[BaseException] = []

    def append() -> None:
        for number in range(40):
            _append(log, number)

    def tidy() -> None:
        while writer.is_alive():
            log.compact(log.end)

    def read() -> None:
        try:
            while writer.is_alive():
                found = [x for x, _, _ in _rows(log)]
                assert found == list(range(len(found)))
        except BaseException as error:  # noqa: BLE001 — told by the test
            failures.append(error)

    writer = threading.Thread(target=append)
    others = [threading.Thread(target=each) for each in (tidy, read, read)]
    writer.start()
    for each in others:
        each.start()
    for each in (writer, *others):
        each.join()
    assert failures == []
    assert [x for x, _, _ in _rows(_open(tmp_path))] == list(range(40))


@pytest.mark.parametrize(
    "other",
    [
        replace(STREAM, name="s"),
        replace(STREAM, attributes=(("ts", TIMESTAMP), ("x", STRING))),
        replace(STREAM, attributes=(("x", INT), ("ts", TIMESTAMP))),
        replace(STREAM, event_time=None),
        replace(STREAM, format="kafka"),
        replace(STREAM, options=(("path", "x"),)),
    ],
)
def test_another_declaration_has_another_folder(tmp_path: Path, other: Stream) -> None:
    from sluicegate.runtime.feed.log_names import log_folder

    assert log_folder(tmp_path, other) != log_folder(tmp_path, STREAM)
    assert log_folder(tmp_path, replace(STREAM)) == log_folder(tmp_path, STREAM)


def test_a_folder_is_named_safely(tmp_path: Path) -> None:
    from sluicegate.runtime.feed.log_names import log_folder

    assert log_folder(tmp_path, replace(STREAM, name="../../etc/_x")).parent == tmp_path


def _fail_meta(patch: pytest.MonkeyPatch, *modules: str) -> None:
    """Behind the rename of a meta."""
    from sluicegate.runtime.feed import log_files

    real = log_files.sync_folder

    def sync(folder: Path) -> None:
        if folder.name == "meta":
            raise OSError("away")
        real(folder)

    for each in modules:
        patch.setattr(f"sluicegate.runtime.feed.{each}.sync_folder", sync)


def test_a_commit_that_fails_behind_its_rename_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sluicegate.runtime.feed.log_files import remove_all

    log = _filled(tmp_path, 1)
    with monkeypatch.context() as patch:
        _fail_meta(patch, "log_files", "source_log")
        with pytest.raises(OSError, match="away"):
            _append(log, 100)
        # as long as the batch may be complete on disk its rows are not replaced
        with pytest.raises(OSError, match="away"):
            log.data_folder(1)
    remove_all([log.data_folder(1)])
    assert _open(tmp_path).end == 1
    with monkeypatch.context() as patch:
        _fail_meta(patch, "log_files")
        with pytest.raises(OSError, match="away"):
            _append(log, 100)
    assert _open(tmp_path).end == 1
    _append(log, 200)
    assert _rows(_open(tmp_path)) == _rows(log)
    assert [x for x, _, _ in _rows(log)] == [0, 50, 200]


def test_batches_whose_merging_fails_behind_the_rename_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _filled(tmp_path, 3)
    with monkeypatch.context() as patch:
        _fail_meta(patch, "log_files", "source_log")
        with pytest.raises(OSError, match="away"):
            log.compact(3)
    log.cut(1, None)
    assert _open(tmp_path).begin == 1
    log.compact(3)
    assert _rows(_open(tmp_path)) == _rows(log)
    assert len(log.batches()) == 1


def test_a_log_is_named_by_the_whole_digest_of_its_declaration(tmp_path: Path) -> None:
    """Who declares streams could find one of another's name in fewer digits, and have its tuples."""
    from sluicegate.runtime.feed.log_names import log_folder

    assert len(log_folder(tmp_path, STREAM).name.split(".")[1]) == 64
    assert log_folder(tmp_path, STREAM) != log_folder(tmp_path, replace(STREAM, watermark=10, format="json"))

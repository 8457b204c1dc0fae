"""The ledger on disk: what was given stays given, whatever happens to queries, processes and files (R8)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from threading import Barrier, Thread

import pytest

from sluicegate.errors import DiagnosticError, InvariantError
from sluicegate.expr.nodes import Column, Compare, Expr, In, Literal, Op, conjoin
from sluicegate.expr.types import BIGINT, DOUBLE, STRING
from sluicegate.graph.json_expr import GraphFormatError
from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.policy.entries import Entry, Extent
from sluicegate.policy.ledger import Admitted, Refused
from sluicegate.policy.model import Grant, LeastWindow, Privilege, StreamRef, Subject
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.rewrite.releases import find_releases
from sluicegate.runtime.ledger import Ledger
from sluicegate.runtime.ledger_account import UNKNOWN
from sluicegate.runtime.ledger_records import ADMITTED, Record, read_record, write_record
from sluicegate.targets.ledger_codes import LEDGER_STORE_CODES
from sluicegate.testing.cases import random_case

HOUR = 3_600_000_000
GRANTS = {
    name: Grant(name, Subject("R"), Privilege.AGGREGATE, (StreamRef("S", "S"),), least=least)
    for name, least in (("two", LeastWindow(2 * HOUR, 2 * HOUR)), ("rows", LeastWindow(3, 3, rows=True)))
}
NARROWING = conjoin(
    Compare(Op.GE, Column("S", "x", DOUBLE), Literal(0.1, DOUBLE)),
    In(Column("S", "g", STRING), (Literal("a\n\x1f‿\ud800", STRING), Literal("`", STRING))),
)


def entry(size: int, begin: int | None = 0, end: int | None = None, who: str = "ann") -> Entry:
    window = TimeWindow(size * HOUR, size * HOUR)
    return Entry(who, "two", ("S",), AggFunction.SUM, ("S", "x"), window, extent=Extent(begin, end))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path)
    yield made
    made.shut()


def reopened(folder: Path) -> Ledger:
    """As a new process would find it now; the old one still has its own."""
    copy = Path(mkdtemp(dir=folder))
    shutil.copy(folder / "ledger.log", copy)
    return Ledger(copy)


def give(ledger: Ledger, *entries: Entry, query: str = "") -> Admitted:
    answer = ledger.admit(entries[0].principal, entries, GRANTS, query)
    assert isinstance(answer, Admitted), answer
    return answer


def deny(ledger: Ledger, *entries: Entry) -> str:
    answer = ledger.admit(entries[0].principal, entries, GRANTS)
    assert isinstance(answer, Refused)
    return answer.code


def assert_closed(ledger: Ledger) -> None:
    """It gives nothing, tells principals nothing of why, and does not stand in the way of others."""
    assert ledger.damage is not None
    for ask in (lambda: ledger.admit("bob", [entry(2, who="bob")], GRANTS), lambda: ledger.past("ann")):
        with pytest.raises(DiagnosticError) as error:
            ask()
        (found,) = error.value.diagnostics
        assert found.code == "ledger-unreadable"
        assert found.code in LEDGER_STORE_CODES
        assert ledger.damage not in str(error.value)
    assert ledger.admit("bob", [], GRANTS) == Admitted(())


def test_what_was_given_stays_after_a_restart(ledger: Ledger, tmp_path: Path) -> None:
    give(ledger, entry(6))
    ledger.shut()
    again = Ledger(tmp_path)
    assert again.past("ann") == (entry(6),)
    assert deny(again, entry(5)) == "ledger-grid"
    give(again, entry(4))
    assert again.past("ann") == (entry(6), entry(4))
    again.shut()


def test_a_refused_query_leaves_nothing(ledger: Ledger, tmp_path: Path) -> None:
    give(ledger, entry(6))
    assert deny(ledger, entry(12), entry(5)) == "ledger-grid"
    assert ledger.past("ann") == reopened(tmp_path).past("ann") == (entry(6),)


def test_principals_do_not_share_an_account(ledger: Ledger) -> None:
    give(ledger, entry(2))
    give(ledger, entry(3, who="bob"))
    assert deny(ledger, entry(3)) == "ledger-grid"
    with pytest.raises(InvariantError):
        ledger.admit("bob", [entry(2)], GRANTS)


def test_every_part_of_an_entry_is_kept(ledger: Ledger, tmp_path: Path) -> None:
    whole = Entry(
        "ann",
        "rows",
        ("T", "S"),
        AggFunction.COUNT_DISTINCT,
        None,
        TupleWindow(3, 4),
        (("S", "h"), ("S\x1f1", "g")),
        NARROWING,
        (TimeWindow(5, 0), TupleWindow(0, 0)),
        Extent(-7, None),
        4,
    )
    bare = Entry("ann", "two", ("U",), AggFunction.AVG, ("U", "é"), TimeWindow(HOUR, HOUR))
    give(ledger, whole, bare)
    assert reopened(tmp_path).past("ann") == (whole, bare)


def test_tuple_windows_go_on_counting_after_a_restart(ledger: Ledger, tmp_path: Path) -> None:
    counted = replace(entry(2), grant="rows", window=TupleWindow(3, 3))
    assert give(ledger, counted).continues == ()
    later = replace(counted, extent=Extent(100, None))
    assert give(reopened(tmp_path), later).continues == (counted,)


def test_a_removed_query_binds_only_what_it_read(ledger: Ledger, tmp_path: Path) -> None:
    give(ledger, entry(2, 0))
    ledger.close("ann", [entry(2, 0)], 10 * HOUR)
    again = reopened(tmp_path)
    for each in (ledger, again):
        assert each.past("ann") == (entry(2, 0, 10 * HOUR + 1),)
        assert deny(each, entry(3, 10 * HOUR)) == "ledger-grid"
        give(each, entry(3, 10 * HOUR + 1))


def test_a_query_that_read_nothing_binds_nothing(ledger: Ledger, tmp_path: Path) -> None:
    for last in (None, 99):
        give(ledger, entry(2, 100))
        ledger.close("ann", [entry(2, 100)], last)
        assert ledger.past("ann") == reopened(tmp_path).past("ann") == ()


def test_where_nobody_knows_how_far_it_read_all_of_it_was_given(ledger: Ledger, tmp_path: Path) -> None:
    give(ledger, entry(2, 100), query="q")
    ledger.close("ann", [entry(2, 100)], UNKNOWN, "q")
    for each in (ledger, reopened(tmp_path)):
        assert each.open_entries("ann", "q") == ()
        assert each.past("ann") == (entry(2, 100),)
        assert deny(each, entry(3, 10**9)) == "ledger-grid"


def test_what_is_kept_stays_however_the_query_ends(ledger: Ledger, tmp_path: Path) -> None:
    give(ledger, entry(2, 0), query="q")
    ledger.keep("ann", [entry(2, 0), entry(4, 0)], 49, "q")
    ledger.keep("ann", [entry(2, 0)], None, "q")
    ledger.close("ann", [entry(2, 0)], None, "q")
    assert ledger.past("ann") == reopened(tmp_path).past("ann") == (entry(2, 0, 50),)


def test_it_is_told_what_a_call_put_on_record(ledger: Ledger) -> None:
    assert give(ledger, entry(2), query="q").added == (entry(2),)
    assert give(ledger, entry(2), query="q").added == ()
    assert give(ledger, entry(2), entry(4), query="q").added == (entry(4),)
    assert give(ledger, entry(2)).added == (entry(2),)


def test_closing_never_lengthens_and_never_ends_what_another_query_is_given(ledger: Ledger) -> None:
    give(ledger, entry(2, 0, 5))
    ledger.close("ann", [entry(2, 0, 5)], 50)
    assert ledger.past("ann") == (entry(2, 0, 5),)
    give(ledger, entry(4, 0))
    give(ledger, entry(4, 0))
    ledger.close("ann", [entry(4, 0)], 50)
    assert entry(4, 0) in ledger.past("ann")
    ledger.close("ann", [entry(6, 0), entry(4, 1)], 50)
    assert entry(4, 0) in ledger.past("ann")
    ledger.close("ann", [entry(4, 0)], 60)
    assert entry(4, 0) not in ledger.past("ann")
    assert entry(4, 0, 61) in ledger.past("ann")


def test_a_named_query_may_be_admitted_and_closed_again(ledger: Ledger, tmp_path: Path) -> None:
    for name in ("q1", "q2", "q1", "q1"):
        give(ledger, entry(2), query=name)
    for _ in range(3):
        ledger.close("ann", [entry(2)], 50, "q1")
    for each in (ledger, reopened(tmp_path)):
        assert each.open_entries("ann", "q1") == ()
        assert each.open_entries("ann", "q2") == (entry(2),)
        assert entry(2) in each.past("ann")


def test_ended_stretches_that_overlap_are_one_and_those_that_touch_are_not(ledger: Ledger) -> None:
    for begin, last in ((0, 9), (5, 19), (20, 29), (3, 4)):
        give(ledger, entry(2, begin))
        ledger.close("ann", [entry(2, begin)], last)
    assert ledger.past("ann") == (entry(2, 0, 20), entry(2, 20, 30))


def test_files_are_private(ledger: Ledger, tmp_path: Path) -> None:
    give(ledger, entry(2))
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.is_file()} == {0o600}


def test_a_second_process_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from sluicegate.runtime.ledger import Ledger; Ledger(pathlib.Path(sys.argv[1]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode != 0
    assert "ledger-busy" in ran.stderr
    ledger.shut()
    Ledger(tmp_path).shut()


def test_wherever_the_last_line_is_torn_what_was_acknowledged_is_there(
    ledger: Ledger, tmp_path: Path
) -> None:
    give(ledger, entry(2))
    log = tmp_path / "ledger.log"
    before = log.stat().st_size
    give(ledger, entry(4))
    content = log.read_bytes()
    for length in sorted({*range(before, len(content), 11), len(content) - 1}):
        folder = tmp_path / f"torn{length}"
        folder.mkdir()
        (folder / "ledger.log").write_bytes(content[:length])
        torn = Ledger(folder)
        assert torn.past("ann") == (entry(2),)
        give(torn, entry(8))
        torn.shut()
        last = Ledger(folder)
        assert last.past("ann") == (entry(2), entry(8))
        last.shut()


def test_any_other_damage_refuses(ledger: Ledger, tmp_path: Path) -> None:
    for size in (2, 4, 6):
        give(ledger, entry(size))
    lines = (tmp_path / "ledger.log").read_bytes().splitlines(keepends=True)
    rng = Random(5)
    damaged = [
        b"",
        b"\n",
        b"".join(lines[1:]),
        b"".join((*lines[:2], *lines[3:])),
        b"".join((*lines, lines[2])),
        b"".join((*lines[:2], b"garbage\n", *lines[2:])),
        b"\0" * 512 + b"".join(lines),
    ]
    whole = b"".join(lines)
    for _ in range(40):
        at = rng.randrange(len(whole) - 1)
        damaged.append(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
    for number, content in enumerate(damaged):
        folder = tmp_path / f"damaged{number}"
        folder.mkdir()
        (folder / "ledger.log").write_bytes(content)
        found = Ledger(folder)
        assert_closed(found)
        found.shut()
        assert (folder / "ledger.log").read_bytes() == content


def test_a_record_of_another_make_refuses(ledger: Ledger, tmp_path: Path) -> None:
    text = write_record(Record(ADMITTED, "ann", "", (entry(2),)))
    for old, new in (
        ('"SUM"', '"SUMS"'),
        ('"time"', '"session"'),
        (ADMITTED, "forgotten"),
        ('"min_group":0', '"min_group":-1'),
        ('"min_group":0', '"min_group":0,"more":1'),
        ('"extent":[0,null]', '"extent":[0.5,null]'),
        ('"literal"', '"verbatim"'),
    ):
        assert old in text
        with pytest.raises((ValueError, GraphFormatError)):
            read_record(text.replace(old, new))
    assert ledger._file is not None
    ledger._file.append(text.replace('"SUM"', '"SUMS"'))
    assert_closed(reopened(tmp_path))


def test_an_unreachable_folder_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    assert_closed(Ledger(tmp_path / "file" / "ledger"))
    (tmp_path / "ledger.log").mkdir()
    found = Ledger(tmp_path)
    assert_closed(found)
    found.shut()


@pytest.mark.parametrize("broken", ["write", "fsync"])
def test_what_cannot_be_written_is_not_given(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    give(ledger, entry(2))

    def fail(*_: object) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail)
        with pytest.raises(DiagnosticError, match="ledger-unreadable"):
            ledger.admit("ann", [entry(4)], GRANTS)
    assert_closed(ledger)
    ledger.shut()
    again = Ledger(tmp_path)
    assert entry(2) in again.past("ann")
    give(again, entry(4))
    again.shut()


def test_half_a_line_is_not_followed_by_another(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(ledger, entry(2))
    real = os.write

    def stop(file: int, content: bytes) -> int:
        real(file, content[:20])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            ledger.admit("ann", [entry(4)], GRANTS)
    assert_closed(ledger)
    assert reopened(tmp_path).past("ann") == (entry(2),)


def test_a_shut_ledger_gives_nothing(ledger: Ledger) -> None:
    ledger.shut()
    assert_closed(ledger)


def test_of_rivals_one_is_given(ledger: Ledger, tmp_path: Path) -> None:
    """Sizes that share no grid, asked for at once: whoever comes first, the others are refused."""
    sizes = (2, 3, 5, 7)
    for round_ in range(20):
        who = f"user {round_}"
        answers: list[Admitted | Refused] = []
        barrier = Barrier(len(sizes))

        def ask(size: int, who: str = who, barrier: Barrier = barrier, answers: list = answers) -> None:
            barrier.wait()
            answers.append(ledger.admit(who, [entry(size, who=who)], GRANTS))

        threads = [Thread(target=ask, args=(size,)) for size in sizes]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        (given,) = (each for each in answers if isinstance(each, Admitted))
        assert ledger.past(who) == given.entries
    again = reopened(tmp_path)
    assert all(again.past(f"user {at}") == ledger.past(f"user {at}") for at in range(20))


def test_without_a_folder_it_lasts_as_long_as_the_object() -> None:
    found = Ledger(None)
    give(found, entry(2))
    assert deny(found, entry(3)) == "ledger-grid"
    assert Ledger(None).past("ann") == ()


def test_what_random_queries_release_is_read_as_written() -> None:
    written = 0
    for number in range(150):
        case = random_case(Random(5_000_000 + number))
        draft = rewrite(case.catalog, case.catalog.users[case.user], case.root, case.united)
        found = find_releases(draft, case.user, Extent(number, None))
        record = Record(ADMITTED, case.user, str(number), found)
        assert read_record(write_record(record)) == record
        written += bool(found)
    assert written > 20


def test_a_value_that_would_be_read_otherwise_is_not_written() -> None:
    def narrowed(narrowing: Expr) -> Record:
        return Record(ADMITTED, "ann", "", (replace(entry(2), narrowing=narrowing),))

    assert read_record(write_record(narrowed(Literal(2**60, BIGINT)))) == narrowed(Literal(2**60, BIGINT))
    with pytest.raises(ValueError, match="JSON"):
        write_record(narrowed(Literal(float("nan"), DOUBLE)))

"""Tables of a database without Spark: what a reading finds, what is in force when, what is refused, what is kept."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError
from sluicegate.language.database_options import read_database
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_statements import print_statement
from sluicegate.policy.model import Stream
from sluicegate.source import SourceText

pa = pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from sluicegate.runtime.table import keyed_rows, table_log  # noqa: E402 — only where pyarrow is
from sluicegate.runtime.table.databases import SqliteDatabase, find_secret, open_database  # noqa: E402
from sluicegate.runtime.table.fit_values import fit_rows, fit_values  # noqa: E402
from sluicegate.runtime.table.keyed_rows import KeyedRows  # noqa: E402
from sluicegate.runtime.table.load import load_table  # noqa: E402
from sluicegate.runtime.table.poll import Poll  # noqa: E402
from sluicegate.runtime.table.table_feed import TableFeed  # noqa: E402
from sluicegate.runtime.table.table_log import TableLog  # noqa: E402

TEXT = """CREATE STREAM R (k INT, name STRING, ok BOOLEAN, at TIMESTAMP, x DOUBLE) KEY (k)
  FROM sqlite OPTIONS (path = '{path}', table = 'odd "%" name', every = '1 second'{more});"""


class Table:
    """A table of SQLite and whatever reads it."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.path = folder / "data ?#.db"
        self.run('CREATE TABLE "odd ""%"" name" (k, name, ok, at, x, v INTEGER)')
        self.stream = read_catalog(TEXT.format(path=self.path, more=more)).streams["R"]
        self.folder = folder / "log"
        self.open()

    def open(self) -> None:
        self.log = TableLog(self.folder, self.stream)
        self.rows = KeyedRows(self.log)
        declared = read_database(self.stream)
        self.poll = Poll(self.rows, open_database(declared), declared)

    def run(self, text: str, *values: object) -> None:
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute(text, values)

    def change(self, text: str) -> None:
        self.run(f'UPDATE "odd ""%"" name" SET {text}')

    def put(
        self, key: object, name: object = "a", ok: object = 1, at: object = None, v: int | None = 0
    ) -> None:
        self.run('INSERT INTO "odd ""%"" name" VALUES (?, ?, ?, ?, 0.5, ?)', key, name, ok, at, v)

    def read(self) -> bool:
        self.poll.read()
        return self.poll.take()

    @property
    def names(self) -> dict[int, str]:
        found = self.log.read_in_force(self.log.end).to_pylist()
        return {row["k"]: row["name"] for row in found}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_rows_are_loaded_replaced_and_deleted(table: Table) -> None:
    table.put(1, "a", 0, "2026-01-01 10:00:00")
    table.put(2, None, None)
    assert table.read()
    first = table.log.read_in_force(table.log.end).to_pylist()
    assert [(row["k"], row["name"], row["ok"], row["x"]) for row in first] == [
        (1, "a", False, 0.5),
        (2, None, None, 0.5),
    ]
    assert first[0]["at"].isoformat() == "2026-01-01T10:00:00+00:00"
    assert not table.read()
    assert table.log.end == 1
    table.run('UPDATE "odd ""%"" name" SET name = \'b\' WHERE k = 1')
    table.run('DELETE FROM "odd ""%"" name" WHERE k = 2')
    assert table.read()
    assert table.names == {1: "b"}
    # what was in force before can still be told
    assert [row["name"] for row in table.log.read_in_force(1).to_pylist()] == ["a", None]


@pytest.mark.parametrize(
    "bad",
    [
        ("nine", "a", 1, None),
        (None, "a", 1, None),
        (2**31, "a", 1, None),
        (9, b"\xff", 1, None),
        (9, 5, 1, None),
        (9, "a", 2, None),
        (9, "a", 1, "noon"),
        (9, "a", 1, 5),
    ],
)
def test_a_row_that_does_not_fit_is_not_in_force_and_hides_no_other(
    table: Table, bad: tuple[Any, ...]
) -> None:
    table.put(9, "before")
    table.put(1)
    table.read()
    table.run('DELETE FROM "odd ""%"" name" WHERE k = 9')
    table.put(*bad)
    table.read()
    assert table.names == {1: "a"}
    assert load_table(table.stream).table["k"].to_pylist() == [1]


def test_a_key_that_two_rows_have_is_nobodys(table: Table) -> None:
    table.put(1, "one")
    table.put(2, "two")
    table.read()
    table.put(1, "other")
    assert table.read()
    assert table.names == {2: "two"}
    assert load_table(table.stream).table["k"].to_pylist() == [2]


def test_a_column_that_is_missing_is_not_taken_for_a_text(table: Table) -> None:
    table.run('ALTER TABLE "odd ""%"" name" DROP COLUMN name')
    with pytest.raises(sqlite3.OperationalError):
        table.poll.read()
    with pytest.raises(DiagnosticError) as error:
        load_table(table.stream)
    assert error.value.diagnostics[0].code == "table-unreachable"


def test_too_many_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(tmp_path, ", rows = '1'")
    table.put(1)
    table.read()
    table.put(2)
    with pytest.raises(DiagnosticError) as error:
        table.poll.read()
    assert error.value.diagnostics[0].code == "table-too-large"
    table.poll.forget()
    assert table.rows.clear()
    assert table.names == {}
    monkeypatch.setattr(keyed_rows, "MOST_BYTES", 10)
    table.run('DELETE FROM "odd ""%"" name" WHERE k = 2')
    with pytest.raises(DiagnosticError) as error:
        table.poll.read()
    assert error.value.diagnostics[0].code == "table-too-large"


def test_by_version_only_what_changed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(tmp_path, ", version = 'v'")
    for key in range(5):
        table.put(key, "a", v=key)
    table.read()
    read: list[object] = []
    rows = Poll._read_rows
    monkeypatch.setattr(Poll, "_read_rows", lambda self, since: read.append(since) or rows(self, since))
    table.run('UPDATE "odd ""%"" name" SET name = \'b\', v = 9 WHERE k = 1')
    table.put(7, "new", v=10)
    assert table.read()
    assert table.names == {0: "a", 1: "b", 2: "a", 3: "a", 4: "a", 7: "new"}
    assert read == [4]
    # a deleted row has no version: the count tells, and all is compared
    table.run('DELETE FROM "odd ""%"" name" WHERE k = 0')
    assert table.read()
    assert 0 not in table.names
    assert read == [4, 10, None]
    # one that was not given a new version is found when all is compared
    table.run('UPDATE "odd ""%"" name" SET name = \'late\' WHERE k = 2')
    assert not table.read()
    monkeypatch.setattr(Poll, "_is_due", lambda _: True)
    assert table.read()
    assert table.names[2] == "late"


@pytest.fixture
def versioned(tmp_path: Path) -> Table:
    """Three rows, of which none is compared again unless there is a reason."""
    table = Table(tmp_path, ", version = 'v', compare = '1 hour'")
    for key, version in ((1, 10), (2, 10), (3, 11)):
        table.put(key, "a", v=version)
    table.read()
    return table


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ("name = 'restored', v = v - 10", {1: "restored", 2: "restored", 3: "restored"}),
        ("k = 2, v = 12 WHERE k = 1", {3: "a"}),
        ("k = 4, v = 12 WHERE k = 1", {2: "a", 3: "a", 4: "a"}),
        ("name = 'b', v = NULL WHERE k = 1", {1: "b", 2: "a", 3: "a"}),
    ],
)
def test_what_no_version_tells_is_told_by_counting(
    versioned: Table, change: str, wanted: dict[int, str]
) -> None:
    versioned.change(change)
    versioned.read()
    assert versioned.names == wanted
    assert not versioned.read()


@pytest.mark.parametrize("other", ["b", 5])
def test_a_row_out_of_force_counts_for_its_key_whatever_its_version(versioned: Table, other: object) -> None:
    versioned.put(1, other, v=10)
    versioned.read()
    assert versioned.names == {2: "a", 3: "a"}
    versioned.put(1, "third", v=12)
    versioned.read()
    assert versioned.names == {2: "a", 3: "a"}
    versioned.run("""DELETE FROM "odd ""%"" name" WHERE k = 1 AND name <> 'a'""")
    versioned.read()
    assert versioned.names == {1: "a", 2: "a", 3: "a"}


def test_a_row_that_does_not_fit_clashes_wherever_the_table_is_read(table: Table) -> None:
    table.put(1, "fits")
    table.put(1, 5)
    table.put(2)
    table.read()
    loaded = load_table(table.stream)
    assert loaded.table["k"].to_pylist() == list(table.names) == [2]
    assert [each.reason for each in loaded.dead][1:] == ["the key is not the row's alone"]


def make_feed(table: Table, every: str) -> TableFeed:
    text = f"ALTER STREAM R OPTIONS (path = '{table.path}', table = 'odd \"%\" name', {every});"
    catalog = read_catalog(TEXT.format(path=table.path, more="") + text)
    return TableFeed(catalog.streams["R"], table.folder)


def wait_until(feed: TableFeed, rows: int) -> bool:
    until = time.monotonic() + 10
    while len(feed.rows.index) != rows and time.monotonic() < until:
        time.sleep(0.01)
    return len(feed.rows.index) == rows


def test_a_table_that_is_seldom_read_stays_in_force(table: Table) -> None:
    table.put(1)
    feed = make_feed(table, "every = '1 hour', within = '100 ms'")
    feed.start()
    assert wait_until(feed, 1)
    time.sleep(0.4)
    assert (len(feed.rows.index), feed.failure) == (1, None)
    feed.stop()


def test_a_reading_that_is_slow_after_one_that_was_given_up_is_not_cut_short(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.put(1)
    feed = make_feed(table, "every = '100 ms', within = '400 ms'")
    back, cut, read = threading.Event(), threading.Event(), Poll.read

    def read_slowly(poll: Poll) -> None:
        cut.clear()
        if not back.is_set() or cut.wait(0.25):
            raise sqlite3.OperationalError("interrupted")
        read(poll)

    monkeypatch.setattr(Poll, "read", read_slowly)
    monkeypatch.setattr(SqliteDatabase, "interrupt", lambda _: cut.set())
    feed.start()
    until = time.monotonic() + 10
    while feed.failure is None and time.monotonic() < until:
        time.sleep(0.01)
    assert feed.failure == "the table of `R` cannot be read"
    back.set()
    assert wait_until(feed, 1)
    feed.stop()


def test_random_changes_are_what_is_in_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_log, "_MANY_BATCHES", 4)
    rng, table = Random(5), Table(tmp_path, ", version = 'v'")
    wanted: dict[int, str] = {}
    history: dict[int, dict[int, str]] = {}
    for step in range(60):
        for _ in range(rng.randint(0, 4)):
            key, name = rng.randint(0, 30), rng.choice("abc")
            table.run('DELETE FROM "odd ""%"" name" WHERE k = ?', key)
            wanted.pop(key, None)
            if rng.random() < 0.7:
                table.put(key, name, v=step)
                wanted[key] = name
        table.read()
        assert table.names == wanted
        history[table.log.end] = dict(wanted)
        if rng.random() < 0.1:
            table.log.compact(rng.randint(0, table.log.end))
        if rng.random() < 0.1:
            table.open()
        for mark in rng.sample(sorted(history), min(len(history), 3)):
            then = history[mark]
            if table.log.holds(mark):
                rows = table.log.read_in_force(mark).to_pylist()
                assert {row["k"]: row["name"] for row in rows} == then
    assert not table.log.holds(min(history))


def test_the_log_keeps_what_is_in_force_and_little_else(table: Table) -> None:
    table.put(1)
    for at in range(80):
        table.run('UPDATE "odd ""%"" name" SET name = ?', str(at))
        table.read()
    table.log.compact(table.log.end)
    assert [each.rows for each in table.log.batches()] == [1]
    assert table.names == {1: "79"}
    table.open()
    assert table.names == {1: "79"}
    assert not table.read()
    (next(table.log.batches()[0].path.glob("_ends.npy"))).write_bytes(b"no numbers")
    with pytest.raises(DiagnosticError, match="does not say what has ended"):
        table.open()


def test_pushed_rows_replace_each_other(tmp_path: Path) -> None:
    stream = read_catalog("CREATE STREAM R (k INT, name STRING) KEY (k);").streams["R"]
    rows = KeyedRows(TableLog(tmp_path, stream))
    rows.upsert(pa.table({"k": pa.array([1, 2, 1], pa.int32()), "name": ["a", "b", "c"]}))
    rows.upsert(pa.table({"k": pa.array([2], pa.int32()), "name": ["b"]}))
    assert rows.log.end == 1
    rows.upsert(pa.table({"k": pa.array([2], pa.int32()), "name": ["d"]}))
    found = rows.log.read_in_force(rows.log.end).to_pylist()
    assert [(row["k"], row["name"]) for row in found] == [(1, "c"), (2, "d")]
    with pytest.raises(DiagnosticError, match="no value in its key"):
        rows.upsert(pa.table({"k": pa.array([None], pa.int32()), "name": ["a"]}))


POSTGRES = "CREATE STREAM R (k INT, v INT) KEY (k) FROM postgres OPTIONS (database = 'd', table = 't'{});"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE STREAM R (k INT) FROM sqlite OPTIONS (path = 'p', table = 't');", "table-key"),
        ("CREATE STREAM R (k INT, t TIMESTAMP) TIMESTAMP BY t KEY (k);", "table-key"),
        ("CREATE STREAM R (k INT) KEY (k) FROM kafka OPTIONS (subscribe = 'x');", "table-key"),
        ("CREATE STREAM R (k INT) KEY (other);", "unknown-attribute"),
        ("CREATE STREAM R (k INT) KEY (k, k);", "name-twice"),
        ("CREATE STREAM R (k INT) KEY (k) FROM sqlite OPTIONS (table = 't');", "database-option"),
        ("CREATE STREAM R (k INT) KEY (k); ALTER STREAM R DROP k;", "in-use"),
        (POSTGRES.format(", password = 'geheim'"), "database-secret"),
        (POSTGRES.format(", url = 'postgresql://u:geheim@h/d'"), "database-secret"),
        (POSTGRES.format(", secret = '../geheim'"), "database-secret"),
        (POSTGRES.replace("'d'", "'host=h password=geheim'").format(""), "database-secret"),
        (POSTGRES.format(", colour = 'red'"), "database-option"),
        (POSTGRES.format(", every = '1 ms'"), "database-option"),
        (POSTGRES.format(", every = 'often'"), "bad-duration"),
        (POSTGRES.format(", rows = '0'"), "database-option"),
    ],
)
def test_declarations_that_are_refused(text: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as error:
        read_catalog(text)
    assert error.value.diagnostics[0].code == code
    assert "geheim" not in str(error.value)


def test_a_catalog_with_a_key_is_printed_as_it_is_read() -> None:
    catalog = read_catalog(POSTGRES.format(", secret = 'routes', version = 'v', within = '10 minutes'"))
    printed = "\n".join(f"{print_statement(each)};" for each in catalog_statements(catalog))
    assert read_catalog(printed) == catalog
    changed = apply(catalog, parse_statements(SourceText("t", "ALTER STREAM R KEY (v, k);")))
    assert changed.streams["R"].key == ("v", "k")


def test_secrets_are_found_by_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_secret(None) is None
    with pytest.raises(DiagnosticError) as error:
        find_secret("routes")
    assert error.value.diagnostics[0].code == "database-secret"
    (tmp_path / "routes").write_text("from a file\n")
    monkeypatch.setenv("SLUICEGATE_SECRETS", str(tmp_path))
    assert find_secret("routes") == "from a file"
    monkeypatch.setenv("SLUICEGATE_SECRET_ROUTES", "from the environment")
    assert find_secret("routes") == "from the environment"


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, 1, 2, 2**31 - 1, 2**31, -(2**31) - 1, 2**63, -0.0, 1.5, float("nan"), float("inf"), b"x"]
    ),
    st.sampled_from(
        ["", "a", "\ud800", "2026-01-01 10:00:00+00", "2026-01-01T10:00:00.5Z", "2026-01-01", "infinity"]
    ),
    st.sampled_from([Decimal("1.5"), Decimal("NaN")]),
)
FIVE = read_catalog(
    "CREATE STREAM R (k INT, n BIGINT, s STRING, b BOOLEAN, t TIMESTAMP, x DOUBLE) KEY (k);"
).streams["R"]
LIKELY = st.tuples(
    st.integers(0, 3), st.none() | st.integers(), st.text(), st.sampled_from([0, 1]), st.none(), st.floats()
)


@given(st.lists(st.tuples(*[VALUES] * 6) | LIKELY, min_size=1, max_size=3))
def test_columns_fit_as_rows_do(piece: list[tuple[Any, ...]]) -> None:
    found = fit_rows(FIVE, piece)
    if found is not None:
        assert repr(found) == repr([fit_values(FIVE, row) for row in piece])


def test_what_fits_plainly_is_taken_by_columns() -> None:
    piece = [(1, None, "é", 0, "2026-01-01", -0.0), (2, 2**63 - 1, None, None, None, 1e300)]
    assert repr(fit_rows(FIVE, piece)) == repr([fit_values(FIVE, row) for row in piece])


def test_a_key_is_part_of_what_a_stream_is() -> None:
    assert Stream("R", ()) != Stream("R", (), key=("k",))

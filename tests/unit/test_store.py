"""The store in a file: the log folds to what the language gives, and leads to and from folders without a difference."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from sluicegate.errors import DiagnosticError
from sluicegate.language.load import load_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.service.identity.database import StoreDatabase, create_tables
from sluicegate.service.store import Store, open_store, plan
from sluicegate.service.store.chain import last_entry
from sluicegate.service.store.database import CHANGES
from sluicegate.service.store.difference import find_difference, is_same
from sluicegate.service.store.folding import apply_change
from sluicegate.service.store.migrations import MIGRATIONS_IN_ORDER, Migration, migrate
from sluicegate.service.store.records import Entry
from sluicegate.service.store.sqlite import SqliteDatabase
from unit.store_world import BASE, POLICIES, append_all, changes

EXAMPLES = Path(__file__).parents[2] / "examples"


def codes(error: pytest.ExceptionInfo[DiagnosticError]) -> list[str]:
    return [each.code for each in error.value.diagnostics]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(place: Path) -> Iterator[Store]:
    with open_store(str(place)) as found:
        yield found


@settings(max_examples=12)
@given(found=changes)
def test_the_log_folds_to_what_the_language_gives(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, str | None]]
) -> None:
    place = tmp_path_factory.mktemp("log") / "store.db"
    with open_store(str(place)) as store:
        states = append_all(store, found)
    with open_store(f"sqlite:///{place}") as again:
        assert again.load() == states[-1]
        assert [again.load(version) for version in range(len(states))] == states
        assert again.verify().is_sound
        _check_ways(states)


def _check_ways(states: list[Catalog]) -> None:
    """Any state leads to any other, by no statements only if they are equal."""
    last = states[-1]
    for state in states[-4:]:
        statements = find_difference(last, state)
        assert is_same(last, state) == (not statements)
        if statements:
            assert is_same(apply_change(last, statements, None), state)


@settings(max_examples=5)
@given(found=changes)
def test_an_exported_folder_differs_in_nothing(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, str | None]]
) -> None:
    folder = tmp_path_factory.mktemp("export")
    with open_store(str(folder / "store.db")) as store:
        append_all(store, found)
        store.export(folder / "out")
        assert plan(folder / "out", store).is_empty
        with open_store(str(folder / "other.db")) as other:
            other.fill(folder / "out")
            assert is_same(other.load(), store.load())


@pytest.mark.parametrize("name", ["soldiers", "ships", "hospital", "wearables", "weather", "weather_xacml"])
def test_examples_fill_plan_and_export(store: Store, tmp_path: Path, name: str) -> None:
    assert store.is_empty
    entry = store.fill(EXAMPLES / name)
    assert (entry.version, entry.author, store.version) == (1, None, 1)
    assert is_same(store.load(), load_catalog(EXAMPLES / name))
    assert plan(EXAMPLES / name, store).is_empty
    store.export(tmp_path / "out")
    assert is_same(load_catalog(tmp_path / "out"), store.load())
    with pytest.raises(DiagnosticError) as error:
        store.fill(EXAMPLES / name)
    assert codes(error) == ["store-not-empty"]


def test_a_plan_says_what_a_person_would_write(store: Store, tmp_path: Path) -> None:
    store.append(BASE, None, "start")
    store.export(tmp_path / "out")
    grants = tmp_path / "out" / "grants.sql"
    grants.write_text(grants.read_text().replace("limit_of('a')", "limit_of('a') AND rate > 1.0"))
    users = tmp_path / "out" / "users.sql"
    users.write_text(users.read_text().replace("ward = 'a'", "ward = 'b'") + "CREATE USER dan;")
    made = plan(tmp_path / "out", store, judge=lambda before, after: [f"{len(after.users)} users"])
    assert made.texts[:2] == ["CREATE USER dan;", "ALTER USER ann SET (ward = 'b');"]
    assert made.texts[2].startswith("CREATE OR REPLACE GRANT base READ ")
    assert made.effects == ("3 users",)
    assert (len(made.texts), store.version) == (3, 1)
    assert store.apply(made, "as planned").version == 2
    assert plan(tmp_path / "out", store).is_empty
    with pytest.raises(DiagnosticError) as error:
        store.apply(made, "again")
    assert codes(error) == ["store-conflict"]


def test_where_no_alter_leads_there_everything_is_made_anew(store: Store) -> None:
    """The fact's new type does not fit the grant as it is, nor the grant's new text the fact as it is."""
    store.append(BASE, None, "start")
    store.append("DROP GRANT base; DROP FACT limit_of('a'); SET FACT limit_of('a') = TIMESTAMP '2026-01-01 00:00:00';"
                 "CREATE GRANT base READ (*) ON Pulse WHERE t > limit_of('a') TO doctor;", None, "")  # fmt: skip
    assert "DROP STREAM Pulse;" in store.diff(2, 1)
    store.rollback(1, None, "undo")
    assert is_same(store.load(), store.load(1))


def test_bad_statements_are_refused_with_their_place_and_nothing_is_stored(store: Store) -> None:
    store.append(BASE, None, "start")
    with pytest.raises(DiagnosticError) as error:
        store.append("CREATE ROLE clerk;\nDROP ROLE nobody;", None, "")
    (only,) = error.value.diagnostics
    assert only.span is not None
    assert (only.code, only.span.text, str(only.span)) == ("unknown-role", "nobody", "<statements>:2:11")
    for text, code in [
        ("CREATE", "syntax"),
        ("", "store-nothing"),
        ("BEGIN; CREATE ROLE x;", "not-committed"),
    ]:
        with pytest.raises(DiagnosticError) as error:
            store.append(text, None, "")
        assert codes(error)[0] == code
    assert (store.version, "clerk" in store.load().roles) == (1, False)
    assert [each.event.action for each in store.audit.search()] == ["change"]


def test_an_author_is_bound_by_r19_and_an_administrator_is_none_of_the_users(store: Store) -> None:
    store.append(BASE + "CREATE USER administrator;", None, "start")
    with pytest.raises(DiagnosticError) as error:
        store.append("CREATE ROLE clerk;", "administrator", "")
    assert codes(error) == ["not-allowed"]
    with pytest.raises(DiagnosticError) as error:
        store.append("CREATE GRANT mine READ (*) ON Pulse TO USER ann;", "ann", "")
    assert codes(error) == ["may-not-grant"]
    entry = store.append(
        "CREATE GRANT passed READ (pid) ON Pulse WHERE ward = 'a' AND pid < limit_of('a') TO nurse;",
        "ann",
        "shift",
    )
    assert (entry.author, store.load().grants["passed"].grantor) == ("ann", "ann")
    assert store.history(after=1) == [entry]
    assert store.history()[0].shown_author == "administrator"


def test_a_change_for_an_older_version_is_a_conflict(store: Store) -> None:
    store.append(BASE, None, "start", expected=0)
    store.append("CREATE ROLE a;", None, "", expected=1)
    with pytest.raises(DiagnosticError) as error:
        store.append("CREATE ROLE b;", None, "", expected=1)
    assert codes(error) == ["store-conflict"]
    assert store.version == 2


def test_several_statements_are_one_version_and_rollback_is_a_new_one(store: Store) -> None:
    store.append(BASE, None, "start")
    store.append(
        "BEGIN; DROP GRANT base; ALTER STREAM Pulse DROP rate; COMMIT; DROP USER ann CASCADE;", None, "wrong"
    )
    assert store.version == 2
    assert store.diff(1, 2) == ["DROP GRANT base;", "DROP USER ann;", "ALTER STREAM Pulse DROP rate;"]
    assert store.diff(2, 2) == []
    entry = store.rollback(1, None, "undo", actor="root")
    assert (entry.version, entry.reason, entry.shown_author) == (3, "undo", "administrator (root)")
    assert is_same(store.load(), store.load(1))
    with pytest.raises(DiagnosticError) as error:
        store.rollback(1, None, "undo")
    assert codes(error) == ["store-unchanged"]
    with pytest.raises(DiagnosticError) as error:
        store.load(9)
    assert codes(error) == ["store-version"]


def test_a_rollback_brings_policies_back_and_leaves_the_clock(store: Store, tmp_path: Path) -> None:
    store.append(BASE, None, "start")
    store.append(f"CREATE POLICY 'x' AS {POLICIES[0]}; SET CLOCK TIMESTAMP '2026-01-01';", None, "policy")
    store.append(f"CREATE OR REPLACE POLICY 'x' AS {POLICIES[1]};", None, "other")
    store.append("DROP POLICY 'x'; SET CLOCK TIMESTAMP '2026-01-02';", None, "gone")
    later = store.load().judged_at
    store.rollback(2, None, "undo")
    assert store.load().policies == store.load(2).policies
    assert len(store.load().policies) == 1
    assert store.load().judged_at == later
    store.export(tmp_path / "out")
    assert is_same(load_catalog(tmp_path / "out"), store.load())


def test_a_rollback_is_bound_by_its_author_s_rights(store: Store) -> None:
    store.append(BASE, None, "start")
    store.append("CREATE ROLE clerk;", None, "")
    with pytest.raises(DiagnosticError) as error:
        store.rollback(1, "bob", "undo")
    assert codes(error) == ["not-allowed"]


def test_two_openings_see_each_other_and_writers_take_turns(store: Store, place: Path) -> None:
    store.append(BASE, None, "start")
    told: list[int] = []
    seen = threading.Event()

    def take(version: int) -> None:
        told.append(version)
        if len(told) == 1:
            raise RuntimeError("not yet")
        seen.set()

    with store.watch(take), open_store(str(place)) as other:

        def add(mine: Store, name: str) -> None:
            for number in range(5):
                mine.append(f"CREATE ROLE {name}{number};", None, "")

        threads = [
            threading.Thread(target=add, args=(store, "x")),
            threading.Thread(target=add, args=(other, "y")),
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert store.load() == other.load()
        assert len(other.load().roles) == 12
        assert seen.wait(10)
    assert store.verify().is_sound


def test_the_files_are_private_and_other_files_are_refused(store: Store, place: Path, tmp_path: Path) -> None:
    store.append(BASE, None, "start")
    files = [each for each in place.parent.iterdir() if each.name.startswith(place.name)]
    assert len(files) == 3
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at as one" * 40)
    for url, code in [
        (str(tmp_path / "text.db"), "store-unreadable"),
        (str(tmp_path), "store-url"),
        (str(tmp_path / "no" / "where.db"), "store-missing"),
        ("mysql://u:secret@h/d", "store-url"),
        ("sqlite://host/x", "store-url"),
        ("", "store-url"),
    ]:
        with pytest.raises(DiagnosticError) as error:
            open_store(url)
        assert codes(error) == [code]
        assert "secret" not in str(error.value)
    with pytest.raises(DiagnosticError) as error:
        open_store(str(tmp_path / "absent.db"), create=False)
    assert codes(error) == ["store-missing"]
    assert not (tmp_path / "absent.db").exists()


def test_a_change_is_on_disk_when_the_call_returns(store: Store) -> None:
    connection = store._database._connected()  # type: ignore[attr-defined]
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_steps_are_taken_once_and_a_newer_store_is_refused(place: Path) -> None:
    database = SqliteDatabase(place)
    migrate(database, True, MIGRATIONS_IN_ORDER[:1])
    migrate(database, True)
    migrate(database, True)
    more = Migration("more", ("CREATE TABLE more (a BIGINT)",))
    migrate(database, False, (*MIGRATIONS_IN_ORDER, more))
    database.close()
    with pytest.raises(DiagnosticError) as error:
        open_store(str(place))
    assert codes(error) == ["store-newer"]


def test_a_history_with_event_time_in_narrow_by_is_folded_without_it(place: Path) -> None:
    """Earlier versions took such grants: they narrow by nothing but the rest, and new ones are refused."""
    wide = (
        "CREATE GRANT g SUM (x) ON S NARROW BY (k, ts) WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour'"
        " TO USER {} WITH GRANT OPTION;"
    )
    with open_store(str(place)) as store:
        store.append(
            "CREATE USER u; CREATE USER v;"
            " CREATE STREAM S (ts TIMESTAMP, k INT, x INT) TIMESTAMP BY ts OWNER u;",
            None,
            "a",
        )
        _record(store, wide.format("v"), "u")
        _record(store, wide.format("u").replace("GRANT g", "GRANT h"), "v")
        _record(store, "DROP GRANT g;", "u")
    with open_store(str(place)) as store:
        assert store.load().grants == {}
        old = store.load(3)
        assert [[each.name for each in old.grants[name].narrow_by] for name in "gh"] == [["k"], ["k"]]
        assert store.verify().is_sound
        with pytest.raises(DiagnosticError) as error:
            store.append(wide.format("v"), "u", "again")
        assert codes(error) == ["narrow-by-event-time"]
        store.rollback(3, None, "back")
        assert is_same(store.load(), old)


def _record(store: Store, statement: str, author: str) -> None:
    """As a version wrote it that found nothing wrong with it."""
    with store._database.transaction(CHANGES) as found:
        version, link = last_entry(found)
        entry = Entry(version + 1, (statement,), author, author, "2026-01-01T00:00:00Z", "old", link, "")
        store._write(found, replace(entry, hash=entry.seal()), "")


def test_accounts_of_before_their_step_are_kept(place: Path) -> None:
    """Gateways made these tables themselves before there was a step for them."""
    database = SqliteDatabase(place)
    migrate(database, True, MIGRATIONS_IN_ORDER[:2])
    accounts = StoreDatabase(database)
    create_tables(accounts)
    accounts.execute("INSERT INTO identity_cutoffs VALUES (?, ?)", ("ann", 7))
    migrate(database, True)
    assert accounts.query("SELECT * FROM identity_cutoffs") == [("ann", 7)]
    assert accounts.query("SELECT * FROM sluicegate_paused") == []
    database.close()


def test_a_held_store_is_busy_and_unchanged(place: Path) -> None:
    database, other = SqliteDatabase(place), SqliteDatabase(place, busy=0.05)
    migrate(database, True)
    with database.transaction(write=True), pytest.raises(DiagnosticError) as error:
        Store(other).append("CREATE ROLE a;", None, "")
    assert codes(error) == ["store-busy"]
    assert Store(other).version == 0
    other.close()
    database.close()


def test_an_export_does_not_stand_beside_other_statements(store: Store, tmp_path: Path) -> None:
    store.append(BASE, None, "start")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "old.sql").write_text("CREATE ROLE doctor;")
    with pytest.raises(DiagnosticError) as error:
        store.export(folder)
    assert codes(error) == ["export-folder"]
    store.export(folder, replace=True)
    assert plan(folder, store).is_empty
    assert sorted(each.name for each in folder.iterdir()) == [
        "facts.sql", "grants.sql", "roles.sql", "streams.sql", "users.sql",
    ]  # fmt: skip


WRITER = """
import sys
from sluicegate.service.store import open_store
store = open_store(sys.argv[1])
for number in range(100000):
    print(store.append(f"CREATE ROLE r{number};", None, "").version, flush=True)
"""


def test_what_was_acknowledged_outlives_kill_9(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(place)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        acknowledged = 0
        for line in child.stdout:
            acknowledged = int(line)
            if acknowledged == 7:
                child.kill()
        child.wait()
    with open_store(str(place), create=False) as store:
        assert store.version >= acknowledged >= 7
        assert len(store.load().roles) == store.version
        assert store.verify().is_sound


def test_a_torn_write_ahead_log_ends_at_a_whole_change(place: Path, tmp_path: Path) -> None:
    """Copies of the files as a machine that stopped could leave them: the log beside the file cut anywhere."""
    with open_store(str(place)) as store:
        store.append(BASE, None, "start")
        for number in range(4):
            store.append(f"CREATE ROLE r{number};", None, "")
        content, log = place.read_bytes(), Path(f"{place}-wal").read_bytes()
    versions = set()
    for cut in range(len(log), len(log) // 3, -4177):
        torn = tmp_path / f"torn{cut}.db"
        torn.write_bytes(content)
        Path(f"{torn}-wal").write_bytes(log[:cut])
        with open_store(str(torn)) as store:
            assert store.verify().is_sound
            assert len(store.load().roles) == (store.version + 1 if store.version else 0)
            versions.add(store.version)
    assert {4, 5} <= versions


def test_many_versions_open_quickly(store: Store, place: Path) -> None:
    store.append(BASE, None, "start")
    for number in range(100):
        store.append(f"SET FACT limit_of('a') = {number};", None, "")
    began = time.perf_counter()
    with open_store(str(place)) as again:
        assert again.load() == store.load()
        assert again.load(70) == store.load(70)
    assert time.perf_counter() - began < 5

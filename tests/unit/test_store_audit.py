"""The audit log, the chains, backup and restore: what was written is found again, what was changed since is named."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.service.store import Entry, Event, Search, Store, open_store
from sluicegate.service.store.records import entry_row, write_time

START = datetime(2026, 1, 1, tzinfo=UTC)
ROLES = [f"CREATE ROLE r{number};" for number in range(4)]


class Ticking:
    """A second later each time it is asked."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(place: Path) -> Iterator[Store]:
    with open_store(str(place), clock=Ticking()) as found:
        for text in ROLES:
            found.append(text, None, "a reason", actor="root", request="q-1")
        found.audit.record(
            Event(
                "ann", "query", "SELECT 50% FROM S_1", 4, ("g1", "g2"), "partial", ("`x` is left out",), "q-2"
            ),
            Event("bob", "query", "SELECT a FROM S21 -- \0 \ud800", 4, decision="deny"),
        )
        yield found


def tamper(place: Path, sql: str, *params: object) -> None:
    """As somebody could who can write to the file, and takes the guards away first."""
    connection = sqlite3.connect(place)
    for table in ("sluicegate_changes", "sluicegate_events"):
        for verb in ("update", "delete"):
            connection.execute(f"DROP TRIGGER {table}_no_{verb}")
    connection.execute(sql, params)
    connection.commit()
    connection.close()


def test_events_are_found_by_each_of_their_parts(store: Store) -> None:
    def found(**wanted: object) -> list[int]:
        return [each.number for each in store.audit.search(Search(**wanted))]  # type: ignore[arg-type]

    assert found() == [1, 2, 3, 4, 5, 6]
    assert found(principal="ann") == [5]
    assert found(action="change") == [1, 2, 3, 4]
    assert found(version=4) == [4, 5, 6]
    assert found(text="left OUT") == [5]
    assert found(text="g2") == [5]
    assert found(text="q-1") == [1, 2, 3, 4]
    assert found(text="50%") == [5]
    assert found(text="%") == [5]
    assert found(text="S_1") == [5]
    assert found(text="' OR 1 = 1 --") == []
    assert found(
        since=write_time(START + timedelta(seconds=3)), until=write_time(START + timedelta(seconds=4))
    ) == [3, 4]
    assert [each.number for each in store.audit.search(after=2, limit=2)] == [3, 4]
    assert [each.number for each in store.audit.export(Search(action="query"))] == [5, 6]
    assert store.audit.search(after=5)[0].event.subject == "SELECT a FROM S21 -- \\0 \\ud800"


def test_entries_are_only_added(store: Store, place: Path) -> None:
    connection = sqlite3.connect(place)
    for table in ("sluicegate_changes", "sluicegate_events"):
        for sql in (f"DELETE FROM {table}", f"UPDATE {table} SET hash = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="only added"):
                connection.execute(sql)
    connection.close()
    result = store.verify()
    assert (result.changes, result.events, result.broken) == (4, 6, ())
    assert all(map(result.has, [result.last_change, result.last_event, store.history()[1].hash]))
    assert not result.has("0" * 64)


CHANGE_FIELDS = [
    ("version", 9), ("statements", '["CREATE ROLE r9;"]'), ("statements", "[]"), ("statements", "x"), ("author", "ann"),
    ("actor", "eve"), ("time", "2026-01-01T00:00:09.000000Z"), ("reason", "another"), ("previous", "0" * 64),
    ("hash", "1" * 64), ("actor", b"\xff"),
]  # fmt: skip
EVENT_FIELDS = [
    ("number", 99), ("time", ""), ("principal", "eve"), ("action", "query"), ("subject", ""), ("version", 1),
    ("grants", '["g"]'), ("decision", "permit"), ("notices", '["n"]'), ("request", "x"), ("previous", ""), ("hash", ""),
    ("version", "two"), ("version", 1.5),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), CHANGE_FIELDS)
def test_a_changed_change_is_named_and_nothing_is_loaded(
    store: Store, place: Path, field: str, value: object
) -> None:
    tamper(place, f"UPDATE sluicegate_changes SET {field} = ? WHERE version = 2", value)
    with open_store(str(place)) as again:
        result = again.verify()
        assert len(result.broken) == 1
        assert result.broken[0].startswith("change 2 of the store is damaged")
        assert result.changes == 1
        with pytest.raises(DiagnosticError, match="store-damaged"):
            again.load()
        with pytest.raises(DiagnosticError, match="store-damaged"):
            again.append("CREATE ROLE more;", None, "")


@pytest.mark.parametrize(("field", "value"), EVENT_FIELDS)
def test_a_changed_event_is_named(store: Store, place: Path, field: str, value: object) -> None:
    tamper(place, f"UPDATE sluicegate_events SET {field} = ? WHERE number = 2", value)
    assert [each.split(" of the")[0] for each in store.verify().broken] == ["event 2"]


def test_what_was_taken_out_is_named(store: Store, place: Path) -> None:
    last = store.verify().last_change
    tamper(place, "DELETE FROM sluicegate_changes WHERE version = 4")
    result = store.verify()
    assert result.broken == ("change 4 is missing: the audit log tells of it",)
    assert not result.has(last)


def replace_changes(place: Path, entries: list[Entry]) -> None:
    """The changes of a store become others, as sound in themselves as somebody can make them."""
    tamper(place, "DELETE FROM sluicegate_changes")
    connection = sqlite3.connect(place)
    marks = ", ".join("?" * 8)
    connection.executemany(f"INSERT INTO sluicegate_changes VALUES ({marks})", map(entry_row, entries))
    connection.commit()
    connection.close()


def test_a_change_that_was_sealed_again_is_not_what_the_next_follows_from(store: Store, place: Path) -> None:
    entries = store.history()
    forged = replace(entries[1], reason="another")
    replace_changes(place, [entries[0], replace(forged, hash=forged.seal()), *entries[2:]])
    assert store.verify().broken == (
        "change 3 of the store is damaged: it does not follow from the one before it",
    )


def test_a_chain_that_was_written_anew_is_not_the_one_that_was_told(
    store: Store, place: Path, tmp_path: Path
) -> None:
    assert "r3" in store.load().roles
    with open_store(str(tmp_path / "other.db")) as other:
        for text in [*ROLES[:3], "CREATE ROLE evil;"]:
            other.append(text, None, "a reason")
        replace_changes(place, other.history())
        assert store.verify().broken == ("change 1 is not the one that the audit log tells of",)
        # what was folded before is not the state of what is there now
        assert store.load() == other.load()


def test_a_backup_is_restored_as_it_was(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "backup.jsonl"
    counts = store.backup(path)
    assert (counts.changes, counts.events) == (4, 6)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with open_store(str(tmp_path / "other.db")) as other:
        assert other.restore(path) == counts
        assert other.load() == store.load()
        assert other.verify() == store.verify()
        assert other.append("CREATE ROLE more;", None, "").version == 5
        with pytest.raises(DiagnosticError, match="store-not-empty"):
            other.restore(path)


@pytest.mark.parametrize("number", range(12))
def test_a_backup_that_is_not_whole_restores_nothing(store: Store, tmp_path: Path, number: int) -> None:
    """Each line in turn left out or changed."""
    path = tmp_path / "backup.jsonl"
    store.backup(path)
    lines = path.read_text().splitlines()
    assert len(lines) == 12
    damaged = [
        lines[:number] + lines[number + 1 :],
        [*lines[:number], lines[number].replace("e", "f", 1), *lines[number + 1 :]],
        [*lines[:number], lines[number][:-2]],
    ]
    with open_store(str(tmp_path / "other.db")) as other:
        for each in damaged:
            path.write_text("\n".join(each) + "\n")
            with pytest.raises(DiagnosticError, match="backup-damaged"):
                other.restore(path)
        assert other.is_empty
        assert other.audit.search() == []

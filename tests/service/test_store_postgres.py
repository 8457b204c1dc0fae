"""The store in a real PostgreSQL: the same log, several gateways, and R10 across them when one stands still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.proxy import Proxy
from sluicegate.errors import DiagnosticError
from sluicegate.service.store import Event, Search, Store, open_store, plan
from sluicegate.service.store import postgres as back_end
from sluicegate.service.store.leases import Renewal

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with open_store(postgres_url) as found:
        yield found


def codes(error: pytest.ExceptionInfo[DiagnosticError]) -> list[str]:
    return [each.code for each in error.value.diagnostics]


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_the_same_log_as_in_a_file(store: Store, postgres_url: str, tmp_path: Path) -> None:
    store.fill(EXAMPLES / "soldiers")
    store.append('CREATE ROLE extra; CREATE USER "o\'brien ?%s" ROLES (extra);', None, "why? 100%")
    store.audit.record(Event("ann", "query", "SELECT \0 '%s' ?", 2, ("g",), "deny", ("n",), "r"))
    assert [each.number for each in store.audit.search(Search(text="'%s' ?"))] == [3]
    store.rollback(1, None, "undo")
    assert plan(EXAMPLES / "soldiers", store).is_empty
    assert store.verify().is_sound
    store.backup(tmp_path / "backup.jsonl")
    with open_store(str(tmp_path / "file.db")) as file, open_store(postgres_url, create=False) as again:
        file.restore(tmp_path / "backup.jsonl")
        assert file.load() == store.load() == again.load()
        assert file.verify() == store.verify() == again.verify()
        assert file.history() == again.history()
        assert file.audit.search() == again.audit.search()


def test_places_that_are_not_stores(postgres_url: str) -> None:
    with pytest.raises(DiagnosticError) as error:
        open_store(postgres_url, create=False)
    assert codes(error) == ["store-missing"]
    with pytest.raises(DiagnosticError) as error:
        open_store("postgresql://ann:secret@/x?host=%2Fnowhere&password=secret")
    assert codes(error) == ["store-unreadable"]
    assert "secret" not in str(error.value)


def test_a_newer_store_is_refused_and_entries_are_only_added(store: Store, postgres_url: str) -> None:
    import psycopg

    store.append("CREATE ROLE a;", None, "")
    store.append("CREATE ROLE b;", None, "")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for sql in (
            "DELETE FROM sluicegate_changes",
            "UPDATE sluicegate_events SET hash = ''",
            "TRUNCATE sluicegate_events",
        ):
            with pytest.raises(psycopg.Error, match="only added"):
                connection.execute(sql.encode())
        connection.execute("ALTER TABLE sluicegate_changes DISABLE TRIGGER ALL")
        connection.execute("UPDATE sluicegate_changes SET reason = 'x' WHERE version = 2")
        assert store.verify().broken == ("change 2 of the store is damaged: it is not as it was written",)
        connection.execute("INSERT INTO sluicegate_migrations VALUES (99, 'later', '')")
    with pytest.raises(DiagnosticError) as error:
        open_store(postgres_url)
    assert codes(error) == ["store-newer"]


def test_gateways_that_open_and_write_at_once(postgres_url: str) -> None:
    failed: list[DiagnosticError] = []

    def work(name: str) -> None:
        try:
            with open_store(postgres_url) as mine:
                for number in range(5):
                    mine.append(f"CREATE ROLE {name}{number};", None, "")
        except DiagnosticError as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == []
    with open_store(postgres_url, create=False) as store:
        assert (store.version, len(store.load().roles)) == (15, 15)
        assert store.verify().is_sound


def test_a_change_is_told_to_the_others(store: Store, postgres_url: str) -> None:
    """At once, by the server: looking by itself would take the other gateway a minute."""
    told: list[int] = []
    with open_store(postgres_url) as other, other.watch(told.append, seconds=60) as watch:
        wait_for(lambda: watch._database._listening)  # type: ignore[attr-defined]
        time.sleep(0.1)
        store.append("CREATE ROLE a;", None, "")
        wait_for(lambda: told == [1], 10)
        watch._stopped.set()
        store.append("CREATE ROLE b;", None, "")


def test_a_gateway_that_stands_still_in_a_change_does_not_hold_the_others(
    store: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append("CREATE ROLE a;", None, "")
    monkeypatch.setattr(back_end, "_LIMITS", ("SET idle_in_transaction_session_timeout = '200ms'",))
    with open_store(postgres_url) as still:

        def stand_still() -> None:
            with still._database.transaction("sluicegate_changes") as found:
                began = time.monotonic()
                assert store.append("CREATE ROLE b;", None, "").version == 2
                assert time.monotonic() - began < 5
                found.run("DELETE FROM sluicegate_gateways")

        with pytest.raises(DiagnosticError) as error:
            stand_still()
        assert codes(error) == ["store-unreadable"]
        assert still.append("CREATE ROLE c;", None, "").version == 3


GATEWAY = """
import sys, time
from sluicegate.service.store import open_store
store = open_store(sys.argv[1])
held = [store.version]
def take(version): held[0] = version
lease = store.lease("child", ttl=1.0, margin=0.4)
watch = store.watch(take, held[0], 0.05)
lease.keep(lambda: held[0])
while True:
    if lease.valid():
        sys.stdout.write(f"{held[0]}\\n")
        sys.stdout.flush()
    time.sleep(0.005)
"""


@contextmanager
def running(code: str, url: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        try:
            yield child
        finally:
            child.kill()


def _drain(child: subprocess.Popen[bytes]) -> list[int]:
    assert child.stdout is not None
    return [int(line) for line in (child.stdout.read() or b"").split()]


def test_a_stopped_gateway_delivers_nothing_old_after_the_call_has_returned(
    store: Store, postgres_url: str
) -> None:
    """SIGSTOP: the change waits until the lease has run out, and the gateway finds it so when it goes on (R10)."""
    store.append("CREATE ROLE a;", None, "")
    with running(GATEWAY, postgres_url) as child:
        wait_for(lambda: bool(_drain(child)))
        child.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        store.append("DROP ROLE a;", None, "revoke")
        assert not store.wait_acknowledged(2, 0)
        assert store.wait_acknowledged(2, 20)
        waited = time.monotonic() - began
        assert 0.2 < waited < 10
        _drain(child)
        child.send_signal(signal.SIGCONT)
        delivered: list[int] = []
        wait_for(lambda: bool(delivered.extend(_drain(child)) or delivered))
        time.sleep(0.1)
        assert {*delivered, *_drain(child)} == {2}


def test_a_gateway_that_keeps_up_is_waited_for_briefly(store: Store, postgres_url: str) -> None:
    store.append("CREATE ROLE a;", None, "")
    with running(GATEWAY, postgres_url) as child:
        wait_for(lambda: bool(_drain(child)))
        for number in range(3):
            version = store.append(f"CREATE ROLE b{number};", None, "").version
            assert store.wait_acknowledged(version, 20)
            _drain(child)
            time.sleep(0.05)
            assert set(_drain(child)) == {version}
    store.append("CREATE ROLE last;", None, "")
    assert store.wait_acknowledged(version + 1, 20)


@pytest.mark.parametrize("how", ["cut", "frozen"])
def test_a_gateway_without_its_database_stops_before_its_lease_runs_out(
    store: Store, postgres_url: str, tmp_path_factory: pytest.TempPathFactory, how: str
) -> None:
    store.append("CREATE ROLE a;", None, "")
    proxy = Proxy(postgres_url, tmp_path_factory.mktemp("p"))
    with open_store(proxy.url) as far:
        lease = far.lease("far", ttl=1.0, margin=0.4)
        lease.keep(lambda: 1)
        wait_for(lease.valid)
        if how == "cut":
            proxy.cut()
        else:
            proxy.frozen.set()
        store.append("DROP ROLE a;", None, "revoke")
        assert store.wait_acknowledged(2, 20)
        assert not lease.valid()
        # back again, with the old version: it does not come to life by it
        proxy.mend()
        time.sleep(0.3)
        assert not lease.valid()
        assert store.leases.renew("far", 1, 1.0) == Renewal(False, 2)
        lease.stop()


WRITER = """
import sys
from sluicegate.service.store import open_store
store = open_store(sys.argv[1])
for number in range(100000):
    print(store.append(f"CREATE ROLE r{number};", None, "").version, flush=True)
"""


def test_what_was_acknowledged_outlives_kill_9(postgres_url: str) -> None:
    seen: list[int] = []
    with running(WRITER, postgres_url) as child:
        wait_for(lambda: len(seen.extend(_drain(child)) or seen) > 6)
        child.kill()
        child.wait()
        seen += _drain(child)
    with open_store(postgres_url, create=False) as store:
        assert store.version >= seen[-1]
        assert len(store.load().roles) == store.version
        assert store.verify().is_sound


def test_a_connection_that_broke_is_made_again(store: Store, postgres_url: str) -> None:
    import psycopg

    store.append("CREATE ROLE a;", None, "")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sluicegate'"
        )
    assert store.append("CREATE ROLE b;", None, "").version == 2

"""A table of a real PostgreSQL as a stream: types, changes by version, readings of one moment, a server that goes away."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.database_options import read_database
from sluicegate.language.load import read_catalog
from sluicegate.runtime.table.databases import PostgresDatabase
from sluicegate.runtime.table.load import load_table
from sluicegate.runtime.table.table_feed import TableFeed

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow
STREAM = """CREATE STREAM R (k BIGINT, name STRING, ok BOOLEAN, at TIMESTAMP, x DOUBLE) KEY (k)
  FROM postgres OPTIONS (database = '{database}', host = '{host}', user = '{user}', schema = '{schema}',
    table = 'odd "%s" name', every = '100 ms', within = '500 ms'{more});"""


class Server:
    """A table in a schema of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self._folder = url, folder
        parts = urlsplit(url)
        asked = {name: found[0] for name, found in parse_qs(parts.query).items()}
        self.database, self.user = parts.path.strip("/"), parts.username or asked.get("user", "")
        self.host = asked.get("host") or unquote(parts.hostname or "")
        self.schema = asked["options"].partition("search_path=")[2]
        self.run(
            'CREATE TABLE "odd ""%s"" name" (k bigint PRIMARY KEY, name text, ok boolean, at timestamptz, '
            "x numeric, v timestamptz DEFAULT now())"
        )

    def run(self, text: str) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(text.encode())

    def declare(self, more: str = "", **changes: str) -> TableFeed:
        where = {"database": self.database, "host": self.host, "user": self.user, "schema": self.schema}
        text = STREAM.format(**{**where, **changes}, more=more)
        self.stream = read_catalog(text).streams["R"]
        return TableFeed(self.stream, self._folder)


@pytest.fixture
def server(postgres_url: str, tmp_path: Path) -> Server:
    return Server(postgres_url, tmp_path)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def names(feed: TableFeed) -> dict[int, str]:
    return {row["k"]: row["name"] for row in feed.log.read_in_force(feed.log.end).to_pylist()}


def test_rows_are_loaded_replaced_and_deleted(server: Server) -> None:
    server.run(
        """INSERT INTO "odd ""%s"" name" VALUES (1, 'a', true, '2026-01-01 10:00:00.5+02', 1.5),
        (2, 'never', true, 'infinity', 1), (3, 'not', true, NULL, 'NaN'), (4, NULL, NULL, NULL, NULL)"""
    )
    feed = server.declare(", version = 'v'")
    feed.start()
    wait_for(lambda: feed.log.ready)
    rows = {row["k"]: row for row in feed.log.read_in_force(feed.log.end).to_pylist()}
    assert sorted(rows) == [1, 4]
    assert rows[1]["at"].isoformat() == "2026-01-01T08:00:00.500000+00:00"
    assert (rows[1]["ok"], rows[1]["x"], rows[4]["name"]) == (True, 1.5, None)
    server.run("""UPDATE "odd ""%s"" name" SET name = 'b', v = now() WHERE k = 1""")
    wait_for(lambda: names(feed).get(1) == "b")
    server.run("""DELETE FROM "odd ""%s"" name" WHERE k = 4""")
    wait_for(lambda: names(feed) == {1: "b"})
    assert load_table(server.stream).table["k"].to_pylist() == [1]
    feed.stop()


def test_a_server_that_does_not_answer_leaves_nothing_in_force(server: Server) -> None:
    server.run("""INSERT INTO "odd ""%s"" name" VALUES (1, 'a', true, NULL, NULL)""")
    feed = server.declare()
    feed.start()
    wait_for(lambda: names(feed) == {1: "a"})
    with psycopg.connect(server.url) as connection:
        connection.execute(b"""LOCK TABLE "odd ""%s"" name" IN ACCESS EXCLUSIVE MODE""")
        # the reading hangs, and is not waited for
        wait_for(lambda: feed.failure is not None)
        assert names(feed) == {}
    wait_for(lambda: names(feed) == {1: "a"})
    assert feed.failure is None
    feed.stop()


def test_no_password_is_used_but_the_one_that_is_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "passwords"
    file.write_text("*:*:*:*:geheim\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    monkeypatch.setenv("SLUICEGATE_SECRET_ROUTES", "named")
    for more, wanted in (("", ""), (", secret = 'routes'", "named")):
        for variable in ("", "geheim"):
            monkeypatch.setenv("PGPASSWORD", variable)
            server.declare(more)
            with PostgresDatabase(read_database(server.stream))._connect() as connection:
                assert connection.info.password == wanted
    assert capfd.readouterr().err == ""


def test_what_cannot_be_read_is_told_without_the_drivers_words(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICEGATE_SECRET_ROUTES", "geheim")
    server.declare(", secret = 'routes'", database="not there")
    with pytest.raises(DiagnosticError) as error:
        load_table(server.stream)
    assert [each.code for each in error.value.diagnostics] == ["table-unreachable"]
    assert "geheim" not in str(error.value) + repr(server.stream)

"""The client and the commands with a gateway that serves; its engine stands still, so rows come when a test says so."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from service.gateway_world import PASSWORD, QUERY, p
from service.still_world import StillWorld, serve_still
from sluicegate.cli.main import main
from sluicegate.client import Client, RefusedError, RevokedError, WithdrawnError

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path, heartbeat_seconds=0.2) as made:
        yield made


_OPENED: list[Client] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _OPENED:
        _OPENED.pop().close()


def connect(world: StillWorld, token: str | None = None) -> Client:
    _OPENED.append(Client(world.url, token))
    return _OPENED[-1]


def sign_in(world: StillWorld, user: str) -> Client:
    client = connect(world)
    session = client.sign_in(user, PASSWORD)
    assert session.user == user
    assert session.token not in repr(session)
    return client


def test_rows_acknowledgement_and_tables(world: StillWorld) -> None:
    client = sign_in(world, "ann")
    handle = client.query(QUERY)
    assert client.query("select  id, x  from P").name == handle.name
    assert (handle.decision, [each["code"] for each in handle.notices]) == ("partial", ["PR"])
    world.give(handle.name, ("a", 1.0), ("b", 2.0))
    world.give(handle.name, ("c", 3.0))
    assert [row["id"] for row in islice(handle.rows(), 1)] == ["a"]
    assert handle.to_arrow(limit=2).to_pylist() == [{"id": "b", "x": 2.0}, {"id": "c", "x": 3.0}]
    handle.ack()
    world.give(handle.name, ("d", 4.0))
    assert next(handle.rows()) == {"id": "d", "x": 4.0}
    assert handle.to_arrow(timeout=0.3).num_rows == 0


def test_following_ends_when_the_grant_is_dropped(world: StillWorld) -> None:
    handle = sign_in(world, "ann").query(QUERY)
    world.give(handle.name, ("a", 1.0))
    rows = handle.rows()
    assert next(rows) == {"id": "a", "x": 1.0}
    made = sign_in(world, "root").change("DROP GRANT own;", "a test")
    assert (made["version"], made["withdrawn"]) == (2, 1)
    with pytest.raises(WithdrawnError, match="no grant"):
        next(rows)


def test_following_ends_when_the_user_is_disabled(world: StillWorld) -> None:
    handle = sign_in(world, "ann").query(QUERY)
    world.give(handle.name, ("a", 1.0))
    rows = handle.rows()
    next(rows)
    sign_in(world, "root").change("ALTER USER ann DISABLE;")
    # the query has no grant any more and the session no user: either may be seen first
    with pytest.raises((RevokedError, WithdrawnError)):
        next(rows)


def test_following_ends_when_the_token_is_revoked(world: StillWorld) -> None:
    ann = sign_in(world, "ann")
    issued = ann.tokens.create(["read"], 60)
    handle = connect(world, issued.token).query(QUERY)
    world.give(handle.name, ("a", 1.0))
    rows = handle.rows()
    next(rows)
    ann.tokens.revoke(issued.told["id"])
    world.give(handle.name, ("b", 1.0))
    with pytest.raises(RevokedError, match="token-revoked") as caught:
        next(rows)
    assert (caught.value.version, caught.value.reason) == (1, "token-revoked")


def test_a_dropped_query_ends_its_rows(world: StillWorld) -> None:
    client = sign_in(world, "ann")
    handle = client.query(QUERY)
    world.give(handle.name, ("a", 1.0))
    rows = handle.rows()
    next(rows)
    handle.pause()
    assert handle.describe()["paused"] is True
    handle.resume()
    handle.drop()
    assert list(rows) == []
    assert client.queries() == []


def test_refusals_point_at_the_text(world: StillWorld) -> None:
    client = sign_in(world, "ann")
    with pytest.raises(RefusedError) as caught:
        client.explain("SELECT id FROM Q")
    (place,) = caught.value.places
    assert (caught.value.code, place["text"], place["column"]) == ("unknown-stream", "Q", 16)
    with pytest.raises(RefusedError, match="sign-in-failed"):
        connect(world).sign_in("ann", "wrong password")
    with pytest.raises(RefusedError, match="credentials-missing"):
        connect(world).me()


def test_pushing(world: StillWorld) -> None:
    client = sign_in(world, "dev")
    pushed = client.push("P", [p(1, "a"), p(2, "b", team="B"), {"id": 1}])
    assert (pushed.accepted, pushed.refused_total, [each["row"] for each in pushed.refused]) == (1, 2, [2, 3])
    table = pa.table({"ts": pa.array([1], pa.timestamp("us", "UTC")), "id": ["c"], "team": ["A"], "x": [1.0]})
    assert client.push("P", table).accepted == 1
    with pytest.raises(RefusedError) as caught:
        sign_in(world, "ann").push("P", [p(1, "a")])
    assert caught.value.status == 403


def test_what_owners_and_administrators_see(world: StillWorld) -> None:
    root, owner, ann = (sign_in(world, user) for user in ("root", "owner", "ann"))
    handle = ann.query(QUERY)
    assert [each["handle"] for each in owner.sharing("P")["readers"]] == [handle.name]
    assert {each["principal"] for each in owner.who("P", "id")["entries"]} == {"ann", "bob"}
    assert [each["action"] for each in ann.audit(action="register")] == ["register"]
    assert root.history()[0]["version"] == 1
    assert root.wait_for(1)["version"] == 1
    issued = ann.tokens.create(["read"], 60)
    assert [each["name"] for each in connect(world, issued.token).streams()] == ["P"]
    ann.tokens.revoke(issued.told["id"])
    with pytest.raises(RefusedError, match="token-revoked"):
        connect(world, issued.token).me()
    root.set_password("bob", "another good password")
    assert connect(world).sign_in("bob", "another good password").user == "bob"
    ann.sign_out()
    with pytest.raises(RefusedError, match="credentials-missing"):
        ann.me()


def say(capsys: Capture, *argv: str, status: int = 0) -> str:
    found = main(argv)
    out, err = capsys.readouterr()
    assert found == status, err
    return out


def test_commands_end_to_end(
    world: StillWorld, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SLUICEGATE_URL", raising=False)
    for user in ("root", "owner", "ann"):
        monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD + "\n"))
        assert f"as {user}" in say(capsys, "login", world.url, "--user", user, "--password-stdin")
    handle = json.loads(say(capsys, "query", QUERY, "--json"))["handle"]
    world.give(handle, ("a", 1.0), ("b", 2.0))
    lines = say(capsys, "tail", handle, "--count", "2", "--json").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["a", "b"]
    assert say(capsys, "who", "P", "--as", "owner").startswith("`P` can be seen by")
    found = json.loads(say(capsys, "grant", "all", "READ (*) ON P TO Observer", "--as", "owner", "--json"))
    assert found["version"] == 2

    ended: list[Any] = []
    reader = threading.Thread(target=lambda: ended.append(main(["tail", handle, "--cursor", ""])))
    reader.start()
    assert "queries withdrawn: 1" in say(capsys, "revoke", "own", "--as", "root", "--reason", "over")
    reader.join(20)
    assert ended == [1]
    assert "register" in say(capsys, "audit", "search", "--url", world.url, "--as", "root")
    assert say(capsys, "login", world.url, "--out", "ann").startswith("signed out")


def test_tables_for_pandas(world: StillWorld) -> None:
    pytest.importorskip("pandas", reason="pip install pandas")
    handle = sign_in(world, "ann").query(QUERY)
    world.give(handle.name, ("a", 1.0), ("b", None))
    frame = handle.to_pandas(limit=2)
    assert list(frame.columns) == ["id", "x"]
    assert list(frame["id"]) == ["a", "b"]
    assert frame["x"].isna().tolist() == [False, True]
    assert handle.to_pandas(timeout=0.2).empty


def test_without_pandas_it_is_told_what_is_missing(
    world: StillWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read then: the rows are there for whoever asks otherwise."""
    handle = sign_in(world, "ann").query(QUERY)
    world.give(handle.name, ("a", 1.0))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        handle.to_pandas(limit=1)
    assert handle.to_arrow(limit=1).to_pylist() == [{"id": "a", "x": 1.0}]

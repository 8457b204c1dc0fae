"""Ways round that worked elsewhere, tried on the gateway (numbers of the list of bypasses)."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.gateway_world import CATALOG, QUERY, make_settings
from service.still_world import StillWorld, open_still, serve_still
from sluicegate.errors import DiagnosticError
from sluicegate.service.settings import Settings, read_settings
from sluicegate.service.store import open_store


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path) as made:
        yield made


def _codes(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_bypass_01_no_setting_switches_enforcement_off(tmp_path: Path) -> None:
    """Kyuubi #7623, #7589: only one syntax of SET was guarded."""
    path = tmp_path / "settings.toml"
    for line in ("enforce = false", "[auth]\nenabled = false", "port = '8765'", "port = true", "oidc = 1"):
        path.write_text(line)
        with pytest.raises(DiagnosticError) as refused:
            read_settings(path, {})
        assert refused.value.diagnostics[0].code == "setting-malformed"
    path.write_text("port = 1\n")
    found = read_settings(path, {"SLUICEGATE_PORT": "2", "SLUICEGATE_ENFORCE": "0"}, {"host": "::1"})
    assert found == Settings(port=2, host="::1")


@pytest.mark.parametrize(
    "text", ["SET enforcement = off;", "SET ROLE administrator; ", "SET self.team = 'B';"]
)
def test_bypass_01_no_statement_or_query_changes_the_session(world: StillWorld, text: str) -> None:
    """As above, by text."""
    assert world.post("ann", "/v1/queries", {"query": text}).status_code == 400
    assert world.post("ann", "/v1/catalog", {"statements": text}).status_code in (400, 403)
    assert world.gateway.store.version == 1


def test_bypass_04_no_side_door_to_logs_and_internal_names(world: StillWorld, tmp_path: Path) -> None:
    """CVE-2022-41918: rules were not applied to what lies behind data streams."""
    world.register("ann")
    for path in (
        "/state/engine/gate/ticks",
        "/v1/streams/../../store.db",
        "/v1/internal",
        "/static/store.db",
    ):
        assert _codes(world.get("root", path)) == (404, "place-unknown")
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert files
    assert [
        each
        for each in files
        if stat.S_IMODE(each.stat().st_mode) & 0o077 and not _is_covered(each, tmp_path)
    ] == []


def _is_covered(path: Path, root: Path) -> bool:
    """Whether a folder above it lets nobody else in."""
    above = [each for each in path.parents if root in each.parents]
    return any(not stat.S_IMODE(each.stat().st_mode) & 0o077 for each in above)


def test_bypass_12_metrics_and_refusals_tell_nothing_of_hidden_rows(world: StillWorld) -> None:
    """CVE-2017-7484 and its successors: statistics leaked what the filter hid."""
    handle = world.register("ann")
    before = world.get("root", "/metrics").text
    hidden = {"ts": "2026-01-01T10:00:00Z", "id": "zz", "team": "B", "x": 1}
    world.change("CREATE GRANT all_rows APPEND ON P TO Device;")
    world.push(hidden)
    after = world.get("root", "/metrics").text
    assert "zz" not in after
    named = [line for line in after.splitlines() if "P" in line and not line.startswith("#")]
    assert [line for line in named if 'route="' not in line] == []
    assert _codes(world.get("ann", "/metrics")) == (403, "administrators-only")
    mine = world.get("ann", f"/v1/queries/{handle}").json()
    assert mine["rows_delivered"] == 0
    assert "sluicegate_rows_pushed_total 1" in after
    assert "sluicegate_rows_pushed_total 1" not in before


def test_bypass_13_a_user_whom_no_policy_names_gets_nothing(world: StillWorld) -> None:
    """Kyuubi #6901: an unreachable server meant that everything is allowed."""
    assert _codes(world.post("nobody", "/v1/queries", {"query": QUERY})) == (400, "unknown-stream")
    assert world.get("nobody", "/v1/streams").json() == {"streams": []}
    assert _codes(world.post("nobody", "/v1/streams/P", [{}])) == (403, "may-not-append")


def test_bypass_13_an_empty_store_and_one_that_is_away(tmp_path: Path) -> None:
    """As above: nobody can sign in to a catalog without users, and without a store there is no gateway."""
    settings = make_settings(tmp_path)
    gateway = open_still(settings, "CREATE ROLE administrator;")
    assert gateway.catalog.users == {}
    gateway.stop()
    with pytest.raises(DiagnosticError) as away:
        open_store(str(tmp_path / "nowhere" / "store.db"))
    assert away.value.diagnostics[0].code == "store-missing"
    (tmp_path / "store.db").write_bytes(b"no database")
    with pytest.raises(DiagnosticError):
        open_still(settings)


def test_bypass_14_a_half_read_folder_fills_no_store(tmp_path: Path) -> None:
    """Gravitino #11981: a catalog of which one file failed was served as if it were whole."""
    from sluicegate.service.opening import open_gateway

    folder = tmp_path / "catalog"
    folder.mkdir()
    (folder / "a.sql").write_text(CATALOG)
    (folder / "b.sql").write_text("CREATE GRANT broken READ (")
    settings = make_settings(tmp_path)

    def never(_: object) -> object:
        raise AssertionError("an engine was made for half a catalog")

    with pytest.raises(DiagnosticError):
        open_gateway(settings, never, folder)  # type: ignore[arg-type]
    with open_store(settings.store) as store:
        assert store.is_empty


def test_bypass_15_one_of_several_grants_goes_and_the_others_hold(world: StillWorld) -> None:
    """CVE-2024-27309: removing one rule removed the effect of the others."""
    world.change("CREATE GRANT more READ (id) ON P WHERE team = 'B' TO Doctor;")
    handle = world.register("ann", "SELECT id FROM P")
    world.change("DROP GRANT more;")
    found = world.post("ann", "/v1/explain", {"query": "SELECT id FROM P"}).json()
    assert found["grants"] == ["own"]
    assert world.get("ann", f"/v1/queries/{handle}").status_code == 200
    world.change("DROP GRANT own;")
    assert _codes(world.get("ann", f"/v1/queries/{handle}")) == (404, "query-unknown")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER STREAM P OWNER ann;",
        "DROP STREAM P;",
        "CREATE OR REPLACE STREAM P (ts TIMESTAMP) TIMESTAMP BY ts OWNER ann;",
        "DROP GRANT own;",
        "CREATE OR REPLACE GRANT own READ (*) ON P TO Doctor;",
        "CREATE GRANT mine READ (*) ON P TO USER ann;",
        "CREATE GRANT mine READ (*) ON Hidden TO USER ann;",
        "ALTER USER ann ADD ROLE administrator;",
        "ALTER USER ann SET (team = 'B');",
        "CREATE USER eve ROLES (administrator);",
        "ALTER ROLE Doctor INHERITS administrator;",
    ],
)
def test_bypass_16_a_reader_changes_nothing(world: StillWorld, statement: str) -> None:
    """GHSA-vjr2-wpfh-5r9p: a reader replaced or dropped what it could only read."""
    answer = world.post("ann", "/v1/catalog", {"statements": statement})
    assert answer.status_code in (400, 403), answer.text
    assert "secret" not in answer.text
    assert world.gateway.store.version == 1
    denied = world.get("root", "/v1/audit?principal=ann&action=change").json()["events"]
    assert [each["decision"] for each in denied] == ["deny"] or answer.json()["error"]["places"]


def test_bypass_16_hidden_and_missing_things_are_refused_in_the_same_words(world: StillWorld) -> None:
    """A refusal must not tell that something is there."""

    def told(what: str) -> str:
        statement = f"CREATE GRANT mine READ (ts) ON {what} TO USER ann;"
        answers = [
            world.post("ann", "/v1/catalog", {"statements": statement}),
            world.post("ann", "/v1/queries", {"query": f"SELECT ts FROM {what}"}),
            world.post("ann", "/v1/explain", {"query": f"SELECT ts FROM {what}"}),
            world.post("ann", f"/v1/streams/{what}", [{}]),
            world.get("ann", f"/v1/streams/{what}/sharing"),
            world.get("ann", f"/v1/who?stream={what}"),
        ]
        shown = [{**each.json()["error"], "request": ""} for each in answers]
        return str(shown).replace(what, "STREAM")

    assert told("Hidden") == told("Hiddem")


@pytest.mark.parametrize(
    "header",
    [
        {"x-user": "root"},
        {"x-forwarded-user": "root"},
        {"x-remote-user": "root"},
        {"remote-user": "root"},
        {"x-forwarded-for": "127.0.0.1"},
        {"authorization": "Basic cm9vdDpyb290"},
        {"authorization": "Bearer root"},
        {"cookie": "session=root; user=root"},
    ],
)
def test_bypass_31_nothing_but_the_token_says_who_asks(world: StillWorld, header: dict[str, str]) -> None:
    """CVE-2022-33891: a header, query string or field named the user."""
    assert world.get(None, "/v1/users", headers=header).status_code == 401
    assert world.get(None, "/v1/me?user=root&token=" + world.token("root"), headers=header).status_code == 401
    if "authorization" not in header:
        assert world.get("ann", "/v1/me?user=root", headers=header).json()["user"] == "ann"
        body = {"query": QUERY, "user": "root"}
        assert _codes(world.post("ann", "/v1/queries", body, headers=header)) == (422, "request-malformed")


def test_bypass_31_two_tokens_are_none(world: StillWorld) -> None:
    """As above: the first of two headers was checked, the second one used."""
    both = [("authorization", f"Bearer {world.token(user)}") for user in ("ann", "root")]
    answer = httpx.get(world.url + "/v1/me", headers=both)
    assert _codes(answer) == (401, "credentials-malformed")


@pytest.mark.parametrize(
    "name", ["P;DROP", "P`", 'P"', "P' OR '1'='1", "../P", "P%00", "${sys:x}", "P--", "\u202eP"]
)
def test_bypass_32_names_are_never_code(world: StillWorld, name: str) -> None:
    """CVE-2025-46569, CVE-2022-36085: text became code."""
    from urllib.parse import quote

    for path in ("", "/sharing", "/dead-letters"):
        method = "GET" if path else "POST"
        answer = world.call("root", method, f"/v1/streams/{quote(name, safe='')}{path}", json=[{}])
        assert answer.status_code in (403, 404), answer.text
    shown = world.post("ann", "/v1/explain", {"query": f"SELECT * FROM `{name}`"})
    assert shown.status_code == 400
    assert world.get("root", "/v1/audit", params={"text": name, "principal": name}).json()["events"] == []


def test_bypass_36_what_is_too_big_fails_loudly(tmp_path: Path) -> None:
    """SpiceDB GO-2025-4120: a write that was too big was cut off in silence."""
    limits = {
        "most_text_bytes": 20_000,
        "most_body_bytes": 50_000,
        "most_statements": 100,
        "most_push_rows": 10,
    }
    with serve_still(tmp_path, **limits) as world:
        many = "".join(f"SET FACT f({at}) = {at};" for at in range(101))
        assert _codes(world.post("root", "/v1/catalog", {"statements": many})) == (413, "body-too-large")
        large = {"statements": "SET FACT f(1) = '" + "x" * 20_000 + "';"}
        assert _codes(world.post("root", "/v1/catalog", large)) == (413, "body-too-large")
        assert _codes(world.post("dev", "/v1/streams/P", [{"id": "x" * 50_000}])) == (413, "body-too-large")
        assert _codes(world.post("dev", "/v1/streams/P", [{}] * 11)) == (415, "push-content")
        chunks = (b"x" * 10_000 for _ in range(10))
        headers = {**world.headers("dev"), "content-type": "application/x-ndjson"}
        answer = httpx.post(world.url + "/v1/streams/P", content=chunks, headers=headers)
        assert _codes(answer) == (413, "body-too-large")
        assert world.gateway.store.version == 1
        assert "P" not in world.gateway.engine.feeds.logs


@pytest.mark.slow
def test_bypass_36_thousands_of_grants_are_stored_and_shown_whole(world: StillWorld) -> None:
    """RANGER-2149: long lists were cut off in the console and in search."""
    count = 10_000
    made = "".join(f"CREATE GRANT g{at} READ (id) ON P WHERE x > {at} TO USER olga;" for at in range(count))
    assert world.change(made)["version"] == 2
    assert world.get("root", "/v1/catalog").json()["text"].count("CREATE GRANT g") == count
    entries = world.get("root", "/v1/who?stream=P").json()["entries"]
    assert sum(each["grant"].startswith("g") for each in entries) == count
    statements = world.get("root", "/v1/catalog/history?after=1").json()["entries"][0]["statements"]
    assert len(statements) == count


def test_too_many_requests_and_queries_are_refused(tmp_path: Path) -> None:
    with serve_still(tmp_path, caller_rate=0.01, caller_burst=5.0, most_queries=1) as world:
        world.register("ann")
        limited = world.post("ann", "/v1/queries", {"query": QUERY + " WHERE x > 2"})
        assert _codes(limited) == (429, "query-limit")
        answers = [world.get("ann", "/v1/me") for _ in range(4)]
        assert _codes(answers[-1]) == (429, "rate-limit")
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert world.get("bob", "/v1/me").status_code == 200

"""The commands that talk to a gateway, against one that answers what a test says."""

from __future__ import annotations

import io
import json
import shlex
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sluicegate.cli import credentials, demo, login
from sluicegate.cli.demo_live import TO_TRY, find_port
from sluicegate.cli.inputs import UsageError
from sluicegate.cli.main import build_parser, main

Capture = pytest.CaptureFixture[str]
TOKEN = "sg_text-that-must-not-be-shown"
PASSWORD = "correct horse battery"
HANDLE = "81686d95913b3a62"


class Gateway:
    """Answers by (method, path); what was asked is kept."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, str | None, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def put(self, method: str, path: str, answer: Any, status: int = 200) -> None:
        self.answers[method, path] = (status, answer)

    def sent(self, method: str, path: str) -> Any:
        return next(body for verb, place, _, body in self.asked if (verb, place) == (method, path))

    def _make_handler(gateway) -> type[BaseHTTPRequestHandler]:  # noqa: N805 -- `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Nothing: standard error is what tests look at."""

            def answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                gateway.asked.append((self.command, self.path, self.headers.get("Authorization"), body))
                missing = 404, {"error": {"code": "place-unknown", "message": "there is nothing here"}}
                status, answer = gateway.answers.get((self.command, self.path), missing)
                raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                kind = "text/event-stream" if isinstance(answer, bytes) else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815 -- the server looks for these names

        return Handler


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("SLUICEGATE_URL", "SLUICEGATE_TOKEN", "SLUICEGATE_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config" / "sluicegate" / "credentials.json"


def run(capsys: Capture, *argv: str) -> tuple[int, str, str]:
    status = main(argv)
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert TOKEN not in out + err
    assert PASSWORD not in out + err
    return status, out, err


def sign_in(gateway: Gateway, user: str = "paul", token: str = TOKEN) -> None:
    kept = credentials.Kept(gateway.url, user, "2026-01-01T00:00:00Z", token)
    credentials.write_credentials(credentials.read_credentials().put(kept))


def write_events(*events: tuple[str, Any, str | None]) -> bytes:
    parts = [
        (f"id: {cursor}\n" if cursor else "") + f"event: {kind}\ndata: {json.dumps(data)}\n\n"
        for kind, data, cursor in events
    ]
    return "".join(parts).encode()


def test_login_keeps_the_token_where_only_its_user_reads_it(
    capsys: Capture, gateway: Gateway, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.put(
        "POST", "/v1/sign-in", {"token": TOKEN, "user": "paul", "roles": ["Medic"], "expires": "then"}
    )
    monkeypatch.setattr(login.getpass, "getpass", lambda _: PASSWORD)
    status, out, _ = run(capsys, "login", gateway.url + "/", "--user", "paul", "--role", "Medic")
    assert (status, out) == (0, f"signed in to {gateway.url} as paul, until then\n")
    assert gateway.sent("POST", "/v1/sign-in") == {"user": "paul", "password": PASSWORD, "roles": ["Medic"]}
    assert config.stat().st_mode & 0o777 == 0o600
    assert config.parent.stat().st_mode & 0o777 == 0o700
    assert credentials.read_credentials().find(gateway.url, None).token == TOKEN  # type: ignore[union-attr]
    assert TOKEN not in repr(credentials.read_credentials())
    assert PASSWORD not in config.read_text()
    config.chmod(0o640)
    status, _, err = run(capsys, "query", "--list")
    assert status == 2
    assert "others can read" in err


def test_login_with_a_token_and_out_again(
    capsys: Capture, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.put("GET", "/v1/me", {"user": "device7", "expires": "then"})
    gateway.put("POST", "/v1/sign-out", {"done": True})
    monkeypatch.setattr("sys.stdin", io.StringIO(TOKEN + "\n"))
    assert run(capsys, "login", gateway.url, "--token")[0] == 0
    assert gateway.asked[-1][2] == f"Bearer {TOKEN}"
    assert run(capsys, "login", gateway.url, "--out", "device7")[0] == 0
    assert credentials.read_credentials().kept == ()
    assert run(capsys, "login", gateway.url, "--out", "device7")[0] == 2


def test_a_wrong_password_keeps_nothing(
    capsys: Capture, gateway: Gateway, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.put("POST", "/v1/sign-in", {"error": {"code": "sign-in-failed", "message": "wrong"}}, 401)
    monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD))
    status, out, err = run(capsys, "login", gateway.url, "--user", "paul", "--password-stdin")
    assert (status, out, err) == (1, "", "error[sign-in-failed]: wrong\n")
    assert not config.exists()


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"kept": [{}]}', '{"kept": [{"url": 1, "user": 1, "expires": 1, "token": 1}]}']
)
def test_a_damaged_file_is_told(capsys: Capture, config: Path, content: str) -> None:
    config.parent.mkdir(parents=True)
    config.write_text(content)
    config.chmod(0o600)
    status, _, err = run(capsys, "query", "--list")
    assert status == 2
    assert "cannot be read: remove it and sign in again" in err


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["query", "--list"], 1, "error[not-signed-in]: not signed in\n"),
        (
            ["tail", HANDLE, "--url", "https://gateway.example", "--as", "paul"],
            1,
            "sluicegate login https://gateway.example --user paul",
        ),
        (
            ["login", "http://gateway.example", "--user", "paul", "--password-stdin"],
            2,
            "`http` is not encrypted",
        ),
        (["login", "https://paul:pw@gateway.example", "--user", "paul"], 2, "more than a host"),
        (["login", "http://127.0.0.1:9"], 2, "--user"),
        (["login", "http://127.0.0.1:9", "--token", "--role", "r"], 2, "belong to --user"),
        (["query"], 2, "required"),
        (["query", "--list", "--explain"], 2, "--explain needs a query"),
        (["tail", HANDLE, "--count", "0"], 2, "from 1"),
        (["grant", "g", "READ (SID) ON Position"], 1, "error["),
        (["grant", "g", "READ (SID) ON Position TO r; DROP GRANT h"], 2, "makes one grant"),
        (["who", "examples", "Position", "--url", "https://gateway.example"], 2, "say one"),
        (["audit", "verify", "--url", "https://gateway.example"], 2, "search and export"),
        (["demo", "--explain", "--port", "1"], 2, "no other option"),
        (["demo", "--port", "70000"], 2, "below 65536"),
    ],
)
def test_what_is_said_wrongly(capsys: Capture, argv: list[str], status: int, said: str) -> None:
    found, out, err = run(capsys, *argv)
    assert (found, out) == (status, "")
    assert said in err


def test_query_tells_the_decision_and_the_handle(capsys: Capture, gateway: Gateway) -> None:
    sign_in(gateway)
    notice = {"code": "PR", "kind": "rows", "message": "tuples are withheld"}
    answer = {"handle": HANDLE, "decision": "partial", "notices": [notice], "version": 3}
    gateway.put("POST", "/v1/queries", answer, 201)
    status, out, _ = run(capsys, "query", "SELECT SID FROM Health")
    assert status == 0
    assert out.splitlines()[:3] == ["partial", "  PR tuples are withheld", f"handle {HANDLE}"]
    assert gateway.asked[-1][2:] == (f"Bearer {TOKEN}", {"query": "SELECT SID FROM Health"})
    assert json.loads(run(capsys, "query", "SELECT SID FROM Health", "--json")[1]) == answer
    gateway.put("POST", "/v1/explain", {"decision": "deny", "notices": []})
    assert run(capsys, "query", "SELECT SID FROM Health", "--explain")[:2] == (1, "deny\n")


def test_a_refusal_underlines_the_text_that_was_sent(capsys: Capture, gateway: Gateway) -> None:
    sign_in(gateway)
    place = {"start": 16, "end": 21, "line": 1, "column": 17, "text": "Helth"}
    error = {"code": "unknown-stream", "message": "unknown stream `Helth`", "help": None, "places": [place]}
    gateway.put("POST", "/v1/queries", {"error": error}, 400)
    status, _, err = run(capsys, "query", "SELECT SID FROM Helth")
    assert status == 1
    assert err == (
        "<query>:1:17: error[unknown-stream]: unknown stream `Helth`\n"
        "  1 | SELECT SID FROM Helth\n    |                 ^^^^^\n"
    )
    error["places"] = [{"start": 5, "end": 5_000}]
    assert (
        run(capsys, "query", "SELECT SID FROM Helth")[2] == "error[unknown-stream]: unknown stream `Helth`\n"
    )


def test_a_gateway_that_is_not_there_is_a_fault(capsys: Capture, gateway: Gateway) -> None:
    sign_in(gateway)
    gateway.put(
        "GET", "/v1/queries", {"error": {"code": "internal", "message": "it failed", "request": "r7"}}, 500
    )
    status, _, err = run(capsys, "query", "--list")
    assert (status, "request r7" in err) == (3, True)
    gateway.stop()
    gateway.stop = lambda: None  # type: ignore[method-assign]
    status, _, err = run(capsys, "query", "--list")
    assert status == 3
    assert err.startswith("sluicegate: cannot go on: the gateway")


def test_queries_are_listed_and_steered(capsys: Capture, gateway: Gateway) -> None:
    sign_in(gateway)
    one = {
        "handle": HANDLE,
        "user": "paul",
        "decision": "permit",
        "rows_delivered": 4,
        "query": "SELECT\n1",
        "paused": True,
    }
    gateway.put("GET", "/v1/queries", {"queries": [one]})
    assert run(capsys, "query", "--list")[1].splitlines()[1].split() == [
        HANDLE,
        "paul",
        "paused",
        "4",
        "SELECT",
        "1",
    ]
    gateway.put("GET", f"/v1/queries/{HANDLE}", one)
    for verb, method, path in (
        ("pause", "POST", "/pause"),
        ("resume", "POST", "/resume"),
        ("drop", "DELETE", ""),
    ):
        gateway.put(method, f"/v1/queries/{HANDLE}{path}", {"done": True})
        assert run(capsys, "query", f"--{verb}", HANDLE)[0] == 0
        assert gateway.asked[-1][:2] == (method, f"/v1/queries/{HANDLE}{path}")


def follow(gateway: Gateway, *events: tuple[str, Any, str | None], query: str = "") -> None:
    sign_in(gateway)
    gateway.put("GET", f"/v1/queries/{HANDLE}", {"handle": HANDLE})
    gateway.put("GET", f"/v1/queries/{HANDLE}/results{query}", write_events(*events))


ROWS = (
    "rows",
    [{"SID": "s1", "Pos": 1.5}, {"SID": "s2", "Pos": None}, {"Pos": 2.0, "window_end": "\x1b[31m"}],
    "c1",
)
NOTICE = ("notice", {"version": 2, "decision": "partial", "notices": ["tuples are withheld"]}, None)


def test_tail_writes_rows_and_tells_the_rest(capsys: Capture, gateway: Gateway) -> None:
    follow(gateway, NOTICE, NOTICE, ROWS, ("gap", {}, "g1"), ("closed", {"version": 2}, None))
    status, out, err = run(capsys, "tail", HANDLE)
    assert status == 0
    assert out.splitlines() == [
        "SID  Pos",
        "s1  1.5",
        "s2  null",
        "SID  Pos  window_end",
        "·  2.0  \\x1b[31m",
    ]
    assert err.splitlines() == [
        "partial (version 2)",
        "  tuples are withheld",
        "gap: some results between these rows are lost",
        "the query has ended",
    ]


def test_tail_ends_with_a_revocation(capsys: Capture, gateway: Gateway) -> None:
    follow(gateway, ROWS, ("withdrawn", {"reason": "no grant lets `paul` see it"}, None))
    status, out, err = run(capsys, "tail", HANDLE, "--json")
    assert status == 1
    assert [json.loads(line) for line in out.splitlines()] == ROWS[1]
    assert err == "error[withdrawn]: no grant lets `paul` see it\n"
    follow(gateway, ("revoked", {"reason": "user-disabled", "version": 3}, None))
    assert run(capsys, "tail", HANDLE)[::2] == (1, "error[revoked]: the session has ended: user-disabled\n")


def test_tail_counts_and_acknowledges_what_was_written_whole(capsys: Capture, gateway: Gateway) -> None:
    follow(gateway, ROWS, query="?cursor=c0")
    gateway.put("POST", f"/v1/queries/{HANDLE}/ack", {"done": True})
    assert (
        len(run(capsys, "tail", HANDLE, "--cursor", "c0", "--count", "2", "--ack", "--json")[1].splitlines())
        == 2
    )
    assert not any(path.endswith("/ack") for _, path, _, _ in gateway.asked)
    assert (
        len(run(capsys, "tail", HANDLE, "--cursor", "c0", "--count", "3", "--ack", "--json")[1].splitlines())
        == 3
    )
    assert gateway.sent("POST", f"/v1/queries/{HANDLE}/ack") == {"cursor": "c1"}


def test_tail_takes_a_query_too(capsys: Capture, gateway: Gateway, tmp_path: Path) -> None:
    follow(gateway, ("closed", {}, None))
    gateway.put("POST", "/v1/queries", {"handle": HANDLE}, 201)
    (tmp_path / "a.query").write_text("SELECT Pos FROM Position")
    assert run(capsys, "tail", str(tmp_path / "a.query"))[0] == 0
    assert gateway.sent("POST", "/v1/queries") == {"query": "SELECT Pos FROM Position"}


def test_grants_are_made_and_revoked(capsys: Capture, gateway: Gateway) -> None:
    sign_in(gateway, "olga", "another-token")
    sign_in(gateway, "ada")
    gateway.put("POST", "/v1/catalog", {"version": 8, "withdrawn": 2, "changed": 0, "dry_run": False})
    status, out, _ = run(
        capsys, "grant", "map", "READ (SID) ON Position TO r;", "--replace", "--reason", "why"
    )
    assert (status, out) == (0, "version 8\nqueries withdrawn: 2\n")
    assert gateway.asked[-1][3] == {
        "statements": "CREATE OR REPLACE GRANT map READ (SID) ON Position TO r;",
        "reason": "why",
        "dry_run": False,
    }
    gateway.put("POST", "/v1/catalog", {"version": 9, "withdrawn": 1, "dry_run": True})
    status, out, _ = run(capsys, "revoke", "map", 'a"; DROP USER ada; --', "--dry-run", "--as", "olga")
    assert (status, out) == (0, "would be version 9\nqueries would be withdrawn: 1\n")
    assert gateway.asked[-1][2] == "Bearer another-token"
    assert gateway.asked[-1][3]["statements"] == 'DROP GRANT map;\nDROP GRANT "a""; DROP USER ada; --";'


def test_the_environment_brings_address_and_token(
    capsys: Capture, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.put("GET", "/v1/queries", {"queries": []})
    monkeypatch.setenv("SLUICEGATE_TOKEN", TOKEN)
    assert run(capsys, "query", "--list")[0] == 1  # a token without an address goes nowhere
    monkeypatch.setenv("SLUICEGATE_URL", gateway.url)
    assert run(capsys, "query", "--list")[:2] == (0, "no queries\n")
    assert gateway.asked[-1][2] == f"Bearer {TOKEN}"


def test_who_and_audit_can_ask_a_gateway(capsys: Capture, gateway: Gateway) -> None:
    sign_in(gateway)
    gateway.put("GET", "/v1/streams", {"streams": [{"name": "a.b"}]})
    entry = {"principal": "paul", "grant": "own", "kind": "read", "attributes": ["c"], "of tomorrow": 1}
    gateway.put(
        "GET", "/v1/who?stream=a.b&attribute=c", {"stream": "a.b", "attribute": "c", "entries": [entry]}
    )
    assert "paul  own    read  c" in run(capsys, "who", "a.b.c")[1]
    event = {
        "number": 1,
        "time": "2026-01-01T10:00:00.5",
        "principal": "paul",
        "action": "register",
        "version": 1,
    }
    gateway.put("GET", "/v1/audit?principal=paul", json.dumps(event).encode() + b"\n")
    out = run(capsys, "audit", "search", "--url", gateway.url, "--principal", "paul")[1]
    assert out.splitlines()[1].split() == ["1", "2026-01-01T10:00:00Z", "paul", "register", "1"]
    assert json.loads(run(capsys, "audit", "export", "--url", gateway.url, "--principal", "paul")[1]) == event


def test_the_demo_falls_back_to_the_explanation(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_missing", lambda: "it needs `pyspark`")
    status, out, err = run(capsys, "demo")
    assert status == 0
    assert "`paul` may have" in out
    assert err.startswith("the gateway cannot be shown here: it needs `pyspark`")


def test_the_demo_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == "uvicorn" else object())
    assert demo.find_missing() == "it needs `uvicorn` (pip install 'sluicegate[spark,service,client,ais]')"


def test_what_the_demo_tells_can_be_typed() -> None:
    lines = [line.strip() for line in TO_TRY.splitlines() if line.startswith("  $command ")]
    assert len(lines) == 8
    for line in lines:
        argv = shlex.split(line.replace("$url", "http://127.0.0.1:1"))[1:]
        assert build_parser().parse_args(argv).verb == argv[0]


def test_the_demo_takes_a_port_that_is_free_or_tells_that_it_is_not() -> None:
    assert find_port(None) in (0, 8765)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
            find_port(port)
    assert find_port(port) == port

"""The client against answers that are made by hand: cut anywhere, broken off, refused."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import httpx
import pyarrow as pa
import pytest

from sluicegate.client import (
    Client,
    Closed,
    GapError,
    GapWarning,
    Handle,
    Notice,
    RefusedError,
    RevokedError,
    Rows,
    UnreachableError,
    UnsafeAddressError,
    WithdrawnError,
)
from sluicegate.client import handle as handle_module
from sluicegate.client.sse import Message, Parser

URL = "http://127.0.0.1:8765"
SECRET = "sg_a-token-that-nobody-may-see"
PASSWORD = "correct horse battery"

Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between connections, which tests do not wait for."""
    found: list[float] = []
    monkeypatch.setattr(handle_module.time, "sleep", found.append)
    return found


def connect(answer: Answer) -> Client:
    return Client(URL, SECRET, transport=httpx.MockTransport(answer))


def write_event(kind: str, data: Any, cursor: str | None = None) -> bytes:
    lead = f"id: {cursor}\n" if cursor else ""
    return f"{lead}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def write_rows(cursor: str, *values: int) -> bytes:
    return write_event("rows", [{"n": value} for value in values], cursor)


class Connections:
    """A gateway that answers each request for results with the next list of chunks; an exception breaks it off."""

    def __init__(self, *answers: list[bytes | Exception] | httpx.Response) -> None:
        self._answers = list(answers)
        self.cursors: list[str | None] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(201, json={"handle": "h 1/2", "decision": "partial", "notices": ["a"]})
        assert request.url.raw_path.startswith(b"/v1/queries/h%201%2F2/results")
        assert request.headers["Accept"] == "text/event-stream"
        self.cursors.append(request.url.params.get("cursor"))
        answer = self._answers.pop(0)
        if isinstance(answer, httpx.Response):
            return answer
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Chunks(answer))


class Chunks(httpx.SyncByteStream):
    def __init__(self, parts: list[bytes | Exception]) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part


def follow(*answers: list[bytes | Exception] | httpx.Response) -> tuple[Handle, Connections]:
    gateway = Connections(*answers)
    return connect(gateway).query("SELECT n FROM S"), gateway


CUT = httpx.ReadError("connection reset")
END = write_event("closed", {"version": 1})


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_however_they_are_cut(end: str, size: int) -> None:
    text = ": beat\n\nid: c1\nevent: rows\ndata: [1,\ndata:  2]\n\nid: c\0\nretry: 5\nevent: é\ndata\n\ndata: x\n"
    raw = b"\xef\xbb\xbf" + text.replace("\n", end).encode()
    parser = Parser()
    found = [each for at in range(0, len(raw), size) for each in parser.feed(raw[at : at + size])]
    # the last one has no empty line behind it: it is not whole
    assert found == [Message("rows", "[1,\n 2]", "c1"), Message("é", "", "")]


def test_an_empty_chunk_between_cr_and_lf_ends_nothing() -> None:
    parser = Parser()
    chunks = [b"data: a\r", b"", b"\ndata: b\r\n\r\n"]
    assert [each.data for chunk in chunks for each in parser.feed(chunk)] == ["a\nb"]


def test_an_event_without_end_is_given_up() -> None:
    parser = Parser(largest=100)
    for _ in range(6):
        assert list(parser.feed(b"data: 0123456789")) == []
    with pytest.raises(ValueError, match="larger"):
        list(parser.feed(b"data: 0123456789"))


def test_rows_come_once_over_broken_connections(slept: list[float]) -> None:
    first, second = write_rows("c1", 1, 2), write_rows("c2", 3)
    handle, gateway = follow(
        [first, second[:-10], CUT],
        httpx.Response(
            503, json={"error": {"code": "gateway-lease", "message": "m"}}, headers={"Retry-After": "2"}
        ),
        [write_event("notice", {"version": 2}), second[:5], second[5:]],
        [b": \n\n", httpx.ReadTimeout("silence")],
        [write_rows("c3", 4), END],
    )
    assert [row["n"] for row in handle.rows()] == [1, 2, 3, 4]
    assert gateway.cursors == [None, "c1", "c1", "c2", "c2"]
    assert handle.cursor == "c3"
    assert len(slept) == 4
    assert slept[1] == 2.0


def test_it_gives_up_after_a_while(monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    now = iter(range(0, 10_000, 5))
    monkeypatch.setattr(handle_module.time, "monotonic", lambda: next(now))
    handle, _ = follow([write_rows("c1", 1)], *([[CUT]] * 50))
    rows = handle.rows(patience=60)
    assert next(rows) == {"n": 1}
    with pytest.raises(UnreachableError) as caught:
        next(rows)
    assert caught.value.code == "gateway-unreachable"
    assert 5 < len(slept) < 20
    assert max(slept) <= 10


def test_a_reader_that_stops_within_an_event_gets_the_rest_later() -> None:
    handle, gateway = follow([write_rows("c1", 1, 2, 3), CUT], [write_rows("c2", 4), END])
    assert [row["n"] for row in islice(handle.rows(), 2)] == [1, 2]
    assert handle.cursor is None  # not the whole event was handed out
    assert [row["n"] for row in handle.rows()] == [3, 4]
    assert gateway.cursors == [None, "c1"]


def test_a_cursor_forgets_what_was_left_over() -> None:
    handle, gateway = follow([write_rows("c1", 1, 2)], [write_rows("c9", 9), END])
    next(handle.rows())
    assert [row["n"] for row in handle.rows("c5")] == [9]
    assert gateway.cursors == [None, "c5"]


def test_gaps_raise_or_are_told_and_reading_goes_on_behind_them() -> None:
    gap = write_event("gap", {"cursor": "g1", "first": 1, "last": 2}, "g1")
    handle, gateway = follow([write_rows("c1", 1), gap], [write_rows("c2", 2), END])
    rows = handle.rows()
    assert next(rows) == {"n": 1}
    with pytest.raises(GapError) as caught:
        next(rows)
    assert (caught.value.code, handle.cursor) == ("gap", "g1")
    assert [row["n"] for row in handle.rows()] == [2]
    assert gateway.cursors == [None, "g1"]

    told: list[object] = []
    handle, _ = follow([gap, write_rows("c2", 2), END])
    assert [row["n"] for row in handle.rows(on_gap=told.append)] == [2]
    assert len(told) == 1


@pytest.mark.parametrize(
    ("kind", "data", "error", "said"),
    [
        ("withdrawn", {"reason": "no grant is left", "version": 4}, WithdrawnError, "no grant is left"),
        ("revoked", {"reason": "user-disabled", "version": 4}, RevokedError, "user-disabled"),
    ],
)
def test_nothing_is_asked_after_the_end(
    kind: str, data: dict[str, Any], error: type[Exception], said: str
) -> None:
    handle, gateway = follow([write_rows("c1", 1), write_event(kind, data), write_rows("c2", 2)])
    rows = handle.rows()
    next(rows)
    with pytest.raises(error, match=said):
        next(rows)
    assert len(gateway.cursors) == 1


def test_events_have_types() -> None:
    notice = write_event("notice", {"version": 3, "decision": "permit"})
    handle, _ = follow([notice, write_rows("c1", 1), write_event("of tomorrow", {}), END])
    assert list(handle.events()) == [
        Notice({"version": 3, "decision": "permit"}),
        Rows(({"n": 1},), "c1"),
        Closed(),
    ]
    assert (handle.decision, handle.notices) == ("partial", ("a",))


@pytest.mark.parametrize(
    "bad",
    [
        b"id: c1\nevent: rows\ndata: {\n\n",
        b"event: rows\ndata: []\n\n",
        b"data: \xff\n\n",
        b"id: c\nevent: rows\ndata: [1]\n\n",
    ],
)
def test_what_is_no_event_is_asked_for_again_and_never_handed_out(bad: bytes) -> None:
    handle, gateway = follow([bad], [write_rows("c1", 1), END])
    assert list(handle.rows()) == [{"n": 1}]
    assert gateway.cursors == [None, None]


def test_a_page_that_is_no_stream_is_not_read_as_one() -> None:
    page = httpx.Response(200, headers={"Content-Type": "text/html"}, content=write_rows("c1", 1))
    handle, _ = follow(page, [END])
    assert list(handle.rows()) == []


def refuse(status: int, **error: Any) -> Answer:
    return lambda _: httpx.Response(status, json={"error": error})


def test_refusals_carry_code_words_and_places() -> None:
    place = {"line": 1, "column": 17, "start": 16, "end": 21, "text": "Helth", "code": "unknown-stream"}
    error = {"code": "unknown-stream", "message": "unknown stream `Helth`", "help": "did you mean `Health`?"}
    client = connect(refuse(400, **error, places=[place], request="r1"))
    with pytest.raises(RefusedError) as caught:
        client.explain("SELECT SID FROM Helth")
    found = caught.value
    assert (found.status, found.code, found.help) == (400, "unknown-stream", "did you mean `Health`?")
    assert (found.places, found.request) == ((place,), "r1")
    assert "unknown stream `Helth`" in str(found)


def test_a_refusal_ends_the_rows_at_once() -> None:
    refused = httpx.Response(401, json={"error": {"code": "token-expired", "message": "m"}})
    handle, gateway = follow([write_rows("c1", 1)], refused)
    rows = handle.rows()
    next(rows)
    with pytest.raises(RefusedError, match="token-expired"):
        next(rows)
    assert len(gateway.cursors) == 2


@pytest.mark.parametrize(
    "content", [b"<html>", b"[]", b'{"error": 1}', b'{"error": {"places": 1}}', b"\xff", b""]
)
def test_answers_of_something_else_are_refusals_too(content: bytes) -> None:
    with pytest.raises(RefusedError) as caught:
        connect(lambda _: httpx.Response(502, content=content)).me()
    assert caught.value.code == "answer-malformed"


@pytest.mark.parametrize("content", [b"<html>", b"[]", b"{", b""])
def test_an_answer_of_another_form_is_an_error(content: bytes) -> None:
    with pytest.raises(UnreachableError, match="answer-malformed"):
        connect(lambda _: httpx.Response(200, content=content)).query("SELECT n FROM S")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "http://10.0.0.1:8765",
        "http://localhost.example.org",
        "https://user:pw@example.org",
        "https://example.org?token=x",
        "https://example.org#x",
        "ftp://127.0.0.1",
        "example.org",
        "http://",
        "",
        "http://127.0.0.1:port",
    ],
)
def test_nothing_is_sent_to_an_unsafe_address(url: str) -> None:
    with pytest.raises(UnsafeAddressError) as caught:
        Client(url, SECRET)
    assert caught.value.code == "address-unsafe"
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://[::1]:1", "http://localhost:1", "https://example.org/gate/"]
)
def test_safe_addresses(url: str) -> None:
    assert repr(Client(url)) == f"Client({url.rstrip('/')!r})"


def test_http_to_others_must_be_wanted() -> None:
    assert Client("http://gateway.internal", allow_http=True)


def test_a_redirect_does_not_carry_the_token_away() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(302, headers={"Location": "https://elsewhere.example/"})

    with pytest.raises(RefusedError):
        connect(answer).me()
    assert asked == ["127.0.0.1"]


def test_the_token_is_in_the_header_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.url.path == "/v1/sign-in":
            assert json.loads(request.content) == {"user": "paul", "password": PASSWORD, "roles": ["Doctor"]}
            return httpx.Response(
                200, json={"token": SECRET, "user": "paul", "roles": ["Doctor"], "expires": 1}
            )
        raise httpx.ConnectError("no route")

    with Client(URL, transport=httpx.MockTransport(answer)) as client:
        session = client.sign_in("paul", PASSWORD, ["Doctor"])
        with pytest.raises(UnreachableError) as caught:
            client.me()
    assert "Authorization" not in seen[0].headers
    assert seen[1].headers["Authorization"] == f"Bearer {SECRET}"
    shown = [
        repr(client),
        repr(session),
        repr(client.tokens),
        str(caught.value),
        caplog.text,
        *(str(each.url) for each in seen),
    ]
    assert session.token == SECRET
    assert not any(SECRET in each or PASSWORD in each for each in shown)
    assert caught.value.__cause__ is None


def test_push_writes_lines_or_arrow() -> None:
    sent: list[tuple[str, bytes]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append((request.headers["Content-Type"], request.read()))
        assert request.url.raw_path == b"/v1/streams/a%2Fb"
        return httpx.Response(200, json={"accepted": 1, "refused": [{"row": 2, "reason": "no"}]})

    client = connect(answer)
    pushed = client.push("a/b", [{"ts": datetime(2026, 1, 1), "n": 1}, {"n": 2}])
    assert (pushed.accepted, pushed.refused) == (1, ({"row": 2, "reason": "no"},))
    client.push("a/b", pa.table({"n": [1]}))
    kinds, bodies = zip(*sent, strict=True)
    assert kinds == ("application/x-ndjson", "application/vnd.apache.arrow.stream")
    assert bodies[0] == b'{"ts": "2026-01-01T00:00:00", "n": 1}\n{"n": 2}\n'
    assert pa.ipc.open_stream(bodies[1]).read_all().to_pylist() == [{"n": 1}]
    with pytest.raises(TypeError, match="cannot be pushed"):
        client.push("a/b", [{"n": object()}])


def write_table(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return sink.getvalue()


class Tables:
    """A gateway that has so many tables of one row each, then says nothing more, or something."""

    def __init__(self, count: int, events: str = "") -> None:
        self._count, self._events = count, events
        self.asked: list[dict[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(201, json={"handle": "h"})
        if request.headers["Accept"] == "text/event-stream":
            stream = Chunks(
                [write_event("rows", [{"t": "2026-01-01T00:00:00"}, {"t": "2026-01-01T00:00:01"}], "0")]
            )
            return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=stream)
        self.asked.append(dict(request.url.params))
        at = int(request.url.params.get("cursor", "0"))
        if at >= self._count:
            headers = {
                "X-Sluicegate-Cursor": str(at),
                **({"X-Sluicegate-Events": self._events} if self._events else {}),
            }
            return httpx.Response(204, headers=headers)
        content = write_table([{"t": datetime(2026, 1, 1, 1, at)}])
        return httpx.Response(200, content=content, headers={"X-Sluicegate-Cursor": str(at + 1)})


def test_to_arrow_stops_at_the_limit_and_goes_on_from_there() -> None:
    gateway = Tables(5)
    handle = connect(gateway).query("SELECT t FROM S")
    assert handle.to_arrow(limit=2).num_rows == 2
    assert [each["limit"] for each in gateway.asked] == ["2", "1"]
    rest = handle.to_arrow(timeout=0.0)
    assert rest["t"].to_pylist() == [datetime(2026, 1, 1, 1, at) for at in (2, 3, 4)]
    assert handle.to_arrow(timeout=0.0).num_rows == 0
    assert handle.cursor == "5"


def test_to_arrow_begins_with_rows_that_were_left_over() -> None:
    handle = connect(Tables(1)).query("SELECT t FROM S")
    next(handle.rows())
    assert handle.to_arrow(limit=2)["t"].to_pylist() == [
        datetime(2026, 1, 1, 0, 0, 1),
        datetime(2026, 1, 1, 1, 0),
    ]


def test_to_arrow_tells_of_gaps_and_the_end() -> None:
    with pytest.warns(GapWarning):
        connect(Tables(0, "gap")).query("SELECT t FROM S").to_arrow(timeout=0.0)
    handle = connect(Tables(1, "withdrawn")).query("SELECT t FROM S")
    assert handle.to_arrow(limit=10).num_rows == 1
    with pytest.raises(WithdrawnError):
        handle.to_arrow(limit=10)
    with pytest.raises(ValueError, match="no end"):
        handle.to_arrow()


def test_calls_have_the_routes_of_the_gateway() -> None:
    asked: list[tuple[str, str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        asked.append((request.method, request.url.raw_path.decode(), body))
        if request.headers["Accept"] == "application/x-ndjson":
            return httpx.Response(200, content=b'{"number": 1}\n\n{"number": 2}\n{"number": 3}\n')
        return httpx.Response(200, json={"handle": "h", "token": "t", "id": "i", "version": 3})

    client = connect(answer)
    handle = client.handle("h")
    handle.cursor = "c1"
    for call in (handle.ack, handle.pause, handle.resume, handle.drop):
        call()
    assert client.change("DROP GRANT g;", "why", True)["version"] == 3
    assert client.history(limit=5) == []
    client.who("Position", "Pos")
    assert [each["number"] for each in client.audit(principal="paul", limit=2)] == [1, 2]
    issued = client.tokens.create(["read"], 60.0)
    assert (issued.token, issued.told["id"]) == ("t", "i")
    assert "'t'" not in repr(issued)
    client.tokens.revoke("a/b")
    client.set_password("p/q", PASSWORD)
    client.sign_out()
    assert asked == [
        ("GET", "/v1/queries/h", None),
        ("POST", "/v1/queries/h/ack", {"cursor": "c1"}),
        ("POST", "/v1/queries/h/pause", None),
        ("POST", "/v1/queries/h/resume", None),
        ("DELETE", "/v1/queries/h", None),
        ("POST", "/v1/catalog", {"statements": "DROP GRANT g;", "dry_run": True, "reason": "why"}),
        ("GET", "/v1/catalog/history?after=0&limit=5", None),
        ("GET", "/v1/who?stream=Position&attribute=Pos", None),
        ("GET", "/v1/audit?principal=paul", None),
        ("POST", "/v1/tokens", {"scopes": ["read"], "expires_in": 60.0}),
        ("DELETE", "/v1/tokens/a%2Fb", None),
        ("POST", "/v1/users/p%2Fq/password", {"password": PASSWORD}),
        ("POST", "/v1/sign-out", None),
    ]

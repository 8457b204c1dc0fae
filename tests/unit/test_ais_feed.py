"""The feed of AIS without Spark: files, sockets, dead letters, and restarts that lose and double nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.check_ais import read_ais_options
from sluicegate.policy.model import Stream
from unit.ais_world import position, read_all, sentences, tag
from unit.test_ais_streams import declare, write_stream

pytest.importorskip("pyais")
pytest.importorskip("pyarrow")

from sluicegate.runtime.ais import feed as feeding
from sluicegate.runtime.ais import progress
from sluicegate.runtime.ais import receivers as receiving
from sluicegate.runtime.ais.decoder import Decoded, Decoder
from sluicegate.runtime.ais.feed import AisFeed
from sluicegate.runtime.ais.receivers import Piece, Receivers, Subscription
from sluicegate.runtime.ais.state import State
from sluicegate.runtime.feed.dead_letters import read_dead_letters
from sluicegate.runtime.feed.log_files import read_rows

ATTRIBUTES = "T TIMESTAMP, SID BIGINT, Name STRING, Lat DOUBLE, Receiver STRING"
BEGIN = 1_700_000_000


def write_log(path: Path, count: int = 60) -> None:
    """A ship that reports each second, twice heard; its static data now and then, in parts; some rubbish."""
    lines = []
    for second in range(count):
        when = f"c:{BEGIN + second}"
        if second % 7 == 3:
            parts = sentences(5, sequence=second % 10, shipname=f"VEGA {second}")
            lines += [tag(f"s:a,{when}") + part for part in parts]
        if second % 5 == 2:
            lines.append("rubbish")
        lines += [tag(f"s:{each},{when}") + position(lat=second / 10) for each in "ab"]
    path.write_text("\r\n".join(lines), encoding="ascii")


def file_stream(path: Path, more: str = "") -> Stream:
    return declare(ATTRIBUTES, f"file = '{path}'{more}")


def read(feed: AisFeed) -> list[dict[str, Any]]:
    names = [name for name, _ in feed.stream.attributes]
    batches = [batch for batch in feed.log.batches() if batch.rows]
    return [row for batch in batches for row in read_rows(batch.path, [*names, "_offset"]).to_pylist()]


def drop_offsets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "_offset"} for row in rows]


def run_to_end(stream: Stream, folder: Path) -> AisFeed:
    feed = AisFeed(stream, folder, Receivers())
    feed.start()
    assert feed.wait(30)
    assert feed.failure is None
    return feed


def test_a_file_is_read_to_its_end_once(tmp_path: Path) -> None:
    write_log(tmp_path / "a.nmea")
    feed = run_to_end(file_stream(tmp_path / "a.nmea"), tmp_path)
    rows = read(feed)
    assert [row["Lat"] for row in rows] == [second / 10 for second in range(60)]
    assert [row["Name"] for row in rows[:5]] == [None] * 3 + ["VEGA 3"] * 2
    assert {row["Receiver"] for row in rows} == {"a"}
    assert feed.log.finished
    letters = list(read_dead_letters(feed.log))
    assert len(letters) == 12
    assert {(each.reason, each.raw) for each in letters} == {
        ("ais-junk: the line has no sentence", "rubbish")
    }
    assert sum(batch.dead for batch in feed.log.batches()) == 12
    again = run_to_end(file_stream(tmp_path / "a.nmea"), tmp_path)
    assert read(again) == rows


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize(
    "point", ["before the state", "after the state", "after the letters", "after the batch"]
)
def test_a_process_that_is_killed_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    write_log(tmp_path / "a.nmea", 30)
    wanted = read(run_to_end(file_stream(tmp_path / "a.nmea"), tmp_path / "whole"))
    # cuts through lines and through messages
    monkeypatch.setattr(feeding, "_PIECE", 331)
    monkeypatch.setattr(progress, "_MANY", 5)
    stream, lives = file_stream(tmp_path / "a.nmea"), 0
    while True:
        with monkeypatch.context() as patch:
            _kill(patch, point, after=3)
            feed = AisFeed(stream, tmp_path / "cut", Receivers())
            feed.start()
            assert feed.wait(30)
        lives += 1
        if feed.log.finished:
            break
        assert feed.failure is not None
    assert lives > 3
    assert drop_offsets(read(feed)) == drop_offsets(wanted)
    assert len(list(read_dead_letters(feed.log))) == 6


def _kill(patch: pytest.MonkeyPatch, point: str, after: int) -> None:
    """At one point of the batch after so many."""
    where, name = {
        "before the state": (progress.Progress, "write"),
        "after the state": (feeding, "make_table"),
        "after the letters": (feeding, "append_table"),
        "after the batch": (progress.Progress, "is_long"),
    }[point]
    plain: Callable[..., Any] = getattr(where, name)
    left = [after]

    def die(*given: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError
        return plain(*given, **named)

    patch.setattr(where, name, die)


CHILD = """
import sys
from pathlib import Path
from sluicegate.language.load import read_catalog
from sluicegate.runtime.ais import feed
from sluicegate.runtime.ais.receivers import Receivers
feed._PACED_PIECE = 331
stream = read_catalog(sys.argv[1]).streams["S"]
made = feed.AisFeed(stream, Path(sys.argv[2]), Receivers(), lambda: print("batch", flush=True))
made.start()
made.wait()
"""


def test_a_process_that_is_really_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    write_log(tmp_path / "a.nmea", 30)
    wanted = read(run_to_end(file_stream(tmp_path / "a.nmea"), tmp_path / "whole"))
    text = write_stream(ATTRIBUTES, f"file = '{tmp_path / 'a.nmea'}', pace = '20'")
    command = [sys.executable, "-c", CHILD, text, str(tmp_path / "cut")]
    for batches in (3, 5):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            for _ in range(batches):
                assert child.stdout.readline() == b"batch\n"
            child.kill()
    feed = run_to_end(file_stream(tmp_path / "a.nmea", ", pace = '20'"), tmp_path / "cut")
    assert drop_offsets(read(feed)) == drop_offsets(wanted)


def test_a_file_can_be_paced_and_stopped(tmp_path: Path) -> None:
    write_log(tmp_path / "a.nmea", 60)
    stream = file_stream(tmp_path / "a.nmea", ", pace = '30'")
    feed = AisFeed(stream, tmp_path, Receivers())
    began = time.monotonic()
    feed.start()
    assert not feed.wait(0.5)
    feed.stop()
    assert time.monotonic() - began < 5
    before = len(read(feed))
    assert 0 < before < 60
    feed.start()
    assert feed.wait(30)
    assert len(read(feed)) == 60


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="does not exist"):
        AisFeed(file_stream(tmp_path / "none"), tmp_path, Receivers()).start()


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(feed: AisFeed) -> Iterator[AisFeed]:
    feed.start()
    try:
        yield feed
    finally:
        feed.stop()


def wait_for(feed: AisFeed, count: int) -> list[dict[str, Any]]:
    until = time.monotonic() + 20
    while len(rows := read(feed)) < count and time.monotonic() < until:
        time.sleep(0.02)
    return rows


def test_a_source_that_closes_is_called_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        stream = declare(ATTRIBUTES, f"tcp = '127.0.0.1:{port}'")
        with running(AisFeed(stream, tmp_path, Receivers())) as feed:
            for lat in (1.0, 2.0):
                caller, _ = server.accept()
                with caller:
                    # the second line is cut off by the end of the connection
                    caller.sendall((position(lat=lat) + "\r\n" + position(lat=9.0)[:20]).encode())
            rows = wait_for(feed, 2)
    assert [row["Lat"] for row in rows] == [1.0, 2.0]
    assert {row["Receiver"] for row in rows} == {f"127.0.0.1:{port}"}
    assert [each.reason.partition(":")[0] for each in read_dead_letters(feed.log)] == ["ais-checksum"] * 2


def test_several_callers_are_heard_each_by_itself(tmp_path: Path) -> None:
    port = free_port()
    stream = declare(ATTRIBUTES, f"listen = '127.0.0.1:{port}'")
    parts = sentences(5, shipname="VEGA"), sentences(5, shipname="LYRA", mmsi=9)
    with (
        running(AisFeed(stream, tmp_path, Receivers())) as feed,
        socket.create_connection(("127.0.0.1", port)) as one,
        socket.create_connection(("127.0.0.1", port)) as other,
    ):
        for left, right in zip(*parts, strict=True):
            one.sendall(f"{left}\n".encode())
            other.sendall(f"{right}\n".encode())
            time.sleep(0.05)
        one.sendall(f"{position()}\n".encode())
        other.sendall(f"{position(mmsi=9)}\n".encode())
        rows = wait_for(feed, 2)
    assert {(row["SID"], row["Name"]) for row in rows} == {(563012345, "VEGA"), (9, "LYRA")}
    assert list(read_dead_letters(feed.log)) == []


def test_a_new_caller_takes_the_place_of_the_one_that_was_silent_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiving, "MOST_CALLERS", 2)
    port = free_port()
    joined = Receivers().join("listen", ("127.0.0.1", port))
    heard = b""

    def wait_to_hear(text: bytes) -> None:
        nonlocal heard
        until = time.monotonic() + 10
        while not heard.endswith(text) and time.monotonic() < until:
            heard += b"".join(piece.data for piece in joined.take())
            time.sleep(0.01)
        assert heard.endswith(text)

    with (
        socket.create_connection(("127.0.0.1", port)) as first,
        socket.create_connection(("127.0.0.1", port)) as silent,
    ):
        first.sendall(b"one\n")
        wait_to_hear(b"one\n")
        with socket.create_connection(("127.0.0.1", port)) as new:
            new.sendall(b"two\n")
            wait_to_hear(b"two\n")
            silent.settimeout(10)
            assert silent.recv(1) == b""
            first.sendall(b"three\n")
            wait_to_hear(b"three\n")
    joined.close()


def test_connections_that_died_without_a_word_are_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    keep_alive = receiving._keep_alive

    def look(connected: socket.socket) -> None:
        keep_alive(connected)
        kept.append(connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))

    monkeypatch.setattr(receiving, "_keep_alive", look)
    receivers, port = Receivers(), free_port()
    listening = receivers.join("listen", ("127.0.0.1", port))
    calling = receivers.join("tcp", ("127.0.0.1", port))
    until = time.monotonic() + 10
    while len(kept) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    calling.close()
    listening.close()
    assert [each != 0 for each in kept] == [True, True]


def test_half_a_message_of_another_kind_is_no_dead_letter_of_a_stream() -> None:
    half = "\n".join([sentences(5, shipname="VEGA")[0], sentences(14, sequence=2, text="MAYDAY " * 9)[0]])
    orphan = sentences(5, sequence=3, shipname="LYRA")[1]
    data = f"{half}\n{orphan}\n".encode()
    for kind, attributes, wanted in (
        ("safety", "T TIMESTAMP, Text STRING", [2, 3]),
        ("static", "T TIMESTAMP, Name STRING", [1, 3]),
    ):
        stream = declare(attributes, f"udp = '127.0.0.1:1', messages = '{kind}'")
        decoder, found = Decoder(stream, read_ais_options(stream), State()), Decoded()
        decoder.take(Piece(data, "peer", BEGIN * 1_000_000, last=True), found)
        assert [(each.line, each.code) for each in found.dead] == [
            (line, "ais-incomplete") for line in wanted
        ]


def test_datagrams_of_one_port_feed_several_streams(tmp_path: Path) -> None:
    port, receivers = free_port(socket.SOCK_DGRAM), Receivers()
    ships = declare(ATTRIBUTES, f"udp = '127.0.0.1:{port}'")
    static = declare("T TIMESTAMP, Name STRING", f"udp = '127.0.0.1:{port}', messages = 'static'")
    with (
        running(AisFeed(ships, tmp_path, receivers)) as first,
        running(AisFeed(static, tmp_path, receivers)) as second,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        for text in ("\n".join(sentences(5, shipname="VEGA")), position()):
            sender.sendto(text.encode(), ("127.0.0.1", port))
        assert [row["Name"] for row in wait_for(first, 1)] == ["VEGA"]
        assert [row["Name"] for row in wait_for(second, 1)] == ["VEGA"]
        with pytest.raises(DiagnosticError, match="port"):
            AisFeed(
                declare(ATTRIBUTES, f"udp = '127.0.0.1:{port}', remember = '5'"), tmp_path, Receivers()
            ).start()


def test_ships_are_known_again_after_a_restart(tmp_path: Path) -> None:
    """Also where the static report was the last that came."""
    port = free_port(socket.SOCK_DGRAM)
    stream = declare(ATTRIBUTES, f"udp = '127.0.0.1:{port}'")
    for text in ("\n".join(sentences(5, shipname="VEGA")), position()):
        with (
            running(AisFeed(stream, tmp_path, Receivers())) as feed,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            sender.sendto(text.encode(), ("127.0.0.1", port))
            wait_for(feed, 1) if text == position() else time.sleep(0.5)
    assert [row["Name"] for row in read(feed)] == ["VEGA"]


def test_what_comes_faster_than_it_is_taken_is_lost_and_told() -> None:
    from sluicegate.runtime.ais import receivers

    subscription = Subscription(lambda _: None)
    half = b"x" * (receivers.LARGEST_BACKLOG // 2)
    for _ in range(4):
        subscription.put(receivers.Piece(half, "a"))
    assert [(len(each.data), each.lost) for each in subscription.take()] == [(len(half), 0)] * 2
    subscription.put(receivers.Piece(b"y", "a"))
    assert [(each.data, each.lost) for each in subscription.take()] == [(b"y", 2 * len(half))]


def test_the_state_beside_a_log_that_is_damaged_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path / "a.nmea")
    feed = run_to_end(file_stream(tmp_path / "a.nmea"), tmp_path)
    for path in (feed.log.folder / "ais").iterdir():
        path.unlink()
    with pytest.raises(DiagnosticError, match="lacks batch"):
        progress.Progress(feed.log.folder).load(feed.log.end)


def test_half_a_message_is_kept_with_the_state() -> None:
    from sluicegate.runtime.ais.lines import LineCutter
    from sluicegate.runtime.ais.reader import Reader
    from sluicegate.runtime.ais.state import restore_line, save_line

    lines = [tag("g:1-3-7,s:a,c:1700000000") + sentences(5, shipname="VEGA")[0]]
    lines += [
        tag(f"g:{number}-3-7") + part for number, part in enumerate(sentences(5, shipname="VEGA")[1:], 2)
    ]
    text = "\n".join(lines).encode()
    whole, _ = read_all(text)
    for cut in range(0, len(text), 7):
        cutter, reader = LineCutter(), Reader()
        found = [each for number, line in cutter.feed(text[:cut]) for each in reader.read(number, line)]
        cutter, reader = restore_line(save_line(cutter, reader))
        rest = [*cutter.feed(text[cut:]), *cutter.end()]
        found += [each for number, line in rest for each in reader.read(number, line)]
        assert found == whole

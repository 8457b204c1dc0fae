"""The traffic of a port: the same for a seed, plausible on a map, and readable as what receivers log."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyais")

from sluicegate.cli.main import main
from sluicegate.runtime.ais.decode import decode_message
from sluicegate.testing.port_traffic.fleet import KNOWN
from sluicegate.testing.port_traffic.traffic import PortTraffic
from sluicegate.testing.port_traffic.waters import EASTBOUND, WESTBOUND, measure, point_from
from unit.ais_world import codes, messages, read_all

BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)
SIMULATE = [
    "ais",
    "simulate",
    "--ships",
    "20",
    "--seconds",
    "30",
    "--speed",
    "0",
    "--at",
    "2026-03-01T09:00:00Z",
]


def traffic(ships: int, seconds: float, seed: int = 1) -> bytes:
    return b"".join(report.lines for report in PortTraffic(ships, seed, BEGIN).run(seconds))


@pytest.fixture(scope="module")
def some() -> list[tuple[int, Any]]:
    """Half an hour of it, decoded, with its times."""
    found, reader = read_all(traffic(40, 1800))
    assert codes(found) == []
    assert reader.counts.waiting == 0
    return [(each.time or 0, decode_message(each)) for each in messages(found)]


def test_a_seed_gives_the_same_bytes() -> None:
    assert traffic(30, 120) == traffic(30, 120)
    assert traffic(30, 120) != traffic(30, 120, seed=2)


def test_reports_come_in_the_order_of_time() -> None:
    times = [report.time for report in PortTraffic(30, 1, BEGIN).run(300)]
    assert times == sorted(times)
    assert BEGIN.timestamp() <= times[0] <= times[-1] < BEGIN.timestamp() + 300


def test_all_kinds_of_messages_are_there(some: list[tuple[int, Any]]) -> None:
    kinds = Counter(found.msg_type for _, found in some)
    assert set(kinds) == {1, 4, 5, 14, 18, 21, 24}
    states = {int(found.status) for _, found in some if found.msg_type == 1}
    assert states >= {0, 1, 5, 6}


def test_nobody_jumps(some: list[tuple[int, Any]]) -> None:
    """From report to report a ship goes no farther than it says it is fast; times are whole seconds."""
    last: dict[int, tuple[int, Any]] = {}
    for time, found in some:
        if found.msg_type not in (1, 18):
            continue
        before = last.get(found.mmsi)
        last[found.mmsi] = time, found
        if before is None or before[1].lon == found.lon:
            continue
        seconds = (time - before[0]) / 1e6 + 1
        gone = measure((before[1].lon, before[1].lat), (found.lon, found.lat))
        fastest = max(found.speed, before[1].speed, 3.0) + 0.05 * seconds
        assert gone <= fastest * seconds / 3600 + 0.03


def test_ships_in_a_lane_go_along_it(some: list[tuple[int, Any]]) -> None:
    """Each lane in its own direction."""
    for lane, away in ((WESTBOUND, (180, 360)), (EASTBOUND, (0, 180))):
        for _, found in some:
            if found.msg_type != 1 or found.speed < 8 or found.mmsi not in {mmsi for mmsi, _, _ in KNOWN}:
                continue
            near = min(range(len(lane) - 1), key=lambda at: measure(lane[at], (found.lon, found.lat)))
            other = EASTBOUND if lane is WESTBOUND else WESTBOUND
            nearer = min(measure(each, (found.lon, found.lat)) for each in other)
            if (
                measure(lane[near], (found.lon, found.lat)) < 0.5
                and nearer > 1.2
                and 103.3 < found.lon < 104.4
            ):
                along = point_from(lane[max(0, near - 1)], lane[near + 1])
                assert away[0] <= found.course <= away[1]
                assert abs((found.course - along + 180) % 360 - 180) < 45


def test_ships_say_who_they_are(some: list[tuple[int, Any]]) -> None:
    named = {found.mmsi: found for _, found in some if found.msg_type == 5}
    assert {mmsi: found.shipname for mmsi, found in named.items()}.items() >= {
        mmsi: name for mmsi, name, _ in KNOWN
    }.items()
    for found in named.values():
        assert found.to_bow + found.to_stern > found.to_port + found.to_starboard > 0
        digits = [int(each) for each in f"{found.imo:07d}"]
        assert found.imo == 0 or sum(map(int.__mul__, digits[:6], range(7, 1, -1))) % 10 == digits[6]
    assert len({found.shipname for found in named.values()}) == len(named)


def test_an_emergency_begins_and_ends(some: list[tuple[int, Any]]) -> None:
    texts = [found.text for _, found in some if found.msg_type == 14]
    assert "MIRA AGROUND KEEP CLEAR" in texts
    assert "MIRA UNDER WAY AGAIN" in texts
    states: dict[int, list[int]] = defaultdict(list)
    for _, found in some:
        if found.msg_type == 1:
            states[found.mmsi].append(int(found.status))
    mira = [
        state
        for state, after in zip(states[412000111], [*states[412000111][1:], -1], strict=True)
        if state != after
    ]
    assert mira[:3] == [0, 6, 0]


def test_the_command_writes_what_the_other_decodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "port.nmea"
    assert main([*SIMULATE, "--file", str(path)]) == 0
    assert main(["ais", "decode", str(path)]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["time"][:16] for each in found} == {"2026-03-01T09:00"}
    assert main(SIMULATE) == 0
    assert capsys.readouterr().out.encode() == path.read_bytes().replace(b"\r\n", b"\n")
    assert main([*SIMULATE, "--ships", "0"]) == 2


def test_the_command_sends_datagrams() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        sending = threading.Thread(target=main, args=([*SIMULATE, "--udp", address],))
        sending.start()
        assert server.recv(4096).startswith(b"\\")
        sending.join()


def test_the_command_serves_callers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    slow = [*SIMULATE[:-4], "--speed", "20", "--tcp", str(port)]
    sending = threading.Thread(target=main, args=(slow,))
    sending.start()
    try:
        for _ in range(100):
            try:
                caller = socket.create_connection(("127.0.0.1", port), timeout=5)
                break
            except ConnectionRefusedError:
                threading.Event().wait(0.02)
        with caller:
            assert caller.recv(4096).startswith(b"\\")
    finally:
        sending.join()

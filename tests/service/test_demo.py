"""`sluicegate demo` as a process: three accounts see other ships by the same query, a revocation stops them, a clean end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sluicegate.cli.demo_port import ACCOUNTS, READY, SHIPS
from sluicegate.client import Client, Handle, WithdrawnError
from sluicegate.testing.port_traffic.waters import measure

pytestmark = [pytest.mark.spark, pytest.mark.slow]
VEGA, LYRA, MIRA = 563012345, 563067890, 412000111
Row = dict[str, Any]


@dataclass
class Demo:
    process: subprocess.Popen[str]
    url: str
    passwords: dict[str, str]
    clients: ExitStack = field(default_factory=ExitStack)

    def sign_in(self, user: str) -> Client:
        client = self.clients.enter_context(closing(Client(self.url)))
        client.sign_in(user, self.passwords[user])
        return client


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "DISPLAY": ""}
    arguments = [
        sys.executable,
        "-m",
        "sluicegate",
        "demo",
        "--port",
        "0",
        "--seconds",
        "400",
        "--no-browser",
    ]
    errors = (tmp_path / "errors").open("w+")
    with (
        errors,
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process,
    ):
        try:
            started = Demo(process, *_read_introduction(process))
            with started.clients:
                yield started
        finally:
            process.kill()


def _read_introduction(process: subprocess.Popen[str]) -> tuple[str, dict[str, str]]:
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith("Ctrl-C"):
        line = process.stdout.readline()
        assert line, "it ended before it served"
        lines.append(line)
    found = re.search(r"serving on (http://127\.0\.0\.1:\d+)", lines[0])
    assert found
    rows = [line.split() for line in lines[3:7]]
    return found[1], {row[0]: row[1] for row in rows}


def read_until(handle: Handle, is_enough: Callable[[list[Row]], bool]) -> list[Row]:
    rows: list[Row] = []
    with closing(handle.rows()) as coming:
        for row in coming:
            rows.append(dict(row))
            if is_enough(rows):
                return rows
    raise AssertionError(f"after {len(rows)} rows nothing more came")


def sids(rows: list[Row]) -> set[int]:
    return {row["SID"] for row in rows}


def test_three_accounts_see_other_ships_until_a_grant_is_gone(demo: Demo, tmp_path: Path) -> None:
    assert set(demo.passwords) == set(ACCOUNTS)
    handles = {user: demo.sign_in(user).query(queries["Ships"]) for user, queries in READY.items()}
    assert {queries["Ships"] for queries in READY.values()} == {SHIPS}

    harbour = read_until(handles["harbour"], lambda rows: len(sids(rows)) > 40)
    assert all(103.6 <= row["Long"] <= 104.06 and 1.16 <= row["Lat"] <= 1.33 for row in harbour)
    assert all(row["Name"] for row in harbour)
    acme = read_until(handles["acme"], lambda rows: len(sids(rows)) == 16)
    assert {VEGA, LYRA} < sids(acme)
    vega = read_until(handles["vega"], lambda rows: len(sids(rows)) > 60 and VEGA in sids(rows))
    own = next((row["Long"], row["Lat"]) for row in vega if row["SID"] == VEGA)
    assert all(measure(own, (row["Long"], row["Lat"])) < 17 for row in vega)
    assert not any("Name" in row for row in vega)
    assert sids(harbour) - sids(acme)
    assert sids(acme) - sids(harbour) - sids(vega)

    ada = demo.sign_in("ada")
    ada.change("SET FACT start('grounding') = TIMESTAMP '2026-01-01 00:00:00';", "a tanker is aground")
    seen = read_until(handles["vega"], lambda rows: rows[-1]["SID"] == MIRA)
    assert seen[-1]["Name"] == "MIRA"
    ada.change("DROP GRANT own_fleet;", "the contract is over")
    with pytest.raises(WithdrawnError):
        read_until(handles["acme"], lambda _: False)

    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(timeout=60) == 0
    assert (tmp_path / "errors").read_text().splitlines() == ["starting: Spark needs some seconds", "stopped"]
    assert not list(tmp_path.glob("sluicegate-demo-*"))

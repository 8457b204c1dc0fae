"""`sluicegate demo` as a process: rows within a while, a revocation that stops them, a clean end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]
COMMAND = [sys.executable, "-m", "sluicegate"]
QUERY = "SELECT ts, SID, Pos FROM Position"


@dataclass
class Demo:
    process: subprocess.Popen[str]
    url: str
    passwords: dict[str, str]
    environment: dict[str, str]

    def run(self, *argv: str, given: str = "") -> str:
        done = subprocess.run(
            [*COMMAND, *argv], input=given, env=self.environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def login(self, user: str) -> None:
        self.run("login", self.url, "--user", user, "--password-stdin", given=self.passwords[user] + "\n")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "TMPDIR": str(tmp_path)}
    arguments = [*COMMAND, "demo", "--port", "0", "--seconds", "400"]
    errors = (tmp_path / "errors").open("w+")
    with (
        errors,
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process,
    ):
        try:
            yield Demo(process, *_read_introduction(process), environment)
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
    rows = [line.split() for line in lines[2:6]]
    return found[1], {row[0]: row[1] for row in rows if row[0] in {"ada", "paul", "nina"}}


def test_rows_come_and_a_revocation_stops_them(demo: Demo, tmp_path: Path) -> None:
    demo.login("paul")
    demo.login("ada")
    tail = subprocess.Popen(
        [*COMMAND, "tail", QUERY, "--as", "paul", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=demo.environment,
    )
    with tail:
        assert tail.stdout is not None
        rows = [json.loads(tail.stdout.readline()) for _ in range(12)]
        assert {row["SID"] for row in rows} == {"s1", "s4", "s7", "s10"}  # platoon X
        told = demo.run("revoke", "own_platoon", "--as", "ada", "--reason", "over")
        assert told == "version 2\nqueries withdrawn: 1\n"
        _, errors = tail.communicate(timeout=30)
        assert tail.returncode == 1
        assert "error[withdrawn]" in errors

    began = time.monotonic()
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(timeout=60) == 0
    assert time.monotonic() - began < 60
    assert (tmp_path / "errors").read_text().splitlines() == ["starting: Spark needs some seconds", "stopped"]
    assert not list(tmp_path.glob("sluicegate-demo-*"))

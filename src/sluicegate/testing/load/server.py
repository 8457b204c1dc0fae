"""A gateway in a process of its own: `sluicegate serve`, as people start it, and what memory it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sluicegate.cli.serve import FIRST_PASSWORD

ADMINISTRATOR = "root"
SERIOUS, LIGHT = ("sluicegate",), ("sluicegate.testing.load.light",)
"""How it is started: as people do, and for less than a minute."""
_PATIENCE = 120.0
_SETTINGS: Mapping[str, int | float] = {
    # readers of this test all come from one address
    "client_rate": 100_000.0,
    "client_burst": 100_000.0,
    "caller_rate": 100_000.0,
    "caller_burst": 100_000.0,
    "shuffle_partitions": 1,
}


class Server:
    """Serves until `stop` or `kill`; over a folder of before it goes on where that was."""

    def __init__(self, folder: Path, catalog: str | None = None, command: Sequence[str] = SERIOUS) -> None:
        if catalog is not None:
            (folder / "catalog").mkdir()
            (folder / "catalog" / "all.sql").write_text(catalog, encoding="utf-8")
        lines = [f'administrators = ["{ADMINISTRATOR}"]', 'store = "store.db"', 'state = "state"', "port = 0"]
        lines.append('gateway = "one"')
        lines += [f"{name} = {value}" for name, value in _SETTINGS.items()]
        (folder / "gateway.toml").write_text("\n".join(lines), encoding="utf-8")
        self.folder = folder
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 — as long as the process
        self.process = subprocess.Popen(  # noqa: S603 — our own module
            [sys.executable, "-m", *command, "serve", "catalog", "--settings", "gateway.toml"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def wait_address(self) -> str:
        """Host and port, when it takes requests."""
        assert self.process.stdout is not None
        with self.process.stdout as out:
            found = re.search(r"http://(\S+)", out.readline())
        if found is None:
            raise ConnectionError(f"the gateway does not start: {self.read_errors()}")
        return found[1]

    def read_password(self) -> str:
        """The administrator's first one."""
        return (self.folder / "state" / f"{FIRST_PASSWORD}-0").read_text(encoding="utf-8").split()[1]

    def read_errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read()

    def stop(self) -> tuple[int, str]:
        """Its status, and what it said."""
        self.process.terminate()
        return self._end()

    def kill(self) -> tuple[int, str]:
        """As the machine would: nothing is told to it. Java ends by itself when it has lost Python."""
        self.process.kill()
        return self._end()

    def _end(self) -> tuple[int, str]:
        status = self.process.wait(_PATIENCE)
        said = self.read_errors()
        self._errors.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status, said


@dataclass(slots=True)
class Memory:
    """Resident memory in MiB over time, of Python and of Java."""

    pid: int
    began: float = field(default_factory=time.monotonic)
    seconds: list[float] = field(default_factory=list)
    python: list[float] = field(default_factory=list)
    java: list[float] = field(default_factory=list)

    def sample(self) -> None:
        self.seconds.append(time.monotonic() - self.began)
        self.python.append(_read_resident(self.pid))
        self.java.append(sum(_read_resident(each) for each in _find_children(self.pid)))

    def find_slope(self, values: list[float], share: float = 0.5) -> float:
        """MiB a minute over the last part of the samples, by least squares."""
        first = int(len(values) * (1 - share))
        at, found = self.seconds[first:], values[first:]
        if len(at) < 3:
            return 0.0
        middle, mean = sum(at) / len(at), sum(found) / len(found)
        spread = sum((each - middle) ** 2 for each in at)
        return 60 * sum((t - middle) * (v - mean) for t, v in zip(at, found, strict=True)) / spread


def _read_resident(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return int(text.split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)


def _find_children(pid: int) -> list[int]:
    """All below it."""
    try:
        text = " ".join(
            each.read_text(encoding="ascii") for each in Path(f"/proc/{pid}/task").glob("*/children")
        )
    except OSError:
        return []
    found = [int(each) for each in text.split()]
    return found + [below for each in found for below in _find_children(each)]

"""The command as a process of its own: locale, pipes, signals, what importing costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

SOLDIERS = str(Path(__file__).parents[2] / "examples" / "soldiers")
COMMAND = [sys.executable, "-m", "sluicegate"]
EXPLAIN = [*COMMAND, "explain", SOLDIERS, "--as", "paul"]


def test_output_is_utf_8_whatever_the_locale() -> None:
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*EXPLAIN, "SELECT SID FROM Health WHERE SID = 'é'"], env=env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "└─ σ Health.SID = 'é'" in done.stdout.decode("utf-8")


def test_a_reader_that_leaves_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [*COMMAND, "demo", "--explain"], stdout=write_end, stderr=subprocess.PIPE, check=False
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_answer_that_cannot_be_written_is_a_fault() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "demo", "--explain"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 3
    assert done.stderr.decode().startswith("sluicegate: cannot go on: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe to wait at")
def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.query"
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            [*EXPLAIN, str(pipe)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # tests that run in the background would hand on that interrupts are ignored
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        ) as process,
        pipe.open("wb"),  # opens when the command has begun to read
    ):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_importing_the_package_is_cheap() -> None:
    code = (
        "import sys, sluicegate; sluicegate.open; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'z3', 'duckdb', 'sqlglot', 'yaml', 'hypothesis'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

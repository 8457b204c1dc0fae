"""The same catalog and commands on a cluster of a master and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.cli.main import main
from sluicegate.testing.cluster import Cluster
from sluicegate.testing.soldiers import QUERY, write_catalog, write_positions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_PATIENCE = 240
_ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"), workers=2, apart=_ROOT)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def _embedded(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of this process, for commands that run in it."""
    monkeypatch.setattr("sluicegate.runtime.session.make_session", lambda **_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)


def start(cluster: Cluster, *args: str) -> subprocess.Popen[str]:
    """A command of ours in a process of its own, with the cluster's secret by name."""
    own = {"SLUICEGATE_SECRETS": str(cluster.secrets)}
    return subprocess.Popen(
        [sys.executable, "-m", *args],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SLUICEGATE_EXECUTOR_MEMORY": "512m", **own},
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What it writes from now on, until it ends."""
    timer = threading.Timer(_PATIENCE, process.kill)
    timer.start()
    assert process.stdout is not None
    with process:
        found = process.stdout.read()
    timer.cancel()
    assert process.returncode == 0
    return found


def list_commands() -> str:
    """What everybody on this machine can read of the processes."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


def find_text(folder: Path, text: str) -> set[str]:
    """The names of the files below the folder that have the text in them."""
    return {each.name for each in folder.rglob("*") if each.is_file() and text.encode() in each.read_bytes()}


@pytest.mark.usefixtures("_embedded")
def test_a_worker_that_is_killed_changes_no_row(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is lost, doubled or left out, and the secret is nobody's to read."""
    rows = write_positions(tmp_path / "rows.jsonl", 200)
    catalog = write_catalog(tmp_path / "catalog", rows, rows_per_batch=40)
    run = ("run", str(catalog), "--as", "cole", QUERY, "--json")
    assert main([*run]) == 0
    expected = capsys.readouterr().out
    state = tmp_path / "state"
    running = start(
        cluster, "sluicegate.testing.load.light", *run, "--master", cluster.master, "--state", str(state)
    )
    assert running.stdout is not None
    first = running.stdout.readline()
    commands = list_commands()
    cluster.kill_worker(2)
    out = first + finish(running)
    cluster.start_worker(2)
    assert sorted(out.splitlines()) == sorted(expected.splitlines())
    assert len(out.splitlines()) == 20
    assert "--driver-url" in commands
    assert cluster.secret not in commands + out
    assert find_text(cluster.folder, cluster.secret) == {"cluster", "cluster.conf"}
    assert find_text(state, cluster.secret) == set()
    assert state.stat().st_mode & 0o777 == 0o700
    assert not [each for each in state.rglob("*.parquet") if each.stat().st_mode & 0o077]


def test_a_streaming_frame_follows_its_policy(cluster: Cluster, tmp_path: Path) -> None:
    """The values reach executors with the tasks; and a folder that executors do not have is refused."""
    unseen = tmp_path / "unseen"
    unseen.mkdir()
    if _ROOT:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", unseen], check=True)
    try:
        child = "sluicegate.testing.cluster_child"
        folder = tmp_path / "shared"
        folder.mkdir()
        args = [cluster.master, str(folder), *([str(unseen)] if _ROOT else [])]
        found = json.loads(finish(start(cluster, child, *args)))
    finally:
        if _ROOT:
            subprocess.run(["umount", "--lazy", unseen], check=True)
    assert found["version 0"] == [0.0, 2.0, 4.0, 6.0]
    assert found["version 1"] == [0.0, 2.0, 4.0, 6.0, 9.0, 11.0, 13.0, 15.0]
    assert (found["ended"], found["rows"]) == ("withdrawn", 8)
    assert found.get("unseen", "cluster-path") == "cluster-path"
    # executors that came later, whose tasks write into a folder of their own without an error
    assert (found["batch"], found.get("batch unseen", "cluster-path")) == (8, "cluster-path")

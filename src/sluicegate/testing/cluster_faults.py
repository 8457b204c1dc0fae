"""A query on a cluster while parts of it fail: what comes out is compared with a run within one process.

    python -m sluicegate.testing.cluster_faults FOLDER [FAULT …]

Faults: a `worker`, the executors (`executor`) or the `master` are killed, the `driver` is killed and started again, `hosts` are network namespaces with
nothing wrong, `cut` takes the network from one of them. The last two need root.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sluicegate.testing.cluster import Cluster, list_children
from sluicegate.testing.hosts import Host, make_hosts, why_not
from sluicegate.testing.soldiers import QUERY, write_catalog, write_positions

_ROWS, _ROWS_PER_BATCH, _READ = 600, 30, 4


class World:
    """A catalog over a file, and runs of one query on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        rows = write_positions(folder / "rows.jsonl", _ROWS)
        self._catalog = write_catalog(folder / "catalog", rows, _ROWS_PER_BATCH)
        self._runs = 0

    def run(self, cluster: Cluster | None = None, host: Host | None = None, state: Path | None = None) -> Run:
        """Within one process, or on a cluster with a state of its own."""
        command = [
            sys.executable,
            "-m",
            "sluicegate",
            "run",
            str(self._catalog),
            "--as",
            "cole",
            QUERY,
            "--json",
        ]
        own = {"SLUICEGATE_EXECUTOR_MEMORY": "512m"}
        if cluster is not None:
            command += ["--master", cluster.master, "--state", str(state or self.make_state())]
            own["SLUICEGATE_SECRETS"] = str(cluster.secrets)
        if host is not None:
            own["SLUICEGATE_DRIVER_HOST"] = host.address
        return Run((host or Host()).within(command), own)

    def make_state(self) -> Path:
        self._runs += 1
        return self.folder / f"state{self._runs}"


class Run:
    """A process whose rows are read line by line."""

    def __init__(self, command: Sequence[str], own: Mapping[str, str]) -> None:
        self.began = time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603 — our own words
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **own}
        )
        self.lines: list[str] = []

    def read(self, many: int) -> None:
        """So many rows more, or as many as there are."""
        assert self.process.stdout is not None
        for _ in range(many):
            self.lines.append(self.process.stdout.readline())

    def finish(self) -> list[str]:
        assert self.process.stdout is not None
        self.lines += self.process.stdout.readlines()
        self.process.wait()
        return [line for line in self.lines if line.endswith("\n")]

    def kill(self) -> list[str]:
        """Without a word, with all that it started."""
        for each in (self.process.pid, *list_children(self.process.pid)):
            try:
                os.kill(each, 9)
            except ProcessLookupError:
                continue
        return self.finish()


@contextmanager
def running(folder: Path, hosts: Sequence[Host] = ()) -> Iterator[Cluster]:
    cluster = Cluster(folder, hosts=hosts)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def run_worker(world: World) -> list[str]:
    with running(world.folder / "worker") as cluster:
        run = world.run(cluster)
        run.read(_READ)
        cluster.kill_worker(1)
        return run.finish()


def run_master(world: World) -> list[str]:
    with running(world.folder / "master") as cluster:
        run = world.run(cluster)
        run.read(_READ)
        cluster.kill_master()
        return run.finish()


def run_executor(world: World) -> list[str]:
    with running(world.folder / "executor") as cluster:
        run = world.run(cluster)
        run.read(_READ)
        cluster.kill_executors(1)
        cluster.kill_executors(2)
        return run.finish()


def run_driver(world: World) -> list[str]:
    """What it wrote and had not noted as written may come once more: that is taken out here."""
    with running(world.folder / "driver") as cluster:
        state = world.make_state()
        run = world.run(cluster, state=state)
        run.read(_READ)
        first = run.kill()
        later = world.run(cluster, state=state).finish()
        repeated = next(at for at in range(len(first), -1, -1) if first[len(first) - at :] == later[:at])
        return first + later[repeated:]


def run_hosts(world: World) -> list[str]:
    with make_hosts(4) as hosts, running(world.folder / "hosts", hosts[1:]) as cluster:
        return world.run(cluster, hosts[0]).finish()


def run_cut(world: World) -> list[str]:
    with make_hosts(4) as hosts, running(world.folder / "cut", hosts[1:]) as cluster:
        run = world.run(cluster, hosts[0])
        run.read(_READ)
        hosts[3].cut()
        return run.finish()


FAULTS: Mapping[str, Callable[[World], list[str]]] = {
    "worker": run_worker,
    "executor": run_executor,
    "master": run_master,
    "driver": run_driver,
    "hosts": run_hosts,
    "cut": run_cut,
}


def main(args: list[str]) -> int:
    world = World(Path(args[0]).absolute())
    expected = Counter(world.run().finish())
    problems = 0
    for name in args[1:] or FAULTS:
        lacking = why_not() if name in ("hosts", "cut") else None
        if lacking is not None:
            print(json.dumps({"fault": name, "skipped": lacking}), flush=True)
            continue
        began = time.monotonic()
        found = Counter(FAULTS[name](world))
        lost, doubled = (expected - found).total(), (found - expected).total()
        problems += lost + doubled
        told = {"fault": name, "rows": found.total(), "lost": lost, "doubled or other": doubled}
        print(json.dumps({**told, "seconds": round(time.monotonic() - began, 1)}), flush=True)
    return 1 if problems or not expected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The same queries from topic to topic on a cluster of one worker and of two, each of one core and a process of its own.

    python -m sluicegate.bench.kafka_scaling MASTER SERVERS TOPIC PER_BATCH ROUNDS FOLDER

is what one cluster runs: it prints the seconds of each way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from uuid import uuid4

from sluicegate.bench.kafka_rivals import AGGREGATE, SELECT, Kind, Topics, list_works
from sluicegate.bench.rivals import DifferentRowsError
from sluicegate.bench.sample import Row

WORKERS = (1, 2)
WAYS = ("by_hand", "frame", "engine")
_PATIENCE = 900
Times = dict[str, list[float]]


def measure_scaling(servers: str, topic: str, per_batch: int, rounds: int, folder: Path) -> list[Row]:
    """Time with one worker over time with two; each cluster is started, measured and stopped before the next."""
    found = [_run_cluster(workers, servers, topic, per_batch, rounds, folder) for workers in WORKERS]
    return [_compare(name, [each[name] for each in found]) for name in found[0]]


def _run_cluster(workers: int, servers: str, topic: str, per_batch: int, rounds: int, folder: Path) -> Times:
    from sluicegate.testing.cluster import Cluster

    cluster = Cluster(folder / f"cluster{workers}", workers)
    try:
        cluster.start()
        scratch = folder / f"scratch{workers}"
        scratch.mkdir(mode=0o700)
        command = [sys.executable, "-m", "sluicegate.bench.kafka_scaling", cluster.master, servers, topic]
        done = subprocess.run(  # noqa: S603 — our own module
            [*command, str(per_batch), str(rounds), str(scratch)],
            env={**os.environ, "SLUICEGATE_SECRETS": str(cluster.secrets)},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
    finally:
        cluster.stop()
    if done.returncode:
        raise DifferentRowsError(f"on {workers} workers: {done.stderr.strip()[-500:]}")
    found: Times = json.loads(done.stdout.splitlines()[-1])
    return found


def _compare(name: str, seconds: list[list[float]]) -> Row:
    kind, way = name.split("/")
    one, two = (median(each) for each in seconds)
    return {
        "query": kind,
        "way": way,
        "one_worker_s": round(one, 3),
        "two_workers_s": round(two, 3),
        "times_as_fast": round(one / two, 3),
    }


def run_here(
    master: str, servers: str, topic: str, per_batch: int, rounds: int, scratch: Path, kinds: tuple[Kind, ...]
) -> Times:
    """The seconds of each way, taking turns, after a round that does not count."""
    from sluicegate.runtime.session import make_session

    spark = make_session(master=master, shuffle_partitions=2, log_level="OFF")
    try:
        topics = Topics(spark, servers, topic, per_batch, scratch)
        times: Times = {}
        for kind in kinds:
            works = list_works(topics, kind)
            for turn in range(-1, rounds):
                for way in WAYS:
                    taken = works[way](f"out-{uuid4().hex}")
                    if turn >= 0:
                        times.setdefault(f"{kind.name}/{way}", []).append(taken)
        return times
    finally:
        spark.stop()


def main(args: list[str]) -> int:
    """Of one cluster."""
    master, servers, topic, per_batch, rounds, scratch = args
    found = run_here(master, servers, topic, int(per_batch), int(rounds), Path(scratch), (SELECT, AGGREGATE))
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

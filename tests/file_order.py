"""Files that take long, in the order in which workers should begin them.

Tests on Spark go to workers by the file. A long file that is begun last leaves the other worker with nothing to do, and so do
files of one long test where workers are handed several files ahead; short files, which are not named here, fill up the end.
"""

from __future__ import annotations

LONG = (
    "spark/test_corpus.py",
    "spark/test_stream_frames.py",
    "cluster/test_port_topics.py",
    "spark/test_networks.py",
    "spark/test_gateway_kills.py",
    "cluster/test_cluster.py",
    "spark/test_recovery.py",
    "spark/test_gateway_load.py",
    "spark/test_changes_under_load.py",
    "service/test_demo.py",
    "spark/test_hostile.py",
    "spark/test_bench_spark.py",
    "spark/test_placement.py",
    "spark/test_bypass_runtime.py",
    "spark/test_kafka_in.py",
    "spark/test_bench_service.py",
    "spark/test_shield_fuzz.py",
    "service/test_serve.py",
    "spark/test_shield_live.py",
    "spark/test_engine.py",
    "spark/test_feed.py",
)
_PLACES = {name: place for place, name in enumerate(LONG)}


def find_place(folder: str, name: str) -> int:
    """Where a file stands; all that are not named come behind those that are."""
    return _PLACES.get(f"{folder}/{name}", len(LONG))

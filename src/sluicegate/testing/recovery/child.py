"""`python -m sluicegate.testing.recovery.child`: an engine over the input that a catalog names, until it ends or is killed.

It says `ready` when Spark runs, and waits for a line of JSON that tells the folder, the number of the run and, maybe, where to
die. It ends with 0 when the readers have all that there is.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.language.load import read_catalog
from sluicegate.runtime import session
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.ingest import AVAILABLE_NOW
from sluicegate.testing.light_java import LIGHT_JAVA
from sluicegate.testing.recovery.points import hasten_upkeep, set_point
from sluicegate.testing.recovery.reader import Reader
from sluicegate.testing.recovery.world import QUERIES

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session as SparkSession

SETTINGS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"}
CATALOG, STATE, TAKEN = "catalog.sql", "state", "taken"
_KEEP = 5_000_000
_MOST_FAILURES = 3


def main() -> int:
    # what the engine keeps from users is what whoever runs this needs to see
    logging.basicConfig(format="%(message)s")
    logging.getLogger("sluicegate").setLevel(logging.DEBUG)
    spark = _make_light_session()
    _say("ready")
    line = sys.stdin.readline()
    if not line:
        return 0
    told = json.loads(line)
    folder = Path(told["folder"])
    hasten_upkeep()
    if told["point"]:
        set_point(*told["point"])
    catalog = read_catalog((folder / CATALOG).read_text(encoding="utf-8"))
    engine = Engine(spark, catalog, folder / STATE, trigger=AVAILABLE_NOW, keep=_KEEP)
    known = engine.gate.known()
    for handle, (user, query) in QUERIES.items():
        if known.get(handle) != "withdrawn" and handle not in {each.handle for each in engine.running}:
            engine.register(user, f"{query} START AT EARLIEST", handle)
    engine.start()
    status = _read_all(engine, folder / TAKEN, told["run"])
    if status == 0:
        engine.stop()
    return status


def _make_light_session() -> SparkSession:
    """A JVM that lives for seconds: it is not worth compiling much for."""
    name = "spark.driver.extraJavaOptions"
    session._OWN = {**session._OWN, name: f"{session._OWN[name]} {LIGHT_JAVA}"}
    return session.make_session(shuffle_partitions=1, log_level="OFF", extra=SETTINGS)


def _read_all(engine: Engine, folder: Path, run: int) -> int:
    """Until everything that came in was read; 3 where the engine says again and again that it failed."""
    failures = 0
    folder.mkdir(exist_ok=True)
    readers = {handle: Reader(folder / f"{handle}.jsonl", run) for handle in QUERIES}
    while True:
        # asked first: what was due then has been committed when a read after it finds nothing
        ended = engine.ended
        if engine.failure or engine.feeds.failures:
            failures += 1
            sys.stderr.write(f"{engine.failure} {engine.feeds.failures}\n")
            if failures > _MOST_FAILURES:
                return 3
            engine.feeds.start(engine.feeds.failures)
        found = [reader.step(engine.gate, handle) for handle, reader in readers.items()]
        if not any(found):
            if ended:
                return 0
            time.sleep(0.02)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

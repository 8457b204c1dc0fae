"""`python -m sluicegate.testing.class_archive`: keep what Java knows of Spark's classes after it has run an engine.

Sessions that start later use it (`runtime.class_archive`): their Java neither reads nor checks these classes again.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import DiagnosticError
from sluicegate.runtime import session
from sluicegate.runtime.class_archive import ARCHIVE, end_java, keep_classes, share_classes
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.ingest import AVAILABLE_NOW
from sluicegate.testing.light_java import LIGHT_JAVA
from sluicegate.testing.recovery.child import SETTINGS
from sluicegate.testing.recovery.world import QUERIES, make_world

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

_PATIENCE = 120.0


def main() -> int:
    began = time.monotonic()
    made = ARCHIVE.with_suffix(".new")
    name = "spark.driver.extraJavaOptions"
    try:
        made.unlink(missing_ok=True)
        # one that is there already would be all that this Java has read
        ARCHIVE.unlink(missing_ok=True)
    except OSError as error:
        sys.stderr.write(f"no archive of Spark's classes: {error}\n")
        return 1
    session._OWN = {**session._OWN, name: f"{session._OWN[name]} {LIGHT_JAVA} {keep_classes(made)}"}
    try:
        spark = session.make_session(shuffle_partitions=1, log_level="OFF", extra=SETTINGS)
    except DiagnosticError as error:
        sys.stderr.write(f"no archive of Spark's classes: {error}\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        _run_engine(spark, Path(folder))
    end_java(spark)
    if not made.exists():
        sys.stderr.write("no archive of Spark's classes: Java made none\n")
        return 1
    made.replace(ARCHIVE)
    if not share_classes():
        sys.stderr.write(
            f"others can write `{ARCHIVE.parent}`, or its path has blanks or colons: the archive is not used\n"
        )
        return 1
    sys.stdout.write(f"an archive of Spark's classes, in {time.monotonic() - began:.0f} s\n")
    return 0


def _run_engine(spark: Session, folder: Path) -> None:
    """Feeds, shield, windows, joins, gate and logs: what a short-lived Java is started for."""
    world = make_world(folder / "input", 1, 3)
    engine = Engine(spark, world.catalog(), folder / "state", trigger=AVAILABLE_NOW)
    for handle, (user, query) in QUERIES.items():
        engine.register(user, f"{query} START AT EARLIEST", handle)
    engine.start()
    ends = time.monotonic() + _PATIENCE
    while not engine.ended and time.monotonic() < ends:
        time.sleep(0.05)
    engine.stop()


if __name__ == "__main__":
    sys.exit(main())

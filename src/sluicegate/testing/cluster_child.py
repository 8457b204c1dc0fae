"""A process with a session on a cluster: a streaming frame whose policy changes, and folders that executors have or lack.

    python -m sluicegate.testing.cluster_child MASTER FOLDER [UNSEEN]

Prints what the frame gave under each version and how it ended, and the codes by which UNSEEN, and a batch that is written
there, are refused.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sluicegate
from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import INT, TIMESTAMP
from sluicegate.policy.model import Stream
from sluicegate.runtime.cluster import Executors
from sluicegate.runtime.cluster_check import check_shared
from sluicegate.runtime.feed.misfits import PROBLEM, RAW
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.feed.write_batch import write_batch
from sluicegate.runtime.session import make_session
from sluicegate.testing.load.light import make_light
from sluicegate.testing.soldiers import write_catalog, write_positions

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

_FEW = 8
_STREAM = Stream("S", (("ts", TIMESTAMP), ("x", INT)), "ts")
_QUERY = "SELECT SID, Pos FROM Position START AT EARLIEST"


def follow_changes(spark: Session, folder: Path) -> dict[str, object]:
    """Rows under a version, under another, and the code with which it ends when nothing is left."""
    first, second, last = (
        sluicegate.open(write_catalog(folder / name, platoon=platoon, reader=reader))
        for name, platoon, reader in (("a", "X", "Doctor"), ("b", "Y", "Doctor"), ("c", "Y", "Captain"))
    )
    source = folder / "in"
    source.mkdir()
    columns = "ts timestamp, SID string, Platoon string, Pos double"
    feed = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).json(str(source))
    followed = first.authorize("paul", _QUERY).follow(spark, {"Position": feed})
    query = followed.frame.writeStream.format("memory").queryName("seen").start()
    found: dict[str, object] = {}
    for at, gate in enumerate((first, second)):
        if at:
            followed.apply(gate)
        write_positions(source / f"{at}.json", _FEW, at * _FEW)
        query.processAllAvailable()
        found[f"version {at}"] = sorted(row["Pos"] for row in spark.table("seen").collect())
    followed.apply(last)
    write_positions(source / "2.json", _FEW, 2 * _FEW)
    found["ended"] = _find_end(query)
    found["rows"] = spark.table("seen").count()
    followed.close()
    return found


def _find_end(query: Any) -> str:
    try:
        query.processAllAvailable()
    except Exception as error:  # noqa: BLE001 — Spark's own, whose text has our code
        return "withdrawn" if "withdrawn: nothing" in str(error) else type(error).__name__
    return "none"


def try_batch(spark: Session, folder: Path) -> object:
    """The rows of a batch of a log in the folder, or the code by which it is refused."""
    log = SourceLog(folder / "log", _STREAM)
    frame = spark.range(_FEW).selectExpr(
        "timestamp_micros(id) AS ts",
        "CAST(id AS INT) AS x",
        f"CAST(NULL AS STRING) AS {PROBLEM}",
        f"CAST(NULL AS STRING) AS {RAW}",
    )
    try:
        return write_batch(log, frame, 0).rows
    except DiagnosticError as error:
        return error.diagnostics[0].code


def main(args: list[str]) -> int:
    make_light()
    folder = Path(args[1])
    spark = make_session(args[0], 2, "OFF", executors=Executors(memory="512m"))
    try:
        check_shared(spark, folder)
        found = follow_changes(spark, folder)
        found["batch"] = try_batch(spark, folder)
        for unseen in args[2:]:
            try:
                check_shared(spark, Path(unseen))
                found["unseen"] = "taken"
            except DiagnosticError as error:
                found["unseen"] = error.diagnostics[0].code
            found["batch unseen"] = try_batch(spark, Path(unseen))
        print(json.dumps(found), flush=True)
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""An archive of Spark's classes, as Java has them once it has read and checked them: with it Spark starts a third faster.

`python -m sluicegate.testing.class_archive` makes one. It holds for one Java and one list of jars; with others Java leaves
it aside.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
"""Beside the packages: whoever can write there decides what runs."""
_QUIET = "-Xlog:cds*=off"
_PATIENCE = 120.0


def share_classes(archive: Path = ARCHIVE) -> str:
    """Java's options to use the archive, or none: it must be there, and it and its folder nobody's but ours or root's to write."""
    try:
        found = [archive.lstat(), archive.parent.stat()]
    except OSError:
        return ""
    if any(each.st_uid not in (0, os.geteuid()) or each.st_mode & 0o022 for each in found):
        return ""
    # a link could lead elsewhere by the time that Java follows it, and a colon parts two archives
    if not stat.S_ISREG(found[0].st_mode) or re.search(r"[\s:]", str(archive)):
        return ""
    return f"-XX:SharedArchiveFile={archive} {_QUIET}"


def keep_classes(archive: Path) -> str:
    """Java's options to make one at its end."""
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}"


def end_java(spark: SparkSession) -> None:
    """Stop the session and wait for its Java, which makes the archive when it ends; no other session can be made after it."""
    from pyspark import SparkContext

    spark.stop()
    gateway = SparkContext._gateway
    if gateway is None:
        return
    java = gateway.proc
    gateway.shutdown()
    java.stdin.close()
    java.wait(_PATIENCE)

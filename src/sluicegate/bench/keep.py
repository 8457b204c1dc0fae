"""Results of measurements on Spark: where they were made, and where they are kept."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.bench.sample import Row

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session


def describe_spark(spark: Session) -> Row:
    libraries = {name: version(name) for name in ("sluicegate", "pyspark", "pyarrow")}
    context: Any = spark.sparkContext
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **libraries,
        "java": str(context._jvm.java.lang.System.getProperty("java.version")),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load_at_start": None if load is None else round(load, 1),
        "master": context.master,
    }


def keep_result(result: Mapping[str, object], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{result['bench']}.json").write_text(dumps(result, indent=2) + "\n", encoding="utf-8")

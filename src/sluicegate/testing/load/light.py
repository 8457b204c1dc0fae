"""`python -m sluicegate.testing.load.light serve …`: as `sluicegate`, with a Java that lives for a minute.

It is not worth compiling much for, neither whole stages of queries nor Java's own code.
"""

from __future__ import annotations

import sys

from sluicegate.cli.main import main
from sluicegate.runtime import cluster, session
from sluicegate.testing.light_java import LIGHT_JAVA

_JAVA = "spark.driver.extraJavaOptions"


def make_light() -> None:
    """Change what sessions of this process are made with."""
    session._OWN = {
        **session._OWN,
        _JAVA: f"{session._OWN[_JAVA]} {LIGHT_JAVA}",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    light = f"{cluster.JAVA_OPTIONS} {LIGHT_JAVA}"
    cluster._CLUSTER = {**cluster._CLUSTER, "spark.executor.extraJavaOptions": light}


if __name__ == "__main__":
    make_light()
    sys.exit(main())

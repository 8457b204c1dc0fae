"""One Spark session for all tests of a process that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from sluicegate.testing.light_java import LIGHT_JAVA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


EXCLUDED = "spark.sql.optimizer.excludedRules"
FOLDING = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
_JAVA = "spark.driver.extraJavaOptions"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from sluicegate.runtime import session as sessions

    # plans leave much behind that nobody needs: room for the young saves collections
    sessions._OWN = {**sessions._OWN, _JAVA: f"{sessions._OWN[_JAVA]} {LIGHT_JAVA} -Xmn256m"}
    session = sessions.make_session(
        shuffle_partitions=1,
        extra={
            # tiny data: compiling and adapting whole plans costs more than it saves
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.adaptive.enabled": "false",
            # tiny data must not be computed while the plan is made either: what is tested is what runs on much data
            EXCLUDED: FOLDING,
        },
    )
    yield session
    session.stop()


@pytest.fixture
def folding(spark: SparkSession) -> Iterator[None]:
    """Spark computes local rows while it plans, as it does for users: streaming frames need it."""
    spark.conf.set(EXCLUDED, "")
    yield
    spark.conf.set(EXCLUDED, FOLDING)

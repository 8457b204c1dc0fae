"""Sessions and `to_spark`: settings from outside do not count, and what cannot be served is refused (bypass line 1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sluicegate
from sluicegate.api import Gate
from sluicegate.errors import DiagnosticError
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.language.load import read_catalog
from spark.spark_run import frame_of, run_spark
from unit.graph_cases import S, plan_of, streams_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = [
    {"ts": 0, "SID": "s1", "Platoon": "X", "Pos": 1.0},
    {"ts": 1, "SID": "s2", "Platoon": "Y", "Pos": 2.0},
]


def test_a_frame_of_what_the_user_may_see(spark: SparkSession) -> None:
    gate = sluicegate.open(EXAMPLES / "soldiers")
    frame = frame_of(spark, gate.catalog.streams["Position"], ROWS)
    shown = gate.authorize("paul", "SELECT SID, Pos FROM Position").to_spark(spark, {"Position": frame})
    assert [tuple(row) for row in shown.collect()] == [("s1", 1.0)]
    assert spark.catalog.listTables() == []
    without = gate.authorize("paul", "SELECT SID FROM Position").to_spark(
        spark, {"Position": frame.drop("_offset")}
    )
    assert without.count() == 1


def test_frames_that_do_not_fit_are_refused(spark: SparkSession) -> None:
    allowed = sluicegate.open(EXAMPLES / "soldiers").authorize("paul", "SELECT SID FROM Position")
    with pytest.raises(DiagnosticError, match="reads `Position`, and no frame"):
        allowed.to_spark(spark, {})
    with pytest.raises(
        DiagnosticError, match=r"`ts` of the frame for `Position` is `bigint`; it must be `timestamp`"
    ):
        allowed.to_spark(spark, {"Position": spark.sql("SELECT 1L AS ts")})
    stream = spark.readStream.format("rate").load()
    with pytest.raises(DiagnosticError, match="`ts` of the frame for `Position` is missing"):
        allowed.to_spark(spark, {"Position": stream})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.variable.substitute", "true"),
        ("spark.sql.legacy.exponentLiteralAsDecimal.enabled", "true"),
    ],
)
def test_a_session_with_other_settings_is_refused(spark: SparkSession, name: str, value: str) -> None:
    other = spark.newSession()
    other.conf.set(name, value)
    allowed = sluicegate.open(EXAMPLES / "soldiers").authorize("paul", "SELECT SID FROM Position")
    with pytest.raises(DiagnosticError, match=f"the setting `{name}` is `{value}`"):
        allowed.to_spark(other, {})


def test_a_second_session_and_changed_settings_are_refused(spark: SparkSession) -> None:
    from sluicegate.runtime.session import _settings, make_session

    with pytest.raises(DiagnosticError, match="already runs in this process"):
        make_session()
    for name in ("spark.sql.ansi.enabled", "spark.sql.extensions"):
        with pytest.raises(DiagnosticError, match=f"`{name}` cannot be changed"):
            _settings(Path(), 1, {name: "x"})


def test_what_carries_its_own_policies_is_refused(spark: SparkSession) -> None:
    text = """CREATE STREAM H (ts TIMESTAMP, id INT) TIMESTAMP BY ts PUNCTUATED BY id;
    CREATE ROLE r; CREATE USER u ROLES (r); CREATE GRANT g READ (ts, id) ON H TO r;"""
    allowed = Gate(read_catalog(text)).authorize("u", "SELECT id FROM H")
    with pytest.raises(DiagnosticError, match="carry policies of their own"):
        allowed.to_spark(spark, {})


def test_the_first_and_the_last_moment(spark: SparkSession) -> None:
    plan = plan_of(S)
    rows = [
        {"ts": moment, "id": at, "g": "a", "v": 1.0}
        for at, moment in enumerate((TIMESTAMP_MIN, TIMESTAMP_MAX))
    ]
    assert run_spark(spark, plan, {"S": rows}, streams_of(plan.root)) == rows

"""Sessions and `to_spark`: settings from outside do not count, and what cannot be served is refused (bypass line 1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sluicegate
from sluicegate.api import Authorized, Gate
from sluicegate.errors import DiagnosticError
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.language.load import read_catalog
from spark.spark_run import frame_of, run_spark
from unit.graph_cases import S, plan_of, streams_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = [
    {"ts": 0, "SID": "s1", "Platoon": "X", "Pos": 1.0},
    {"ts": 1, "SID": "s2", "Platoon": "Y", "Pos": 2.0},
]


def test_a_frame_of_what_the_user_may_see(spark: SparkSession) -> None:
    gate = sluicegate.open(EXAMPLES / "soldiers")
    frame = frame_of(spark, gate.catalog.streams["Position"], ROWS)
    before = spark.catalog.listTables()
    shown = gate.authorize("paul", "SELECT SID, Pos FROM Position").to_spark(spark, {"Position": frame})
    assert [tuple(row) for row in shown.collect()] == [("s1", 1.0)]
    assert spark.catalog.listTables() == before
    without = gate.authorize("paul", "SELECT SID FROM Position").to_spark(
        spark, {"Position": frame.drop("_offset")}
    )
    assert without.count() == 1


@pytest.mark.usefixtures("folding")
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


def test_a_text_of_a_fixed_length_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would fill up the texts of grants with blanks beside it, and show what is hidden."""
    gate = sluicegate.open(EXAMPLES / "soldiers")
    frame = frame_of(spark, gate.catalog.streams["Position"], ROWS)
    frame.write.parquet(str(tmp_path / "rows"))
    columns = ", ".join(
        f"{each.name} {'CHAR(5)' if each.name == 'Platoon' else each.dataType.simpleString()}"
        for each in frame.schema.fields
    )
    spark.sql(f"CREATE TABLE padded ({columns}) USING parquet LOCATION '{tmp_path / 'rows'}'")
    try:
        with pytest.raises(DiagnosticError, match=r"`Platoon` of the frame for `Position` is a CHAR"):
            gate.authorize("paul", "SELECT SID FROM Position").to_spark(
                spark, {"Position": spark.table("padded")}
            )
        plain = spark.table("padded").selectExpr("* EXCEPT (Platoon)", "concat(Platoon, '') AS Platoon")
        shown = gate.authorize("paul", "SELECT SID FROM Position").to_spark(spark, {"Position": plain})
        # the table has `X` and four blanks, which is not the `X` of paul's platoon
        assert shown.count() == 0
    finally:
        spark.sql("DROP TABLE padded")


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


PUNCTUATED = """CREATE STREAM H (ts TIMESTAMP, id INT) TIMESTAMP BY ts PUNCTUATED BY id;
CREATE ROLE r; CREATE ROLE s; CREATE USER u ROLES (r); CREATE USER v ROLES (s);
CREATE GRANT g READ (ts, id) ON H TO r; CREATE GRANT h READ (ts, id) ON H TO s;"""


def _elements(spark: SparkSession) -> DataFrame:
    """A policy for `r` on the tuples with id 1, then tuples that name it; the last names none."""
    sp = '{"ddp": {"tuples": 1}, "srp": ["r"], "sign": "+", "ts": "2026-01-01T00:00:00", "sn": 1}'
    text = f"""SELECT timestamp(ts) AS ts, id, _sp, timestamp(_sp_ts) AS _sp_ts, CAST(_sp_count AS BIGINT) AS _sp_count
    FROM VALUES (NULL, NULL, '{sp}', NULL, NULL), ('2026-01-01T00:00:01', 1, NULL, '2026-01-01T00:00:00', 1),
    ('2026-01-01T00:00:02', 2, NULL, '2026-01-01T00:00:00', 1), ('2026-01-01T00:00:03', 1, NULL, NULL, NULL)
    AS t(ts, id, _sp, _sp_ts, _sp_count)"""
    return spark.sql(text).coalesce(1)


def test_a_batch_frame_with_policies_in_it(spark: SparkSession) -> None:
    gate = Gate(read_catalog(PUNCTUATED))
    found = {
        user: [row.id for row in _ask(gate, user).to_spark(spark, {"H": _elements(spark)}).collect()]
        for user in "uv"
    }
    assert found == {"u": [1], "v": []}
    without = _elements(spark).select("ts", "id").where("id IS NOT NULL")
    with pytest.raises(DiagnosticError, match="_sp"):
        _ask(gate, "u").to_spark(spark, {"H": without})


@pytest.mark.usefixtures("folding")
def test_what_carries_its_own_policies_is_no_streaming_frame_and_no_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    allowed = _ask(Gate(read_catalog(PUNCTUATED)), "u")
    _elements(spark).write.parquet(str(tmp_path / "h"))
    schema = _elements(spark).schema
    with pytest.raises(DiagnosticError, match="a streaming frame cannot have a punctuated stream"):
        allowed.to_spark(spark, {"H": spark.readStream.schema(schema).parquet(str(tmp_path / "h"))})
    for target in ("spark", "duckdb"):
        with pytest.raises(DiagnosticError):
            allowed.translate(target)


def _ask(gate: Gate, user: str) -> Authorized:
    return gate.authorize(user, "SELECT id FROM H")


def test_the_first_and_the_last_moment(spark: SparkSession) -> None:
    plan = plan_of(S)
    rows = [
        {"ts": moment, "id": at, "g": "a", "v": 1.0}
        for at, moment in enumerate((TIMESTAMP_MIN, TIMESTAMP_MAX))
    ]
    assert run_spark(spark, plan, {"S": rows}, streams_of(plan.root)) == rows

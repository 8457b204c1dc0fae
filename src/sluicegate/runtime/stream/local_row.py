"""A text in the driver's memory that Spark reads anew when it plans a micro-batch: no job, no file, no way from executors.

Spark plans every micro-batch from the same analysed plan. In that stands the row itself, whose text is replaced here as a
whole: a batch has the old one or the new one, and what is made of it is a constant of the batch's tasks. Spark reads it while
it plans, once for each time that a query names it and before parts of a plan are copied, in two ways: as a relation, where it
computes local rows, or as a constant, where it folds what stands in a scalar subquery. By the second the values stand in the
plan as if somebody had written them there. Without these rules copies would be read one by one, each at its own moment
(`session.check_streaming`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakSet

from sluicegate.errors import Diagnostic, DiagnosticError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import Column, DataFrame, SparkSession

_FIELD = '{{"name":"{}","type":"string","nullable":true,"metadata":{{}}}}'
_NAMES = ("value", "ended")
_SCHEMA = f'{{"type":"struct","fields":[{_FIELD.format(_NAMES[0])},{_FIELD.format(_NAMES[1])}]}}'
_VALUE, _ENDED = 0, 1

_FOLLOW: WeakSet[SparkContext] = WeakSet()
"""Where it was tried that changes are seen."""


class LocalRow:
    """One text, or the reason why there is none any more."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        rows = self._jvm.java.util.ArrayList()
        made = context._gateway.new_array(self._jvm.java.lang.Object, 2)
        rows.add(self._jvm.org.apache.spark.sql.RowFactory.create(made))
        session: Any = spark._jsparkSession
        schema = session.parseDataType(_SCHEMA)
        self._frame = session.createDataFrame(rows, schema)
        self._row = self._frame.queryExecution().analyzed().data().head()
        self._literal = self._jvm.org.apache.spark.sql.catalyst.expressions.Literal(self._row, schema)

    def open(self, spark: SparkSession) -> DataFrame:
        """A frame of the text and of why it ended, columns `value` and `ended`."""
        self._check(spark)
        return self._open(spark)

    def open_constant(self, spark: SparkSession, make: Callable[[Column], Column]) -> DataFrame:
        """A frame for scalar subqueries, of what is made of the text: as a constant, or an error that says why it ended.

        What is made may name the text once: each name is read at a moment of its own.
        """
        self._check(spark)
        return self._open_constant(spark, make)

    def _check(self, spark: SparkSession) -> None:
        """Where Spark would not follow a change it is refused."""
        if spark.sparkContext not in _FOLLOW:
            LocalRow(spark)._probe(spark)
            _FOLLOW.add(spark.sparkContext)

    def _open(self, spark: SparkSession) -> DataFrame:
        from pyspark.sql import DataFrame

        return DataFrame(self._frame, spark)

    def _open_constant(self, spark: SparkSession, make: Callable[[Column], Column]) -> DataFrame:
        from pyspark.sql.classic.column import Column
        from pyspark.sql.functions import lit, raise_error, when

        row = Column(self._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(self._literal))
        ended = row[_NAMES[_ENDED]]
        # the condition keeps the subquery from being copied before its constants are computed, and is gone then
        there = when(ended.isNull(), lit(True)).otherwise(raise_error(ended).cast("boolean"))
        return spark.sql("SELECT 1").where(there).select(make(row[_NAMES[_VALUE]]))

    def _probe(self, spark: SparkSession) -> None:
        """As micro-batches do, each plans the same analysed frame; of a constant all that uses it is computed."""
        frame = self._open(spark)
        name = f"p{uuid4().hex}"
        self._open_constant(spark, lambda text: text.alias("text")).createOrReplaceTempView(name)
        try:
            used = spark.sql(
                f"SELECT p.text, length(p.text) AS size FROM (SELECT (TABLE {name}) AS text) AS p"  # noqa: S608 — our own name
            )
        finally:
            spark.catalog.dropTempView(name)
        for probe in ("one", "other"):
            self.replace(probe)
            kept = [each[0] for each in _plan_again(spark, frame).collect()]
            constant = _plan_again(spark, used)
            found = [(each["text"], each["size"]) for each in constant.collect()]
            folded = "scalar-subquery" not in constant._jdf.queryExecution().optimizedPlan().toString()
            if kept != [probe] or found != [(probe, len(probe))] or not folded:
                message = "this version of Spark does not read a changed row again"
                raise DiagnosticError([Diagnostic("not-streamable", message)])

    def replace(self, text: str) -> None:
        """From the next micro-batch on, this is the text."""
        self._update(_VALUE, text)

    def end(self, reason: str) -> None:
        """From the next micro-batch on, there is none. What reads it nevertheless, in a batch that is being planned, finds no text
        that anything could be made of.
        """
        self._update(_ENDED, reason)
        self._update(_VALUE, reason)

    def _update(self, field: int, text: str) -> None:
        self._row.update(field, self._jvm.org.apache.spark.unsafe.types.UTF8String.fromString(text))


def _plan_again(spark: SparkSession, frame: DataFrame) -> DataFrame:
    from pyspark.sql import DataFrame

    jvm: Any = spark._jvm
    analyzed = frame._jdf.queryExecution().analyzed()
    made = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, analyzed)
    return DataFrame(made, spark)

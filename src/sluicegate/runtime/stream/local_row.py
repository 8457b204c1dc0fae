"""A text in the driver's memory that Spark reads anew when it plans a micro-batch: no job, no file, no way from executors.

Spark plans every micro-batch from the same analysed plan. In that stands the row itself, whose one field is replaced here
as a whole: a batch has the old text or the new one, and what is made of it is a constant of the batch's tasks. Spark reads
it where it computes local rows while it plans, once for each time that a query names it and before parts of a plan are
copied; without that rule copies would be read one by one, each at its own moment (`session.check_streaming`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sluicegate.errors import Diagnostic, DiagnosticError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = '{"type":"struct","fields":[{"name":"value","type":"string","nullable":true,"metadata":{}}]}'


_FOLLOW: WeakSet[SparkContext] = WeakSet()
"""Where it was tried that changes are seen."""


class LocalRow:
    """One text, or none."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        rows = self._jvm.java.util.ArrayList()
        rows.add(self._jvm.org.apache.spark.sql.RowFactory.create(_array(context, "")))
        session: Any = spark._jsparkSession
        self._frame = session.createDataFrame(rows, session.parseDataType(_SCHEMA))
        self._row = self._frame.queryExecution().analyzed().data().head()

    def open(self, spark: SparkSession) -> DataFrame:
        """A frame of the text, column `value`; where Spark would not follow a change it is refused."""
        if spark.sparkContext not in _FOLLOW:
            LocalRow(spark)._probe(spark)
            _FOLLOW.add(spark.sparkContext)
        return self._open(spark)

    def _open(self, spark: SparkSession) -> DataFrame:
        from pyspark.sql import DataFrame

        return DataFrame(self._frame, spark)

    def _probe(self, spark: SparkSession) -> None:
        """As micro-batches do, each plans the same analysed frame."""
        for probe in ("one", "other", None):
            if probe is None:
                self.remove()
            else:
                self.replace(probe)
            if [each[0] for each in self._open(spark).selectExpr("value").collect()] != [probe]:
                message = "this version of Spark does not read a changed row again"
                raise DiagnosticError([Diagnostic("not-streamable", message)])

    def replace(self, text: str) -> None:
        """From the next micro-batch on, this is the text."""
        self._row.update(0, self._jvm.org.apache.spark.unsafe.types.UTF8String.fromString(text))

    def remove(self) -> None:
        """NULL is no row, with which no micro-batch runs."""
        self._row.update(0, None)


def _array(context: Any, value: str) -> Any:
    made = context._gateway.new_array(context._jvm.java.lang.Object, 1)
    made[0] = value
    return made

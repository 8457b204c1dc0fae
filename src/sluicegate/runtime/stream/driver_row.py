"""A text in the driver's memory that Spark sends along with the task that reads it, so that executors need no way to it.

Tasks are written out when they start, and with them the piece of a collection that they are for. Here that is one row
over an array that can be changed: each micro-batch, and each task that is tried again, has what the array holds then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.errors import Diagnostic, DiagnosticError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = '{"type":"struct","fields":[{"name":"value","type":"string","nullable":true,"metadata":{}}]}'


class DriverRow:
    """For executors elsewhere."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        jvm = context._jvm
        self._cell = context._gateway.new_array(jvm.java.lang.Object, 1)
        rows = jvm.java.util.ArrayList()
        rows.add(jvm.org.apache.spark.sql.RowFactory.create(self._cell))
        self._rows = context._jsc.parallelize(rows, 1)

    def open(self, spark: SparkSession) -> DataFrame:
        """A frame of the text, column `value`; one that would not follow a change is refused."""
        from pyspark.sql import DataFrame

        session: Any = spark._jsparkSession
        frame = DataFrame(session.createDataFrame(self._rows, session.parseDataType(_SCHEMA)), spark)
        text = self._cell[0]
        for probe in ("", None, text):
            self._cell[0] = probe
            if [each["value"] for each in frame.collect()] != [probe]:
                self.remove()
                message = "this version of Spark does not send a changed row to its executors"
                raise DiagnosticError([Diagnostic("not-streamable", message)])
        return frame

    def replace(self, text: str) -> bool:
        """From the next micro-batch on, this is the text."""
        self._cell[0] = text
        return True

    def remove(self) -> None:
        """NULL is no row, with which no micro-batch runs."""
        self._cell[0] = None

"""Diagnostic codes of running on Spark: here, below `runtime`, so that they can be read without it."""

from __future__ import annotations

SPARK_CODES = {
    "cluster-path": "executors of the cluster do not have the driver's files under their path, or under its account",
    "cluster-start": "no executor came, or executors do not run Python as the driver does",
    "frame-schema": "a frame that was given for a stream does not have the stream's columns",
    "input-file": "an input file for a stream is missing, unreadable, or neither `.jsonl` nor `.parquet`",
    "input-stream": "an input was given for a stream that the catalog does not have, or twice for one",
    "no-java": "Spark needs Java 17, 21 or 25, and none was found that starts",
    "not-served": "the query reads what this version cannot run yet",
    "no-spark": "pyspark is not installed",
    "spark-connect": "a session is a client of Spark Connect, which cannot be used here",
    "spark-failed": "Spark could not run the query; what it said stays with the operator",
    "spark-master": "a master of a kind that is not known",
    "spark-running": "a Spark session that was made elsewhere already runs in this process",
    "spark-setting": "a Spark session has a setting under which results would differ or more would be shown",
    "spark-start": "Spark does not start",
}

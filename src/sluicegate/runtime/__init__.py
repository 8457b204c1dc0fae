"""Spark: the only layer that imports pyspark."""

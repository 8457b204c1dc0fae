"""Feeds: rows of any Spark source, decoded, checked, numbered, and kept in the source's log."""

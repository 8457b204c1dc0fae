"""Diagnostic codes of feeds: here, below `runtime`, so that they can be read without it."""

from __future__ import annotations

FEED_CODES = {
    "no-feed": "the stream has no `FROM`, so that no rows can be brought in for it",
    "feed-format": "Spark does not know the format of a feed, or cannot read it as a stream with these options",
    "feed-schema": "a feed lacks a column for an attribute, or has one of a type that never fits",
    "feed-batch": "a batch of a feed has more rows than can be numbered",
    "feed-log": "the log of a feed is damaged, or is not the one that its checkpoint belongs to",
    "feed-switch": "a query-level punctuation stands in a table, which has no tuples before and behind it",
    "table-frame": "a streaming frame for a table with a KEY, whose rows are replaced",
    "table-row": "a row that is pushed into a table with a KEY has no value there",
    "table-too-large": "a table with a KEY has more rows, or brings more bytes at once, than are held",
    "table-unreachable": "a table of a database could not be read for too long, so that none of its rows is in force",
    "feed-lost": "records of a topic were deleted before they were read, or it was made anew; it is not read on",
    "connector-changed": "a jar for topics is not the one whose checksum is known",
    "no-connector": "topics need Spark's connector, which is not installed",
    "feed-failed": "a feed has stopped; what Spark said stays with the operator",
}

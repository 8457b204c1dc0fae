"""Diagnostic codes of feeds: here, below `runtime`, so that they can be read without it."""

from __future__ import annotations

FEED_CODES = {
    "no-feed": "the stream has no `FROM`, so that no rows can be brought in for it",
    "feed-format": "Spark does not know the format of a feed, or cannot read it as a stream with these options",
    "feed-schema": "a feed lacks a column for an attribute, or has one of a type that never fits",
    "feed-batch": "a batch of a feed has more rows than can be numbered",
    "feed-log": "the log of a feed is damaged, or is not the one that its checkpoint belongs to",
    "feed-failed": "a feed has stopped; what Spark said stays with the operator",
}

"""Diagnostic codes of streaming frames: here, below `runtime`, so that they can be read without it."""

from __future__ import annotations

STREAM_CODES = {
    "frame-mixed": "batch and streaming frames were given for streams of one query",
    "not-streamable": "the authorized query needs something that Spark's streaming operators cannot do",
    "policy-changed": "a change of the catalog gives a streaming frame another plan, so it has ended",
    "policy-missing": "the values of a streaming frame's policy cannot be read, so nothing is let through",
    "withdrawn": "a change of the catalog leaves nothing of a streaming frame's query, so it has ended",
}

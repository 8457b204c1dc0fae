"""Diagnostic codes of the gate: here, below `runtime`, so that they can be read without it."""

from __future__ import annotations

GATE_CODES = {
    "gate-busy": "a hand-over to a sink did not end in time, so a change cannot be said to be in force there",
    "gate-cursor": "a cursor is not one that was given out for this query's results",
    "gate-handle": "no running query has this handle",
    "gate-log": "the folder of the result log is in use, not private or damaged",
}

"""Diagnostic codes of the gate and of sinks: here, below `runtime`, so that they can be read without it."""

from __future__ import annotations

GATE_CODES = {
    "gate-busy": "a hand-over to a sink did not end in time, so a change cannot be said to be in force there",
    "gate-cursor": "a cursor is not one that was given out for this query's results",
    "gate-handle": "no running query has this handle",
    "gate-log": "the folder of the result log is in use, not private or damaged",
}
SINK_CODES = {
    "sink-declared": "the declaration of a sink is not complete, or names what there is not",
    "sink-denied": "the user may not send results to this sink, or there is none of this name",
    "sink-failed": "the sink did not take the rows",
    "sink-taken": "the query sends its results somewhere else already",
}

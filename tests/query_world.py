"""A catalog for query tests, and what a refused text says where."""

from __future__ import annotations

import pytest

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.types import DOUBLE, INT, STRING, TIMESTAMP, Type
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream


def make_stream(name: str, *attributes: tuple[str, Type], event_time: str | None = "ts") -> Stream:
    times = ((event_time, TIMESTAMP),) if event_time else ()
    return Stream(name, (*times, *attributes), event_time)


_SENSOR = (("SID", STRING), ("id", INT), ("rate", DOUBLE), ("loc", STRING))
_STREAMS = (
    make_stream("Health", ("SID", STRING), ("Platoon", STRING), ("BPressure", INT), ("Heart", INT)),
    make_stream("Position", ("SID", STRING), ("Platoon", STRING), ("Pos", DOUBLE)),
    make_stream("AIS", ("SID", INT), ("Type", STRING), ("Long", DOUBLE), ("Lat", DOUBLE)),
    make_stream("weather", ("rainrate", DOUBLE), ("samplingtime", TIMESTAMP), ("windspeed", DOUBLE)),
    make_stream("HeartRate", ("Patient_id", INT), ("Beats_per_min", INT)),
    make_stream("S1", ("Patient_id", INT), ("Beats_per_min", INT), event_time="Timestamp"),
    make_stream("A", *_SENSOR),
    make_stream("B", *_SENSOR),
    make_stream("Unit", ("SID", STRING), ("name", STRING), event_time=None),
)
CATALOG = Catalog(streams={stream.name: stream for stream in _STREAMS})


def refuse(text: str) -> tuple[Diagnostic, ...]:
    """The diagnostics of a query that is not read."""
    with pytest.raises(DiagnosticError) as caught:
        read_query(text, CATALOG)
    return caught.value.diagnostics


def underlined(text: str) -> list[tuple[str, str]]:
    """Code and underlined text of each diagnostic."""
    return [(each.code, each.span.text if each.span else "") for each in refuse(text)]

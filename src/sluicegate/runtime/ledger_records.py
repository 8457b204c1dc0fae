"""What the ledger writes down, as JSON and back. What is read is checked; what is unknown is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sluicegate.errors import InvariantError
from sluicegate.graph.json_expr import (
    GraphFormatError,
    entry_of,
    expr_from_json,
    expr_json,
    list_of,
    number_of,
    text_of,
)
from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.policy.entries import AttributeOf, Entry, Extent
from sluicegate.policy.population import Population

ADMITTED = "admitted"
CLOSED = "closed"
KEPT = "kept"
_KEYS = frozenset(
    {
        "grant",
        "streams",
        "function",
        "attribute",
        "window",
        "grouping",
        "narrowing",
        "join_windows",
        "extent",
        "min_group",
        "population",
    }
)


@dataclass(frozen=True, slots=True)
class Record:
    """Entries of one query that were admitted, or closed after `last` (None: nothing had been read), or that are on record
    as given up to `last` (None: over all their event time), whatever comes of the query."""

    kind: str
    principal: str
    query: str
    entries: tuple[Entry, ...]
    last: int | None = None
    since: int | None = None
    """Of what was admitted: no window begins before it; None: any may."""


def write_record(record: Record) -> str:
    """One line of JSON, read again before it is trusted."""
    value = {
        "kind": record.kind,
        "principal": record.principal,
        "query": record.query,
        "entries": [_entry_json(each) for each in record.entries],
        "last": record.last,
        "since": record.since,
    }
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    if read_record(text) != record:
        raise InvariantError("an entry of the ledger is not read as it was written")
    return text


def read_record(text: str) -> Record:
    """The record; ValueError or `GraphFormatError` for anything that `write_record` does not write."""
    value = entry_of(json.loads(text, parse_constant=_refuse_constant), "a record")
    kind = value.get("kind")
    if kind not in (ADMITTED, CLOSED, KEPT):
        raise GraphFormatError(f"unknown record `{kind}`")
    principal = text_of(value.get("principal"), "principal")
    return Record(
        kind,
        principal,
        text_of(value.get("query"), "query"),
        tuple(_read_entry(each, principal) for each in list_of(value.get("entries"), "entries")),
        _read_instant(value.get("last"), "last"),
        _read_instant(value.get("since"), "since"),
    )


def _refuse_constant(name: str) -> None:
    raise GraphFormatError(f"`{name}` is no number")


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "grant": entry.grant,
        "streams": list(entry.streams),
        "function": entry.function.value,
        "attribute": None if entry.attribute is None else list(entry.attribute),
        "window": _window_json(entry.window),
        "grouping": [list(each) for each in entry.grouping],
        "narrowing": expr_json(entry.narrowing),
        "join_windows": [_window_json(each) for each in entry.join_windows],
        "extent": None if entry.extent is None else [entry.extent.begin, entry.extent.end],
        "min_group": entry.min_group,
        "population": _population_json(entry.population),
    }


def _read_entry(value: Any, principal: str) -> Entry:
    entry = entry_of(value, "an entry")
    # without `population` it was written before there was one: it is not known
    if entry.keys() | {"population"} != _KEYS:
        raise GraphFormatError("an entry does not have the parts it needs")
    attribute = entry["attribute"]
    return Entry(
        principal,
        text_of(entry["grant"], "grant"),
        tuple(text_of(each, "streams") for each in list_of(entry["streams"], "streams")),
        AggFunction(text_of(entry["function"], "function")),
        None if attribute is None else _read_attribute(attribute),
        _read_window(entry["window"]),
        tuple(map(_read_attribute, list_of(entry["grouping"], "grouping"))),
        expr_from_json(entry["narrowing"]),
        tuple(map(_read_window, list_of(entry["join_windows"], "join_windows"))),
        _read_extent(entry["extent"]),
        number_of(entry["min_group"], "min_group"),
        _read_population(entry.get("population")),
    )


def _population_json(population: Population | None) -> list[Any] | None:
    if population is None:
        return None
    return [population.bound, [list(each) for each in population.values], population.moves]


def _read_population(value: Any) -> Population | None:
    match value:
        case None:
            return None
        case [str() as bound, [*values], bool() as moves]:
            return Population(bound, tuple(map(_read_attribute, values)), moves)
        case _:
            raise GraphFormatError(f"unknown population `{value}`")


def _window_json(window: Window) -> list[Any]:
    match window:
        case TimeWindow(size, step):
            return ["time", size, step]
        case TupleWindow(size, step):
            return ["rows", size, step]
        case _:
            raise TypeError(f"unknown window {type(window).__name__}")


def _read_window(value: Any) -> Window:
    match value:
        case ["time", size, step]:
            return TimeWindow(number_of(size, "size"), number_of(step, "step"))
        case ["rows", size, step]:
            return TupleWindow(number_of(size, "size"), number_of(step, "step"))
        case _:
            raise GraphFormatError(f"unknown window `{value}`")


def _read_attribute(value: Any) -> AttributeOf:
    match value:
        case [str() as stream, str() as name]:
            return stream, name
        case _:
            raise GraphFormatError(f"unknown attribute `{value}`")


def _read_extent(value: Any) -> Extent | None:
    match value:
        case None:
            return None
        case [begin, end]:
            return Extent(_read_instant(begin, "begin"), _read_instant(end, "end"))
        case _:
            raise GraphFormatError(f"unknown extent `{value}`")


def _read_instant(value: Any, what: str) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise GraphFormatError(f"`{what}` is no instant: `{value}`")
    return value

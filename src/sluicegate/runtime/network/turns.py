"""Turns: the queries of one shape that stand at one place, taken as far as their logs reach, and where all of them are then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluicegate.expr.nodes import Value
from sluicegate.expr.types import Type
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.gate.events import Part
from sluicegate.runtime.network.places import Mark, Place, find_place, place_json, read_place
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.switching import Switching, name_queries
from sluicegate.runtime.network.together import Bundle
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.units import Unit
from sluicegate.runtime.table.in_force import find_waiting
from sluicegate.runtime.table.table_log import TableLog
from sluicegate.targets.spark_together import Flat

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BATCHES = 256
"""Batches of a log that one tick takes at most, so that one that fell behind does not take all memory."""
Moving = Callable[[Running], tuple[tuple[str, Value], ...]]


@dataclass(slots=True)
class Shape:
    """A live shape; what its units carry changes with each tick."""

    key: str
    types: tuple[Type, ...]
    units: tuple[Unit, ...]
    carried: list[Carried]
    saved: list[Carried]
    """What is on disk of it."""
    versions: dict[int, int] = field(default_factory=dict)
    """Under which version each query's open tuple windows were counted."""
    bundle: tuple[Flat, Bundle] | None = None
    """How it is evaluated together with others, where it can be."""
    failures: int = 0
    """How often it failed in a row; while it does it runs alone."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Queries of one shape that stand at one place, and what was found for them up to another."""

    shape: str
    before: Place
    after: Place
    queries: tuple[Running, ...]
    tables: tuple[pa.Table, ...] = ()
    asked: tuple[int, ...] = ()
    """The numbers that its rows may have: of queries and of sessions, those of a query as they opened."""


def plan_turns(
    queries: Sequence[Running], logs: Mapping[str, SourceLog], switching: Switching | None
) -> list[Turn]:
    """Those with something to read, and those without."""
    groups: dict[tuple[str, Place, tuple[tuple[str, int], ...]], list[Running]] = {}
    for each in queries:
        held = () if switching is None else switching.find_held(each)
        groups.setdefault((each.allowed.shaped.key, each.place, held), []).append(each)
    turns = []
    for (shape, before, held), members in groups.items():
        if find_waiting(logs, before):
            continue
        after = find_place(logs, (name for name, _ in before))
        turns.append(Turn(shape, before, _bound(logs, before, after, dict(held)), tuple(members)))
    return turns


def _bound(logs: Mapping[str, SourceLog], before: Place, after: Place, held: Mapping[str, int]) -> Place:
    """Not too much at once; the watermark is then the one after the last batch that is taken."""
    marks, bounded = dict(before), []
    for name, mark in after:
        if isinstance(logs[name], TableLog):
            # a tuple meets what is in force now, however far its stream is behind
            bounded.append((name, mark))
            continue
        most = marks[name].end + MOST_BATCHES
        most = max(min(most, held.get(name, most)), marks[name].end)
        if mark.end > most:
            taken = logs[name].batches(marks[name].end, most)
            mark = Mark(taken[-1].last + 1, taken[-1].watermark) if taken else marks[name]
        bounded.append((name, mark))
    return tuple(bounded)


def make_part(turn: Turn) -> Part:
    """What the gate takes of a turn."""
    import pyarrow as pa

    versions = {each.number: each.version for each in turn.queries}
    table = pa.concat_tables(turn.tables) if turn.tables else pa.table({"q": pa.array([], pa.int64())})
    if any(each.switch is not None for each in turn.queries):
        table = name_queries(table, turn.asked)
    return Part(table, versions)


def positions_json(places: Mapping[int, Place]) -> dict[str, Any]:
    """Most queries stand at few places."""
    distinct = list(dict.fromkeys(places.values()))
    at = {place: number for number, place in enumerate(distinct)}
    return {
        "places": [place_json(each) for each in distinct],
        "of": {str(number): at[place] for number, place in places.items()},
    }


def read_positions(found: Mapping[str, Any]) -> dict[int, Place]:
    places = [read_place(each) for each in found["places"]]
    return {int(number): places[at] for number, at in found["of"].items()}

"""A tick becomes part of the log: written aside without the lock, judged and given its name under it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from sluicegate.errors import InvariantError
from sluicegate.runtime.gate.events import Committed, Part
from sluicegate.runtime.gate.files import TickFile, map_file, publish, sync_file, write_footer, write_stream
from sluicegate.runtime.gate.grouping import group_rows, join_indexes
from sluicegate.runtime.gate.state import State

Positions: TypeAlias = Mapping[str, Any] | Callable[[frozenset[int]], Mapping[str, Any]]
"""Where sources were read to, or what gives that once it is known which handles were dropped."""


def commit_tick(state: State, tick: int, parts: Sequence[Part], positions: Positions) -> Committed:
    with state.lock:
        done = _find_done(state, tick)
        before = _judge(state, tick, parts)
    if done is not None:
        return done
    refused = before.stale | before.ended
    groups = [
        group_rows(at, part, [each for each in part.versions if each not in refused])
        for at, part in enumerate(parts)
    ]
    index = join_indexes(groups)
    path = state.store.tick_path(tick)
    with state.store.write_temporary(path) as (file, temporary):
        spans = [write_stream(file, group.table) for group in groups]
        sync_file(file)
        with state.lock:
            done = _find_done(state, tick)
            if done is not None:
                return done
            # what was dropped before writing stays dropped, what is stale by now is not indexed
            now = _judge(state, tick, parts)
            committed = Committed(tick, before.stale - now.ended | now.stale, before.ended | now.ended)
            kept = {
                each: rows for each, rows in index.items() if each not in committed.stale | committed.ended
            }
            found = positions(committed.stale) if callable(positions) else positions
            # as a restart will read them
            told = json.loads(json.dumps(found))
            write_footer(file, committed, told, kept, spans)
            file.flush()
            # by its own name, which nothing else ever has
            content = map_file(temporary)
            state.registry.flush()
            publish(file, temporary, path)
            made = TickFile(path, committed, told, kept, tuple(spans), content)
            state.store.keep_open(made)
            state.enter(made)
            state.trim()
    return committed


def _find_done(state: State, tick: int) -> Committed | None:
    """The answer that was given, for a tick that is complete already."""
    if state.is_shut:
        raise InvariantError("the gate is shut")
    if tick < 0:
        raise InvariantError(f"a tick has the number {tick}")
    if state.last is None or tick > state.last[0].tick:
        return None
    if tick == state.last[0].tick:
        done = state.last[0]
        return Committed(tick, done.stale, done.ended, replayed=True)
    if not state.has_tick(tick):
        raise InvariantError(f"the tick {tick} is no longer in the log")
    done = state.store.open_tick(tick).committed
    return Committed(tick, done.stale, done.ended, replayed=True)


def _judge(state: State, tick: int, parts: Sequence[Part]) -> Committed:
    """Which handles' rows must not come in (R10)."""
    stale, ended = set(), set()
    for part in parts:
        for number, version in part.versions.items():
            record = state.numbers.get(number)
            if record is None or not record.is_running:
                ended.add(number)
            elif record.version != version:
                stale.add(number)
    return Committed(tick, frozenset(stale), frozenset(ended))

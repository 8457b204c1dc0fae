"""Rows of queries that have ended leave the disk: nobody will be handed them any more."""

from __future__ import annotations

from dataclasses import replace

from sluicegate.runtime.gate.files import TickFile, map_file, publish, write_footer, write_stream
from sluicegate.runtime.gate.grouping import Slice
from sluicegate.runtime.gate.state import State


def purge_ended(state: State, most: int) -> int:
    """Write up to `most` ticks anew without the rows of handles that have ended; how many there were."""
    with state.lock:
        due = [] if state.is_shut else state.take_unclean(most)
    for at, (tick, ended) in enumerate(due):
        try:
            _rewrite(state, tick, ended)
        except BaseException:
            # for the next time
            with state.lock:
                state.put_back_unclean(due[at:])
            raise
    return len(due)


def _rewrite(state: State, tick: int, ended: frozenset[int]) -> None:
    import numpy as np

    try:
        found = state.store.open_tick(tick)
    except FileNotFoundError:
        # cut meanwhile
        return
    kept = {number: rows for number, rows in found.index.items() if number not in ended}
    with state.store.write_temporary(found.path) as (file, temporary):
        index: dict[int, Slice] = {}
        spans: list[tuple[int, int]] = []
        for at in range(len(found.parts)):
            places, count = [np.arange(0)], 0
            for number, rows in kept.items():
                if rows.part == at:
                    index[number] = replace(rows, start=count)
                    places.append(np.arange(rows.start, rows.start + rows.count))
                    count += rows.count
            # taken row by row: a slice would bring along the values beside it
            spans.append(write_stream(file, found.read_part(at).take(np.concatenate(places))))
        write_footer(file, found.committed, found.positions, index, spans)
        file.flush()
        # by its own name, which nothing else ever has
        content = map_file(temporary)
        with state.lock:
            if state.is_shut or not state.has_tick(tick):
                return
            publish(file, temporary, found.path)
            made = TickFile(found.path, found.committed, found.positions, index, tuple(spans), content)
            state.replace_tick(made, ended)

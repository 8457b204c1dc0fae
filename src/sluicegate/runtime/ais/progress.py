"""A decoder's state beside its stream's log: written before the batch that it belongs to, counted only with it.

    ais/whole-<end>.json    the state after all batches below `end`
    ais/more-<n>.json       what batch `n` changed

A batch is complete by its own rename. So a state that was written for a batch that never was is left out when it is read,
and no sentence is taken twice or lost between the two.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sluicegate.runtime.ais.state import State, read_state, write_state
from sluicegate.runtime.feed.log_files import read_json, refuse_log, remove_all, write_json

_LEAST = 1 << 20
_MANY = 256


class Progress:
    """One process owns it, as it does the log."""

    def __init__(self, log_folder: Path) -> None:
        self._folder = log_folder / "ais"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._bytes = self._count = self._whole = 0

    def load(self, end: int) -> State:
        """The state after the batches below `end`."""
        known = [number for number in self._list("whole") if number <= end]
        begin = max(known, default=0)
        state = read_state(read_json(self._path("whole", begin))) if known else State()
        self._whole = self._path("whole", begin).stat().st_size if known else 0
        self._bytes = self._count = 0
        for number in range(begin, end):
            path = self._path("more", number)
            if not path.exists():
                raise refuse_log(f"the state of its decoder lacks batch {number}")
            state = _put_together(state, read_state(read_json(path)))
            self._note(path)
        self._discard(begin, end)
        return state

    def write(self, number: int, changed: State) -> None:
        """Before batch `number` is made complete."""
        path = self._path("more", number)
        write_json(path, write_state(changed))
        self._note(path)

    def is_long(self) -> bool:
        """Whether what changed is more to read than the whole."""
        return self._count >= _MANY or self._bytes > max(_LEAST, self._whole)

    def put_together(self, end: int, whole: State) -> None:
        """After the batches below `end` are complete."""
        path = self._path("whole", end)
        write_json(path, write_state(whole))
        self._whole, self._bytes, self._count = path.stat().st_size, 0, 0
        self._discard(end, end)

    def _note(self, path: Path) -> None:
        self._bytes += path.stat().st_size
        self._count += 1

    def _discard(self, begin: int, end: int) -> None:
        old = [self._path("whole", number) for number in self._list("whole") if number != begin]
        more = [self._path("more", number) for number in self._list("more") if not begin <= number < end]
        remove_all([*old, *more, *self._folder.glob("*.new")])

    def _path(self, kind: str, number: int) -> Path:
        return self._folder / f"{kind}-{number:012d}.json"

    def _list(self, kind: str) -> list[int]:
        return [int(path.stem.rpartition("-")[2]) for path in self._folder.glob(f"{kind}-*.json")]


def _put_together(before: State, changed: State) -> State:
    statics, seen = dict(before.statics), dict(before.seen)
    for mmsi, values in changed.statics:
        # the latest come last, as the decoder has them
        statics.pop(mmsi, None)
        statics[mmsi] = values
    for payload, time in changed.seen:
        seen.pop(payload, None)
        seen[payload] = time
    return replace(changed, statics=list(statics.items()), seen=list(seen.items()))

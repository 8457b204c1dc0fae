"""Which folder is the log of which declaration, and what a log tells that is no longer its stream's."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.log_batch import read_batch
from sluicegate.runtime.feed.log_files import PRIVATE, read_json, refuse_log, sync_folder, write_json

_CLOCK = "clock.json"
_OLDER = "older"
_OLDER_DIGITS = 16
"""Of the digest in a log's name, as older versions wrote it."""


def log_folder(root: Path, stream: Stream) -> Path:
    """The folder of the stream's log; another declaration has another folder, so that it never continues this one's.

    The log of this declaration under the shorter name of an older version is taken up: read anew from its source, rows that
    were told would count as new ones.
    """
    declared: list[object] = [
        stream.name,
        [[name, str(of)] for name, of in stream.attributes],
        stream.event_time,
        stream.format,
        sorted(stream.options),
    ]
    if stream.punctuated_by is not None:
        # what a shield remembers holds for these alone
        declared += [stream.punctuated_by, stream.order_any, stream.owner]
    if stream.key:
        declared += ["key", *stream.key]
    mark = _digest(declared)
    name = re.sub("[^A-Za-z0-9]", "-", stream.name)[:40]
    folder, older = root / f"{name}.{mark}", root / f"{name}.{mark[:_OLDER_DIGITS]}"
    if older.is_dir() and not folder.exists():
        # first, so that a log that was begun anew is never taken for it
        (older / _OLDER).touch(mode=PRIVATE)
        sync_folder(older)
        older.rename(folder)
        sync_folder(root)
    return folder


def is_log(folder: Path, recorded: str) -> bool:
    """Whether a log is the one that was on record by that name, be it by the name that an older version gave it."""
    if folder.name == recorded:
        return True
    digits = len(recorded.rpartition(".")[2])
    return digits == _OLDER_DIGITS and folder.name.startswith(recorded) and (folder / _OLDER).exists()


def keep_clock(folder: Path, stream: Stream) -> None:
    """Put down by what the event time of a log's rows is told; all that are in it are of one declaration."""
    if not (folder / _CLOCK).exists():
        write_json(folder / _CLOCK, {"clock": _find_clock(stream)})


def read_greatest(folder: Path, stream: Stream) -> int | None:
    """The greatest event time that ever came into a log of another declaration of the stream; None: nothing came.

    Raises `feed-log` where that is not known: the log is gone or damaged, or its event time may not be the stream's of now.
    """
    if read_json(folder / _CLOCK).get("clock") != _find_clock(stream):
        raise refuse_log("its event time is not that of the stream")
    if not (folder / "meta").is_dir():
        raise refuse_log("`meta` is gone")
    known = [read_batch(each, folder / "data").greatest for each in (folder / "meta").glob("*.json")]
    state = folder / "state.json"
    saved = read_json(state).get("greatest") if state.exists() else None
    return max((each for each in (*known, saved) if isinstance(each, int)), default=None)


def _find_clock(stream: Stream) -> str:
    """Equal where one tuple of the source has one event time under both declarations: also its place among attributes counts,
    for formats without names."""
    at = [name for name, _ in stream.attributes].index(stream.event_time) if stream.event_time else None
    of = None if stream.event_time is None else str(stream.type_of(stream.event_time))
    return _digest([stream.name, stream.event_time, at, of, stream.format, sorted(stream.options)])


def _digest(value: list[object]) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()

"""Backup and restore: everything that is chained as lines of JSON, the same for every back end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from sluicegate.errors import DiagnosticError
from sluicegate.runtime.gate.files import TEMPORARY, create_private, publish
from sluicegate.service.store import chain
from sluicegate.service.store.database import Transaction, fail
from sluicegate.service.store.records import BEFORE_ALL, RecordError, entry_from_json, event_from_json
from sluicegate.service.store.verify import verify

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Counts:
    changes: int
    events: int


def write_backup(found: Transaction, path: Path) -> Counts:
    """A new file with mode 0600, there when it is whole. A damaged store is not backed up over a sound file."""
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with create_private(temporary) as file:
            counts = _write_lines(found, file)
            publish(file, temporary, path)
    except OSError as error:
        fail("export-folder", f"`{path}` cannot be written: {error.strerror or error}")
    finally:
        temporary.unlink(missing_ok=True)
    return counts


def _write_lines(found: Transaction, file: IO[bytes]) -> Counts:
    _write(file, {"sluicegate": "backup", "format": _FORMAT})
    changes = events = 0
    for entry in chain.read_entries(found):
        changes += 1
        _write(file, {"change": entry.to_json()})
    for event in chain.read_events(found):
        events += 1
        _write(file, {"event": event.to_json()})
    _write(file, {"end": {"changes": changes, "events": events}})
    return Counts(changes, events)


def _write(file: IO[bytes], value: dict[str, Any]) -> None:
    file.write(json.dumps(value, sort_keys=True).encode("ascii") + b"\n")


def read_backup(found: Transaction, path: Path) -> Counts:
    """Into tables that are locked and empty. Whatever is wrong raises, and the transaction is undone."""
    if chain.last_entry(found)[0] or chain.last_event(found)[0]:
        fail("store-not-empty", "a backup is restored into an empty store only")
    try:
        counts = _add_lines(found, path)
    except OSError as error:
        _refuse(path, error.strerror or str(error))
    except (ValueError, RecursionError, RecordError) as error:
        _refuse(path, str(error)[:200])
    except DiagnosticError as error:
        _refuse(path, error.diagnostics[0].message)
    result = verify(found)
    if not result.is_sound:
        _refuse(path, result.broken[0])
    return counts


def _add_lines(found: Transaction, path: Path) -> Counts:
    changes = events = 0
    change_link = event_link = BEFORE_ALL
    for kind, value in _read_lines(path):
        if kind == "change":
            entry = entry_from_json(value)
            changes += 1
            chain.check_entry(entry, changes, change_link)
            chain.add_entry(found, entry)
            change_link = entry.hash
        elif kind == "event":
            event = event_from_json(value)
            events += 1
            chain.check_event(event, events, event_link)
            chain.add_event(found, event)
            event_link = event.hash
        elif value != {"changes": changes, "events": events}:
            raise RecordError("lines are missing")
    return Counts(changes, events)


def _read_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Each line's kind and value; the first and the last must be what a whole backup has."""
    kind = ""
    with path.open("rb") as file:
        head = json.loads(file.readline() or b"null")
        if head != {"sluicegate": "backup", "format": _FORMAT}:
            raise RecordError("it does not begin as a backup of this release does")
        for line in file:
            value = json.loads(line)
            if kind == "end" or not isinstance(value, dict) or len(value) != 1:
                raise RecordError("a line is not one of a backup")
            ((kind, content),) = value.items()
            if kind not in ("change", "event", "end"):
                raise RecordError(f"a line is of an unknown kind `{kind[:40]}`")
            yield kind, content
    if kind != "end":
        raise RecordError("its end is missing")


def _refuse(path: Path, why: str) -> NoReturn:
    fail(
        "backup-damaged", f"the backup `{os.fspath(path)}` cannot be restored: {why}", "nothing was restored"
    )

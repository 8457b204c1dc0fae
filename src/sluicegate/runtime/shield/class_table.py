"""The policy classes of a stream, numbered in order of appearance; on disk a line each, only ever added to.

A number that a row of the log carries is in the table, for the table is written before the batch is complete. What a batch
added that never became complete stays: the same content has the same number when it comes again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from sluicegate.policy.classes import PolicyClass, read_class, write_class
from sluicegate.runtime.feed.log_files import PRIVATE, refuse_log, sync_folder

TOO_MANY = -1
FOLDER, CLASSES = "shield", "classes.jsonl"


class ClassTable:
    """One thread adds, any number read."""

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._most = path, most
        texts = _read_lines(path)
        try:
            self._classes = [read_class(text) for text in texts]
        except ValueError as error:
            raise refuse_log(f"`{path.name}` holds what is no policy class") from error
        self._numbers = {each: number for number, each in enumerate(self._classes)}

    def __len__(self) -> int:
        return len(self._classes)

    def read(self, begin: int = 0) -> tuple[PolicyClass, ...]:
        """The classes from this number on."""
        return tuple(self._classes[begin:])

    def intern(self, found: Sequence[PolicyClass]) -> list[int]:
        """Their numbers, on disk when it returns; `TOO_MANY` for new ones beyond the limit."""
        different = dict.fromkeys(each for each in found if each not in self._numbers)
        new = list(different)[: max(self._most - len(self), 0)]
        if new:
            _append_lines(self._path, [write_class(each) for each in new])
            for each in new:
                self._numbers[each] = len(self._classes)
                self._classes.append(each)
        return [self._numbers.get(each, TOO_MANY) for each in found]


class ClassReader:
    """The same for those who only read: what was there once is read once."""

    def __init__(self, folder: Path) -> None:
        """`folder` is that of the log."""
        self.folder = folder
        self._path, self._lock = folder / FOLDER / CLASSES, threading.Lock()
        self._place = 0
        self._classes: tuple[PolicyClass, ...] = ()

    def read(self) -> tuple[PolicyClass, ...]:
        """All that are complete; a number beyond them is nobody's."""
        with self._lock:
            if self._path.exists():
                with self._path.open("rb") as file:
                    file.seek(self._place)
                    content = file.read()
                whole = content.rfind(b"\n") + 1
                lines = content[:whole].decode("utf-8", "replace").split("\n")[:-1]
                self._classes += tuple(read_class(each) for each in lines)
                self._place += whole
            return self._classes


def _read_lines(path: Path) -> list[str]:
    """Whole lines; half of one, which a process that was killed left behind, is taken away."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
            os.fsync(file.fileno())
    return content[:whole].decode("utf-8", "replace").split("\n")[:-1]


def _append_lines(path: Path, lines: Sequence[str]) -> None:
    is_new = not path.exists()
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
    with os.fdopen(opened, "ab") as file:
        file.write("".join(f"{line}\n" for line in lines).encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_folder(path.parent)

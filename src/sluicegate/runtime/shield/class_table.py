"""The policy classes of a stream, numbered in order of appearance; on disk a line each, only ever added to.

A number that a row of the log carries is in the table, for the table is written before the batch is complete. What a batch
added that never became complete stays: the same content has the same number when it comes again. That holds too where the
disk failed meanwhile and the process goes on: of lines that may be there, and that somebody may have read, none changes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from sluicegate.policy.classes import PolicyClass, read_class, write_class
from sluicegate.runtime.feed.log_files import PRIVATE, TEMPORARY, refuse_log, sync_folder

TOO_MANY = -1
FOLDER, CLASSES = "shield", "classes.jsonl"


class ClassTable:
    """One thread adds, any number read."""

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._most = path, most
        self._unsure: Sequence[PolicyClass] = ()
        """Those whose writing began and did not end well: nobody knows how much of them is in the file."""
        texts = _read_lines(path)
        try:
            self._classes = [read_class(text) for text in texts]
        except ValueError as error:
            raise refuse_log(f"`{path.name}` holds what is no policy class") from error
        self._numbers = {each: number for number, each in enumerate(self._classes)}
        self._size = path.stat().st_size if texts else 0

    def __len__(self) -> int:
        return len(self._classes)

    def read(self, begin: int = 0) -> tuple[PolicyClass, ...]:
        """The classes from this number on."""
        return tuple(self._classes[begin:])

    def intern(self, found: Sequence[PolicyClass]) -> list[int]:
        """Their numbers, on disk when it returns; `TOO_MANY` for new ones beyond the limit."""
        if self._unsure:
            lines = _write_lines(self._unsure)
            _replace_behind(self._path, self._size, lines)
            self._take_up(lines)
        different = dict.fromkeys(each for each in found if each not in self._numbers)
        new = list(different)[: max(self._most - len(self), 0)]
        if new:
            self._unsure, lines = new, _write_lines(new)
            _append_lines(self._path, lines)
            self._take_up(lines)
        return [self._numbers.get(each, TOO_MANY) for each in found]

    def _take_up(self, lines: bytes) -> None:
        """They are on disk."""
        for each in self._unsure:
            self._numbers[each] = len(self._classes)
            self._classes.append(each)
        self._size += len(lines)
        self._unsure = ()


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
    with path.open("r+b") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        file.truncate(whole)
        # the process that wrote them may not have lived to see them on disk
        os.fsync(file.fileno())
    return content[:whole].decode("utf-8", "replace").split("\n")[:-1]


def _write_lines(classes: Sequence[PolicyClass]) -> bytes:
    return "".join(f"{write_class(each)}\n" for each in classes).encode("utf-8")


def _append_lines(path: Path, lines: bytes) -> None:
    is_new = not path.exists()
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
    with os.fdopen(opened, "ab") as file:
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_folder(path.parent)


def _replace_behind(path: Path, size: int, lines: bytes) -> None:
    """The first bytes as they are, and these lines behind, in a file of its own: what a disk once failed to keep it may
    keep back for ever, and say that it has it.
    """
    known = path.read_bytes()[:size] if path.exists() else b""
    if len(known) < size:
        raise refuse_log(f"`{path.name}` has lost policy classes")
    written = path.with_name(path.name + TEMPORARY)
    with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb") as file:
        file.write(known + lines)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
    sync_folder(path.parent)

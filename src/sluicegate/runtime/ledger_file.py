"""Numbered lines that are on disk when `append` returns: a file that only grows.

A line is its checksum, its number and its text. The last line may be cut short where the machine stopped in the middle of
an `append`; nobody was told that it was written, so it is left out. Any other line that is not as it was written means
that something is missing, and nothing is read.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from pathlib import Path

from sluicegate.errors import Diagnostic, DiagnosticError, SluicegateError
from sluicegate.runtime.gate.files import TEMPORARY, create_private, publish, sync_folder

_HEAD = "sluicegate ledger 1"


class DamageError(SluicegateError):
    """The file is not what was written, or cannot be read or written."""


class LedgerFile:
    """One process at a time; calls are ordered by the caller's lock."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / "ledger.log"
        self._claim = _claim(folder / "ledger.lock")
        self._file: int | None = None
        self._count = 0

    def load(self) -> list[str]:
        """All texts in order; from then on there may be more."""
        try:
            self._create()
            self._file = os.open(self._path, os.O_RDWR | os.O_APPEND)
            os.fchmod(self._file, 0o600)
            return self._read()
        except (OSError, UnicodeDecodeError) as error:
            self._release()
            raise DamageError(f"the ledger cannot be read: {error}") from error
        except DamageError:
            self._release()
            raise

    def append(self, text: str) -> None:
        if self._file is None:
            raise DamageError("the ledger was not read, or could not be written before")
        file, self._file = self._file, None
        # put back only when all of it is on disk: after half a line the next one would be lost with it
        try:
            _write_all(file, _format(self._count, text))
            os.fsync(file)
        except BaseException as error:
            os.close(file)
            if isinstance(error, OSError):
                raise DamageError(f"the ledger cannot be written: {error}") from error
            raise
        self._file = file
        self._count += 1

    def close(self) -> None:
        self._release()
        os.close(self._claim)

    def _create(self) -> None:
        """Complete or absent: an empty file is a damaged one."""
        if self._path.exists():
            return
        temporary = self._path.with_suffix(TEMPORARY)
        with create_private(temporary) as file:
            file.write(_format(0, _HEAD))
            publish(file, temporary, self._path)

    def _read(self) -> list[str]:
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        texts = [_parse(at, line) for at, line in enumerate(content[:whole].split(b"\n")[:-1])]
        if not texts or texts[0] != _HEAD:
            raise DamageError("the file does not begin as a ledger does")
        if self._file is not None and whole < len(content):
            os.ftruncate(self._file, whole)
            os.fsync(self._file)
        self._count = len(texts)
        return texts[1:]

    def _release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _claim(path: Path) -> int:
    """Two processes would each know half of what was given."""
    found = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(found)
        message = f"the ledger in `{path.parent}` is kept by another process"
        raise DiagnosticError([Diagnostic("ledger-busy", message)]) from error
    sync_folder(path.parent)
    return found


def _format(number: int, text: str) -> bytes:
    if "\n" in text:
        raise ValueError("a line of the ledger has a line break")
    body = f"{number} {text}".encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _parse(number: int, line: bytes) -> str:
    check, _, body = line.partition(b" ")
    if check != b"%08x" % zlib.crc32(body):
        raise DamageError(f"line {number + 1} of the ledger is damaged")
    found, _, text = body.decode("utf-8").partition(" ")
    if found != str(number):
        raise DamageError(f"line {number + 1} of the ledger is missing")
    return text


def _write_all(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]

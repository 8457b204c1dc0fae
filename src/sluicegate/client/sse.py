"""Server-sent events out of chunks of bytes, cut wherever the network cut them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LARGEST_EVENT = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Message:
    """One event: its kind, its data as text, and its own id (empty when it had none)."""

    kind: str
    data: str
    id: str


class Parser:
    """Feed it chunks; what an end of the connection leaves unfinished is never given out."""

    def __init__(self, largest: int = LARGEST_EVENT) -> None:
        self._largest = largest
        self._parts: list[bytes] = []  # of the line that has no end yet
        self._started = self._after_cr = False
        self._begin()

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """The messages that this chunk completes. Raises ValueError for what is no text or has no end."""
        if not chunk:
            return
        self._size += len(chunk)
        if self._size > self._largest:
            raise ValueError("an event is larger than this client reads")
        for line in self._split(chunk):
            if line:
                self._take(line.decode("utf-8"))
                continue
            message = self._finish()
            if message is not None:
                yield message

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        """Whole lines; they end with CR, LF or both, and both may be in different chunks."""
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        first, *others = _END.split(chunk)
        self._parts.append(first)
        for each in others:
            line, self._parts = b"".join(self._parts), [each]
            yield line if self._started else line.removeprefix(_BOM)
            self._started = True

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._kind = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
            case _:
                pass  # comments (an empty name) and fields that are not for us

    def _finish(self) -> Message | None:
        kind, data, id_ = self._kind, self._data, self._id
        self._begin()
        return Message(kind or "message", "\n".join(data), id_) if data or kind else None

    def _begin(self) -> None:
        self._kind, self._id, self._size = "", "", 0
        self._data: list[str] = []

"""Bytes into lines, however they come in pieces; what is held between pieces is bounded."""

from __future__ import annotations

LONGEST = 1024
"""Bytes of a line that is read; of a longer one only its beginning is kept."""


class LineCutter:
    """Lines end with LF, CR or both. The cuts between pieces leave no trace in the lines."""

    def __init__(self, held: bytes = b"", number: int = 0, after_return: bool = False) -> None:
        self._held, self._number, self._after_return = held, number, after_return

    @property
    def state(self) -> tuple[bytes, int, bool]:
        """What the constructor takes to go on from here."""
        return self._held, self._number, self._after_return

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The lines that are whole now, each with its number from 1; one above `LONGEST` has a byte more than that."""
        if not data:
            return []
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
        self._after_return = data.endswith(b"\r") if data else False
        *whole, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if not whole:
            self._held = (self._held + rest)[: LONGEST + 1]
            return []
        whole[0] = self._held + whole[0]
        self._held = rest[: LONGEST + 1]
        first = self._number + 1
        self._number += len(whole)
        return [(number, line[: LONGEST + 1]) for number, line in enumerate(whole, first)]

    def end(self) -> list[tuple[int, bytes]]:
        """The last line, where nothing ended it."""
        return self.feed(b"\n") if self._held else []

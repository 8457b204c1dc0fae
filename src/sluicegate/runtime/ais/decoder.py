"""Pieces of text from anybody into tuples and dead letters; with all that has to be remembered in between."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from sluicegate.language.check_ais import AisOptions
from sluicegate.policy.model import Stream
from sluicegate.runtime.ais.duplicates import Duplicates
from sluicegate.runtime.ais.lines import LineCutter
from sluicegate.runtime.ais.reader import Dead, Outcome, Reader
from sluicegate.runtime.ais.receivers import Piece
from sluicegate.runtime.ais.rows import Row, RowMaker
from sluicegate.runtime.ais.state import State, restore_line, save_line
from sluicegate.runtime.ais.statics import Statics

MOST_PEERS = 64
"""Senders whose half lines and half messages are kept at once."""


@dataclass(slots=True)
class Decoded:
    """What came out of some pieces, in the order of arrival."""

    rows: list[Row] = field(default_factory=list)
    dead: list[Dead] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rows or self.dead)


@dataclass(slots=True)
class _Line:
    cutter: LineCutter
    reader: Reader


class Decoder:
    """For one stream. Its state is a file's position and what was half there, and what is known of ships."""

    def __init__(self, stream: Stream, options: AisOptions, state: State) -> None:
        statics = Statics(options.remember, state.statics)
        duplicates = Duplicates(int(options.duplicates * 1_000_000), state.seen)
        self._maker = RowMaker(stream, options, statics, duplicates)
        self._maker.last_time = state.last_time
        self._lines: OrderedDict[str | None, _Line] = OrderedDict()
        if state.line is not None:
            self._lines[None] = _Line(*restore_line(state.line))
        self.byte = state.byte

    @property
    def last_time(self) -> int | None:
        """The last time that the log told."""
        return self._maker.last_time

    @property
    def pending(self) -> int:
        """How much has changed since it was last drained, beside positions."""
        return self._maker.statics.changed + self._maker.duplicates.new

    def take(self, piece: Piece, into: Decoded) -> None:
        """Decode a piece; after its sender's last, half of anything is given up."""
        if piece.lost:
            text = f"{piece.lost} bytes".encode()
            into.dead.append(Dead(0, text, "ais-overrun", "more came than could be decoded"))
        line = self._find(piece.peer, into)
        for number, text in line.cutter.feed(piece.data):
            for found in line.reader.read(number, text):
                self._add(found, piece, into)
        if piece.peer is None:
            self.byte += len(piece.data)
        if piece.last:
            self._end(line, piece, into)
            self._lines.pop(piece.peer, None)

    def _find(self, peer: str | None, into: Decoded) -> _Line:
        if peer not in self._lines:
            self._lines[peer] = _Line(LineCutter(), Reader())
        self._lines.move_to_end(peer)
        if len(self._lines) > MOST_PEERS:
            name, oldest = self._lines.popitem(last=False)
            self._end(oldest, Piece(b"", name), into)
        return self._lines[peer]

    def _end(self, line: _Line, piece: Piece, into: Decoded) -> None:
        for number, text in line.cutter.end():
            for found in line.reader.read(number, text):
                self._add(found, piece, into)
        for left in line.reader.end():
            self._add(left, piece, into)

    def _add(self, found: Outcome, piece: Piece, into: Decoded) -> None:
        made = found if isinstance(found, Dead) else self._maker.make(found, piece.now, piece.peer)
        if isinstance(made, Dead):
            # half a message of a kind that is another stream's is not for this one's owner
            into.dead += [made] if self._maker.is_wanted(made.kind) else []
        elif made is not None:
            into.rows.append(made)

    def drain(self) -> State:
        """What has changed since the last call, for the disk."""
        return State(
            self.byte,
            self._maker.last_time,
            self._save_line(),
            self._maker.statics.drain(),
            self._maker.duplicates.drain(),
        )

    def copy(self) -> State:
        """All of it."""
        statics = list(self._maker.statics.all.items())
        return State(self.byte, self._maker.last_time, self._save_line(), statics, self._maker.duplicates.all)

    def _save_line(self) -> dict[str, object] | None:
        """Of a file; who is connected when the process ends has to begin anew."""
        line = self._lines.get(None)
        return None if line is None else save_line(line.cutter, line.reader)

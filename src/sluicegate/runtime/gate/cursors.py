"""Cursors as text: a handle's number, a tick and a row, signed so that nobody makes one up and covered so that nobody reads them."""

from __future__ import annotations

import hashlib
import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.runtime.gate.events import Cursor

_FORM = struct.Struct(">QQQ")
_SIGN = 15


class Position(NamedTuple):
    """The next row to be read, counted within the handle's rows of the tick as they were committed."""

    tick: int
    row: int


START = Position(0, 0)


def write_cursor(key: bytes, number: int, at: Position) -> Cursor:
    body = _FORM.pack(number, at.tick, at.row)
    mark = _sign(key, body)
    return urlsafe_b64encode(mark + _cover(key, mark, body)).decode("ascii")


def read_cursor(key: bytes, number: int, cursor: Cursor) -> Position:
    """The place, or `gate-cursor` for a text that was not given out for this handle."""
    try:
        found = urlsafe_b64decode(cursor.encode("ascii"))
    except ValueError as error:
        raise refuse_cursor() from error
    signature, covered = found[:_SIGN], found[_SIGN:]
    # decoding forgives characters that are none: only the text that was given out is a cursor
    exact = urlsafe_b64encode(found).decode("ascii") == cursor
    if not exact or len(covered) != _FORM.size:
        raise refuse_cursor()
    body = _cover(key, signature, covered)
    if not hmac.compare_digest(signature, _sign(key, body)):
        raise refuse_cursor()
    owner, tick, row = _FORM.unpack(body)
    if owner != number:
        raise refuse_cursor()
    return Position(tick, row)


def _sign(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, b"sign" + body, hashlib.sha256)[:_SIGN]


def _cover(key: bytes, mark: bytes, body: bytes) -> bytes:
    """Ticks count what others are given too, so a cursor shows none; twice gives the body again."""
    pad = hmac.digest(key, b"pad" + mark, hashlib.sha256)
    return bytes(one ^ other for one, other in zip(body, pad, strict=False))


def refuse_cursor() -> DiagnosticError:
    help_ = "start without a cursor, or with one that came with this query's results"
    return DiagnosticError(
        [Diagnostic("gate-cursor", "the cursor does not belong to this query's results", help=help_)]
    )

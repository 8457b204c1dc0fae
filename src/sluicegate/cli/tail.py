"""`sluicegate tail`: the rows of a query at a gateway, as they come, until it ends or somebody stops it."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_json, read_query_text, recover
from sluicegate.cli.remote import add_gateway, open_gateway
from sluicegate.cli.tables import ABSENT, write_value
from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.source import SourceText

if TYPE_CHECKING:
    from sluicegate.client import Event, Handle

NAME = "tail"
SUMMARY = "write the rows of a query at a gateway as they come"
EXAMPLE = """\
  sluicegate tail "SELECT SID, Pos FROM Position"
  sluicegate tail HANDLE --json --count 100"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "a query's handle; or a query, as a file or as text that contains a space"
    parser.add_argument("what", metavar="HANDLE|QUERY", help=told)
    parser.add_argument(
        "--cursor", metavar="CURSOR", type=recover, help="behind it, instead of from the first row kept"
    )
    parser.add_argument("--count", metavar="N", type=int, help="end after so many rows")
    parser.add_argument(
        "--seconds", metavar="S", type=float, help="end with the first sign of life after so long"
    )
    parser.add_argument(
        "--ack", action="store_true", help="tell the gateway that it need not keep what was written"
    )
    add_gateway(parser)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """1 when the query is withdrawn or the session ends, and what came before it has been written."""
    if args.count is not None and args.count < 1:
        raise UsageError("--count takes a number from 1")
    text = _read_query(args.what)
    with open_gateway(args, text) as client:
        handle = client.handle(recover(args.what)) if text is None else client.query(text.text)
        writer = _Writer(console, args.json, args.count)
        try:
            return _follow(handle, writer, args)
        except KeyboardInterrupt:
            return 0
        finally:
            _leave(handle, writer, args.ack)


def _read_query(given: str) -> SourceText | None:
    """None for a handle, which is neither a file nor has a space."""
    is_file = "\0" not in given and Path(given).is_file()
    return read_query_text(given) if is_file or any(char.isspace() for char in given) else None


def _follow(handle: Handle, writer: _Writer, args: argparse.Namespace) -> int:
    until = None if args.seconds is None else time.monotonic() + args.seconds
    for event in handle.events(args.cursor):
        if not writer.take(event) or (until is not None and time.monotonic() >= until):
            break
    return writer.status


def _leave(handle: Handle, writer: _Writer, acknowledges: bool) -> None:
    if acknowledges and writer.cursor is not None:
        handle.ack(writer.cursor)


class _Writer:
    """Events on standard output, what is no row on standard error."""

    def __init__(self, console: Console, as_json: bool, count: int | None) -> None:
        self._console, self._as_json, self._left = console, as_json, count
        self._heads: tuple[str, ...] = ()
        self._told: object = None
        self.cursor: str | None = None
        self.status = 0

    def take(self, event: Event) -> bool:
        """False when there is nothing more to come."""
        from sluicegate.client import Closed, Gap, Notice, Revoked, Rows, Withdrawn

        match event:
            case Rows(rows, cursor):
                return self._write(rows, cursor)
            case Gap():
                self._console.complain("gap: some results between these rows are lost")
            case Notice(told):
                self._notice(told)
            case Withdrawn(reason):
                raise DiagnosticError([Diagnostic("withdrawn", reason)])
            case Revoked(_, reason):
                raise DiagnosticError([Diagnostic("revoked", f"the session has ended: {reason}")])
            case Closed():
                self._console.complain("the query has ended")
                return False
        return True

    def _write(self, rows: Sequence[dict[str, Any]], cursor: str) -> bool:
        shown = rows if self._left is None else rows[: self._left]
        for line in self._lines(shown):
            self._console.write_exact(line) if self._as_json else self._console.write(line)
        self._console.out.flush()
        if len(shown) == len(rows):
            self.cursor = cursor
        if self._left is not None:
            self._left -= len(shown)
        return self._left is None or self._left > 0

    def _lines(self, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
        """Rows have columns of their own width here, since nobody knows how wide the next will be."""
        for row in rows:
            if self._as_json:
                yield json.dumps(row)
                continue
            names = tuple(row)
            if not set(names) <= set(self._heads):
                self._heads = (*self._heads, *(name for name in names if name not in self._heads))
                yield self._console.style("  ".join(self._heads), "dim")
            yield "  ".join(write_value(row[name]) if name in row else ABSENT for name in self._heads)

    def _notice(self, told: dict[str, Any]) -> None:
        """What the query may have, when it is otherwise than was told before."""
        said = (told.get("decision"), tuple(map(str, told.get("notices") or ())))
        if said == self._told:
            return
        self._told = said
        decision, notices = said
        self._console.complain(
            "\n".join([f"{decision} (version {told.get('version')})", *(f"  {each}" for each in notices)])
        )

"""`sluicegate ais`: decode logs of AIS receivers, and make traffic to try things with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sluicegate.cli.ais_simulate import add_simulate, run_simulate
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError

if TYPE_CHECKING:
    from sluicegate.runtime.ais.reader import Dead, Outcome

NAME = "ais"
SUMMARY = "decode logs of AIS receivers, or make the sentences of a port's traffic"
EXAMPLE = """\
  sluicegate ais decode receiver.log > messages.jsonl
  nc receiver 10110 | sluicegate ais decode -
  sluicegate ais simulate --ships 300 --seconds 60 --file port.nmea
  sluicegate ais simulate --tcp 10110"""

_PIECE = 1 << 16
_SHOWN = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    told = (
        "print one JSON object a message, with pyais' field names; what is no message goes to standard error"
    )
    decoding = actions.add_parser(
        "decode", help=told, description=f"{told.capitalize()}.", allow_abbrev=False
    )
    decoding.add_argument("file", metavar="FILE", help="a file of sentences, or `-` for standard input")
    add_simulate(actions)


def run(args: argparse.Namespace, console: Console) -> int:
    ways = {"decode": _decode, "simulate": run_simulate}
    return ways[args.action](args, console)


def _decode(args: argparse.Namespace, console: Console) -> int:
    """Exit status 1 where anything became a dead letter."""
    from sluicegate.runtime.ais.decode import decode_message, load_pyais, write_fields
    from sluicegate.runtime.ais.reader import Dead

    load_pyais()
    dead = 0
    with _open(args.file) as file:
        for piece in _read(file):
            for found in piece:
                decoded = found if isinstance(found, Dead) else decode_message(found)
                if isinstance(decoded, Dead):
                    dead += 1
                    console.complain(_tell(decoded))
                elif not isinstance(found, Dead):
                    console.write_exact(write_fields(decoded, found.time))
            # a pipe shows what it has
            console.out.flush()
    return 1 if dead else 0


def _open(given: str) -> AbstractContextManager[IO[bytes]]:
    if given == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(given).open("rb", buffering=0)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no such file"
        raise UsageError(f"`{given}` cannot be read: {reason}") from None


def _read(file: IO[bytes]) -> Iterator[list[Outcome]]:
    """What each piece of the file brings to its end."""
    from sluicegate.runtime.ais.lines import LineCutter
    from sluicegate.runtime.ais.reader import Reader

    cutter, reader = LineCutter(), Reader()
    # a pipe gives what it has, and does not wait for the rest
    take: Callable[[int], bytes] = getattr(file, "read1", file.read)
    while piece := take(_PIECE):
        yield [found for number, line in cutter.feed(piece) for found in reader.read(number, line)]
    last = [found for number, line in cutter.end() for found in reader.read(number, line)]
    yield [*last, *reader.end()]


def _tell(dead: Dead) -> str:
    text = dead.raw[:_SHOWN].decode("ascii", "backslashreplace").replace("\n", " ")
    return f"line {dead.line}: {dead.code}: {dead.reason}: {text}"

"""`sluicegate ais simulate`: a port's traffic as real sentences, to a file, standard output or the network."""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, read_moment

MOST_SHIPS = 5_000
Send: TypeAlias = Callable[[bytes], None]
_SEND_WITHIN = 5.0


def add_simulate(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    told = "write the sentences that ships around the Singapore Strait would send"
    parser = actions.add_parser(
        "simulate", help=told, description=f"{told.capitalize()}.", allow_abbrev=False
    )
    parser.add_argument("--ships", metavar="N", type=int, default=300, help="how many ships (300)")
    parser.add_argument(
        "--seed", metavar="S", type=int, default=0, help="the same seed gives the same ships (0)"
    )
    told = "seconds of traffic; until Ctrl-C unless given"
    parser.add_argument("--seconds", metavar="T", type=float, help=told)
    told = "seconds of traffic that a second brings (1); 0: as fast as can be"
    parser.add_argument("--speed", metavar="X", type=float, default=1.0, help=told)
    parser.add_argument(
        "--at", metavar="TIMESTAMP", help="when it begins, such as 2026-03-01T09:00:00Z; else now"
    )
    where = parser.add_mutually_exclusive_group()
    told = "wait for connections on this port of this machine, and send to all that are there"
    where.add_argument("--tcp", metavar="PORT", type=int, help=told)
    where.add_argument("--udp", metavar="HOST:PORT", help="send datagrams there, one for each message")
    where.add_argument("--file", metavar="F", help="write to a file; else to standard output")


def run_simulate(args: argparse.Namespace, console: Console) -> int:
    from sluicegate.runtime.ais.decode import load_pyais
    from sluicegate.testing.port_traffic.traffic import PortTraffic

    _check(args)
    load_pyais()
    traffic = PortTraffic(args.ships, args.seed, read_moment(args.at))
    with _open(args, console) as send:
        began, first = time.monotonic(), None
        for report in traffic.run(args.seconds):
            first = report.time if first is None else first
            if args.speed:
                due = began + (report.time - first) / args.speed
                time.sleep(max(0.0, due - time.monotonic()))
            send(report.lines)
    return 0


def _check(args: argparse.Namespace) -> None:
    if not 1 <= args.ships <= MOST_SHIPS:
        raise UsageError(f"`--ships` takes a number from 1 to {MOST_SHIPS:,}")
    if not 0 <= args.speed <= 1e6:
        raise UsageError("`--speed` takes a number from 0 to 1,000,000")
    if args.seconds is not None and not 0 < args.seconds <= 1e9:
        raise UsageError("`--seconds` takes a number above 0")


@contextmanager
def _open(args: argparse.Namespace, console: Console) -> Iterator[Send]:
    """Where the lines go."""
    try:
        if args.tcp is not None:
            with Callers(args.tcp) as callers:
                yield callers.send
        elif args.udp is not None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                target = _read_address(args.udp)
                yield lambda lines: _send_datagram(sender, lines, target)
        elif args.file is not None:
            with Path(args.file).open("wb") as file:
                yield lambda lines: _write(file.write, lines)
        else:
            yield lambda lines: _print(console, lines)
    except (OSError, OverflowError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        reason = getattr(error, "strerror", None) or "no such place"
        raise UsageError(f"the sentences cannot be sent: {reason}") from None


def _print(console: Console, lines: bytes) -> None:
    console.out.write(lines.decode("ascii").replace("\r\n", "\n"))
    console.out.flush()


def _write(write: Callable[[bytes], int], lines: bytes) -> None:
    write(lines)


def _send_datagram(sender: socket.socket, lines: bytes, target: tuple[str, int]) -> None:
    """Nobody need listen."""
    with suppress(ConnectionRefusedError):
        sender.sendto(lines, target)


def _read_address(given: str) -> tuple[str, int]:
    host, colon, port = given.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit():
        raise UsageError(f"`{given}` is not `host:port`")
    return host, int(port)


class Callers:
    """Whoever is connected at the time; each is greeted with what it would else wait for."""

    def __init__(self, port: int, greet: Callable[[], bytes] = lambda: b"") -> None:
        self._server = socket.create_server(("127.0.0.1", port))
        self._server.setblocking(False)
        self._greet = greet
        self._callers: list[socket.socket] = []

    @property
    def port(self) -> int:
        return int(self._server.getsockname()[1])

    def accept(self) -> None:
        """Whoever has called since."""
        with suppress(BlockingIOError):
            while True:
                caller, _ = self._server.accept()
                caller.settimeout(_SEND_WITHIN)
                self._callers.append(caller)
                self._send(caller, self._greet())

    def send(self, lines: bytes) -> None:
        self.accept()
        for caller in list(self._callers):
            self._send(caller, lines)

    def _send(self, caller: socket.socket, lines: bytes) -> None:
        try:
            caller.sendall(lines)
        except OSError:
            self._callers.remove(caller)
            caller.close()

    def __enter__(self) -> Callers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for each in (*self._callers, self._server):
            each.close()

"""`sluicegate serve`: the gateway, until it is told to stop."""

from __future__ import annotations

import argparse
import json
import logging
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_catalog, find_catalog
from sluicegate.cli.sessions import add_master, open_session
from sluicegate.service.listening import open_listener
from sluicegate.service.settings import Settings, read_settings

if TYPE_CHECKING:
    from sluicegate.service.gateway import Gateway

NAME = "serve"
SUMMARY = "serve queries, results and changes of a catalog over HTTP"
EXAMPLE = """\
  sluicegate serve examples/soldiers --store sqlite:///sluicegate.db --state state
  sluicegate serve examples/soldiers --settings gateway.toml --port 8765"""

FIRST_PASSWORD = "first-password"  # noqa: S105 -- the name of a file
_FIELDS = ("request", "method", "route", "status", "seconds")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    parser.add_argument(
        "--settings", metavar="FILE", help="a TOML file; docs/settings.md lists what it may have"
    )
    parser.add_argument("--store", metavar="URL", help="sqlite:///FILE, a file, or postgresql://…")
    parser.add_argument("--state", metavar="DIR", help="the folder of logs and results")
    add_master(parser)
    parser.add_argument("--host", metavar="ADDRESS", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, help="the port (8765); 0 for any that is free")


def run(args: argparse.Namespace, console: Console) -> int:
    """Serves until it is interrupted; a half-read catalog or a store that is away ends it at once (bypass 13, 14)."""
    folder = find_catalog(args.catalog)
    given = {name: getattr(args, name) for name in ("store", "state", "master", "host", "port")}
    settings = read_settings(Path(args.settings) if args.settings else None, None, given)
    start_logging(settings.log_level)
    os.umask(0o077)
    with ExitStack() as stack:
        gateway, differs = open_served(settings, folder, stack)
        if differs:
            told = f"warning: the folder differs from the store by {_count(len(differs))}; the store counts"
            console.complain(f"{told} (`sluicegate plan` shows them)")
        for user, path in make_first_passwords(gateway, Path(settings.state)):
            console.complain(f"a first password for `{user}` is in {path}")
        serve(gateway, settings, lambda url: _tell(console, url))
    return 0


def _count(statements: int) -> str:
    return f"{statements} statement{'' if statements == 1 else 's'}"


def _tell(console: Console, url: str) -> None:
    console.write(f"serving on {url}")
    console.out.flush()


def open_served(settings: Settings, folder: Path, stack: ExitStack) -> tuple[Gateway, tuple[str, ...]]:
    """A gateway over Spark; the stack stops Spark. Statements by which the folder differs from the store."""
    try:
        from sluicegate.service.opening import open_gateway
    except ImportError as error:
        raise UsageError(
            "this needs the gateway's libraries: pip install 'sluicegate[service,spark]'"
        ) from error
    from sluicegate.policy.catalog import Catalog
    from sluicegate.runtime.engine import Engine
    from sluicegate.runtime.rehearse import Rehearsal

    state = Path(settings.state)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    state.chmod(0o700)
    spark = open_session(settings, stack)
    stack.callback(Rehearsal(spark).stop)
    keep = round(settings.keep_seconds * 1_000_000)

    def make_engine(catalog: Catalog) -> Engine:
        engine = Engine(
            spark,
            catalog,
            state / "engine",
            keep=keep,
            push=True,
            result_bytes=settings.keep_result_bytes,
            manner=settings.manner,
        )
        engine.feeds.revive()
        return engine

    return open_gateway(settings, make_engine, folder)


def serve(gateway: Gateway, settings: Settings, tell: Callable[[str], None]) -> None:
    """Answer requests until a signal says otherwise; `tell` is called with the address as soon as it takes requests."""
    from sluicegate.service.app import create_app
    from sluicegate.service.server import GatewayServer, outlive_termination

    server = GatewayServer(create_app(settings, gateway), settings.host, settings.port)
    listener = _listen(settings)
    host, port = listener.getsockname()[:2]
    tell(f"http://{f'[{host}]' if ':' in host else host}:{port}")
    with outlive_termination():
        server.run(sockets=[listener])


def _listen(settings: Settings) -> socket.socket:
    try:
        return open_listener(settings.host, settings.port)
    except OSError as error:
        raise UsageError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error


def make_first_passwords(gateway: Gateway, state: Path) -> list[tuple[str, Path]]:
    """Administrators by name who have no password get one, in a file that only this user may read."""
    accounts = gateway.authenticator.accounts
    made: list[tuple[str, Path]] = []
    for user in gateway.settings.administrators:
        if user in gateway.catalog.users and user not in accounts.passwords.users():
            password = secrets.token_urlsafe(18)
            if accounts.set_password(user, password) is None:
                path = state / f"{FIRST_PASSWORD}-{len(made)}"
                path.unlink(missing_ok=True)
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(f"{user} {password}\n")
                made.append((user, path))
    return made


class JsonLines(logging.Formatter):
    """A line of JSON for each record; of an error its class and place, never a text that may carry values."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            trace = record.exc_info[2]
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            if trace is not None:
                line["place"] = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        return json.dumps(line)


def start_logging(level: str) -> None:
    """JSON to standard error, for all loggers of this process."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("py4j", "pyspark", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.ERROR)

"""The gateway of `sluicegate demo`: embedded defaults, this machine only, accounts that last for one run."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from sluicegate.cli.console import Console
from sluicegate.cli.demo_explain import find_example
from sluicegate.cli.demo_traffic import Traffic
from sluicegate.cli.inputs import UsageError
from sluicegate.cli.serve import open_served, serve, start_logging
from sluicegate.cli.tables import draw_table

if TYPE_CHECKING:
    from sluicegate.service.gateway import Gateway

ACCOUNTS = {
    "ada": "administers: grants, accounts, the audit log; reads no stream",
    "paul": "a medic: soldiers of platoon X, averages of the others",
    "nina": "a nurse: the beds of the east room, averages of the ward",
}
WRITER = "sensors"
HOST, PORT = "127.0.0.1", 8765
TO_TRY = """\
in a second terminal, rows as they come:
  $command login $url --user paul
  $command tail "SELECT ts, SID, Pos FROM Position" --as paul
in a third, end that:
  $command login $url --user ada
  $command revoke own_platoon --as ada --reason "the exercise is over"
and let it be again:
  $command grant own_platoon "READ (ts, SID, Pos) ON Position WHERE Platoon = self.Platoon TO Medic" --as ada
more to try, after `login` as nina:
  $command tail "SELECT AVG(Temperature) FROM Ward [RANGE 10 SECONDS]" --as nina
  $command who Position --as ada
  $command audit search --url $url --as ada

Ctrl-C ends it"""


def serve_demo(console: Console, port: int | None, state: Path | None, seconds: float | None) -> int:
    """Serves until Ctrl-C, or for so many seconds."""
    from sluicegate.service.settings import read_settings

    chosen = find_port(port)
    console.complain("starting: Spark needs some seconds")
    with ExitStack() as stack:
        folder = state or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluicegate-demo-")))
        os.umask(0o077)
        folder.mkdir(parents=True, exist_ok=True)
        given = {
            "host": HOST,
            "port": chosen,
            "store": str(folder / "store.db"),
            "state": str(folder / "state"),
            "administrators": ("ada",),
            "log_level": "error",
        }
        settings = read_settings(None, {}, given)
        start_logging(settings.log_level)
        gateway, _ = open_served(settings, find_example("demo"), stack)
        passwords = make_passwords(gateway)
        show = _Show(console, passwords, seconds, state is not None)
        stack.callback(show.stop)
        try:
            serve(gateway, settings, show.begin)
        except KeyboardInterrupt:
            console.complain("stopped")
    return 0


def find_port(given: int | None) -> int:
    """The one asked for; else the usual one, or one that is free."""
    if given is not None and not 0 <= given < 65_536:
        raise UsageError("--port takes a number below 65536")
    if given is not None:
        return given
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, PORT))
        except OSError:
            return 0
    return PORT


def make_passwords(gateway: Gateway) -> dict[str, str]:
    """New ones for every run, also where the state is kept; of the writer too, which nobody is told."""
    made = {user: secrets.token_urlsafe(9) for user in (*ACCOUNTS, WRITER)}
    for user, password in made.items():
        refused = gateway.authenticator.accounts.set_password(user, password)
        if refused is not None:
            raise UsageError(f"the demo's account `{user}` cannot be made: {refused.message}")
    return made


class _Show:
    """What is told, and the traffic, once the gateway takes requests."""

    def __init__(
        self, console: Console, passwords: dict[str, str], seconds: float | None, is_kept: bool
    ) -> None:
        self._console, self._passwords, self._is_kept = console, passwords, is_kept
        self._seconds = seconds
        self._traffic: Traffic | None = None
        self._timer: threading.Timer | None = None

    def begin(self, url: str) -> None:
        from sluicegate.client import Client

        self._traffic = Traffic(Client(url), WRITER, self._passwords[WRITER])
        self._traffic.start()
        if self._seconds is not None:
            self._timer = threading.Timer(self._seconds, signal.raise_signal, [signal.SIGINT])
            self._timer.daemon = True
            self._timer.start()
        self._console.write(self._introduce(url))
        self._console.out.flush()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._traffic is not None:
            self._traffic.stop()

    def _introduce(self, url: str) -> str:
        rows = [[user, self._passwords[user], told] for user, told in ACCOUNTS.items()]
        return "\n".join(
            [
                self._console.style(f"serving on {url}", "bold")
                + ("" if self._is_kept else "; nothing of it is kept"),
                "",
                draw_table(self._console, ["account", "password of this run", "what it is"], rows),
                "",
                Template(TO_TRY).substitute(command=find_command(), url=url),
            ]
        )


def find_command() -> str:
    """How this program is called from a shell."""
    if shutil.which("sluicegate"):
        return "sluicegate"
    own = Path(sys.argv[0])
    return str(own) if own.name == "sluicegate" else f"{sys.executable} -m sluicegate"

"""The gateway of `sluicegate demo`: embedded defaults, this machine only, accounts that last for one run."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from string import Template

from sluicegate.cli.console import Console
from sluicegate.cli.demo_port import (
    ACCOUNTS,
    ADMINISTRATOR,
    find_receiver,
    make_passwords,
    save_queries,
    write_catalog,
    write_voyages,
)
from sluicegate.cli.demo_traffic import Radio
from sluicegate.cli.inputs import UsageError
from sluicegate.cli.serve import open_served, serve, start_logging
from sluicegate.cli.tables import draw_table

HOST, PORT = "127.0.0.1", 8765
TO_TRY = """\
in the browser, sign in as harbour, acme and vega, each in a tab of its own: on the page Query, open the saved query Ships and
run it. As ada, drop the grant own_fleet on the page Policies, and acme's ships are gone.

the same in a second terminal, rows as they come:
  $command login $url --user acme
  $command tail "SELECT SID, Name, Long, Lat FROM AIS" --as acme
in a third, end that:
  $command login $url --user ada
  $command revoke own_fleet --as ada --reason "the contract is over"
and let it be again:
  $command grant own_fleet "READ (*) ON AIS WHERE SID IN fleet(self.Company) TO ShipCompany" --as ada
more to try, after `login` as harbour:
  $command tail "SELECT COUNT(DISTINCT SID) AS ships FROM AIS [RANGE 20 SECONDS]" --as harbour
  $command who AIS.Name --as ada
  $command audit search --url $url --as ada

Ctrl-C ends it"""


def serve_demo(
    console: Console, port: int | None, state: Path | None, seconds: float | None, browse: bool
) -> int:
    """Serves until Ctrl-C, or for so many seconds."""
    from sluicegate.service.settings import read_settings

    chosen = find_port(port)
    console.complain("starting: Spark needs some seconds")
    with ExitStack() as stack:
        folder = state or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluicegate-demo-")))
        os.umask(0o077)
        folder.mkdir(parents=True, exist_ok=True)
        radio = Radio(find_receiver(folder))
        stack.callback(radio.stop)
        write_voyages(folder, radio)
        given = {
            "host": HOST,
            "port": chosen,
            "store": str(folder / "store.db"),
            "state": str(folder / "state"),
            "administrators": (ADMINISTRATOR,),
            "log_level": "error",
        }
        settings = read_settings(None, {}, given)
        start_logging(settings.log_level)
        gateway, _ = open_served(settings, write_catalog(folder, radio.port), stack)
        save_queries(gateway)
        show = _Show(console, make_passwords(gateway), radio, seconds, state is not None, browse)
        stack.callback(show.stop)
        try:
            serve(gateway, settings, show.begin)
        except KeyboardInterrupt:
            console.complain("stopped")
    return 0


def find_port(given: int | None) -> int:
    """The one asked for, which has to be free; else the usual one, or one that is free."""
    if given is not None and not 0 <= given < 65_536:
        raise UsageError("--port takes a number below 65536")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, PORT if given is None else given))
        except OSError as error:
            if given is None:
                return 0
            told = f"cannot listen on {HOST}:{given}: {error.strerror}; without --port, a free one is found"
            raise UsageError(told) from error
    return PORT if given is None else given


def has_display() -> bool:
    """Whether a window can be opened here; a browser in a terminal would take that from us."""
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


class _Show:
    """What is told, and the ships, once the gateway takes requests."""

    def __init__(
        self,
        console: Console,
        passwords: dict[str, str],
        radio: Radio,
        seconds: float | None,
        is_kept: bool,
        browse: bool,
    ) -> None:
        self._console, self._passwords, self._is_kept = console, passwords, is_kept
        self._radio, self._seconds, self._browse = radio, seconds, browse
        self._timer: threading.Timer | None = None

    def begin(self, url: str) -> None:
        self._radio.start()
        if self._seconds is not None:
            self._timer = threading.Timer(self._seconds, signal.raise_signal, [signal.SIGINT])
            self._timer.daemon = True
            self._timer.start()
        self._console.write(self._introduce(url))
        self._console.out.flush()
        if self._browse and has_display():
            threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

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

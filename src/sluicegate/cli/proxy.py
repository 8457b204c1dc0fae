"""`sluicegate proxy`: one address for several gateways, which remembers the handles of queries."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Callable
from importlib.util import find_spec

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, recover
from sluicegate.cli.remote import ALLOW_HTTP
from sluicegate.cli.serve import start_logging
from sluicegate.service.listening import open_listener
from sluicegate.service.proxy.settings import ProxySettings

NAME = "proxy"
SUMMARY = "pass queries and results on to the gateways that have their streams, with a memory for handles"
EXAMPLE = """\
  sluicegate proxy --gateway http://127.0.0.1:8765
  sluicegate proxy --gateway https://west.example --gateway https://east.example --port 8766"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "a gateway's address; again for each further one. All of them get to see what callers sign in with"
    parser.add_argument(
        "--gateway", metavar="URL", type=recover, action="append", required=True, dest="gateways", help=told
    )
    parser.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1", help="the address to listen on (127.0.0.1)"
    )
    parser.add_argument(
        "--port", metavar="N", type=int, default=8766, help="the port (8766); 0 for any that is free"
    )


def run(args: argparse.Namespace, console: Console) -> int:
    """Serves until it is interrupted."""
    settings = ProxySettings(tuple(_check(url) for url in args.gateways))
    start_logging("info")
    serve_proxy(settings, args.host, args.port, lambda url: _tell(console, url))
    return 0


def _check(url: str) -> str:
    """As the client does: what callers sign in with goes over TLS, or stays on this machine."""
    if any(find_spec(each) is None for each in ("httpx", "fastapi", "uvicorn")):
        raise UsageError("this needs more libraries: pip install 'sluicegate[service,client]'")
    from sluicegate.client import UnsafeAddressError
    from sluicegate.client.transport import check_address

    try:
        return str(check_address(url, os.environ.get(ALLOW_HTTP) == "1"))
    except UnsafeAddressError as error:
        raise UsageError(f"{error.message}{f'; {error.help}' if error.help else ''}") from None


def serve_proxy(settings: ProxySettings, host: str, port: int, tell: Callable[[str], None]) -> None:
    """Answer requests until a signal says otherwise; `tell` is called with the address as soon as it takes requests."""
    from sluicegate.service.proxy.app import create_proxy
    from sluicegate.service.server import GatewayServer, outlive_termination

    listener = _listen(host, port)
    server = GatewayServer(create_proxy(settings), host, port)
    found, at = listener.getsockname()[:2]
    tell(f"http://{f'[{found}]' if ':' in found else found}:{at}")
    with outlive_termination():
        server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return open_listener(host, port)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error


def _tell(console: Console, url: str) -> None:
    console.write(f"passing on from {url}")
    console.out.flush()

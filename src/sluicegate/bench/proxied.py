"""`python -m sluicegate.bench.proxied URL`: a proxy in a process of its own, in front of a gateway that is timed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sluicegate.bench.asker import NotAnsweredError

_MANY = 1e9


@contextmanager
def open_proxy(gateway: str) -> Iterator[str]:
    """Its address, until the end of the block."""
    command = [sys.executable, "-m", "sluicegate.bench.proxied", gateway]
    # this Python, and a module of ours
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
            if not line.startswith("http://"):
                raise NotAnsweredError("the proxy did not begin")
            yield line.strip()
        finally:
            process.terminate()
            process.wait()


def main() -> int:
    """Serve until it is ended; one caller stands for all users, so it is not to be slowed down."""
    from sluicegate.service.listening import open_listener
    from sluicegate.service.proxy.app import create_proxy
    from sluicegate.service.proxy.settings import ProxySettings
    from sluicegate.service.server import GatewayServer

    settings = ProxySettings((sys.argv[1],), client_rate=_MANY, client_burst=_MANY)
    listener = open_listener("127.0.0.1", 0)
    server = GatewayServer(create_proxy(settings), "127.0.0.1", 0)
    sys.stdout.write(f"http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    server.run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The HTTP server around the application: what is followed ends first, so that it can end in order."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

GRACE_SECONDS = 3


class GatewayServer(uvicorn.Server):
    """Serves until it is told to stop. Followers are let go before anything is waited for: they would never end."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                log_config=None,
                access_log=False,
                # a header that anybody can write must not say where a request comes from (bypass 31)
                proxy_headers=False,
                server_header=False,
                h11_max_incomplete_event_size=32_768,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=GRACE_SECONDS,
                ws="none",
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.state.delivery.stop()
        await super().shutdown(sockets)


@contextmanager
def outlive_termination() -> Iterator[None]:
    """SIGTERM ends what serves, and not the process before it has tidied up: uvicorn sends it to itself once more."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

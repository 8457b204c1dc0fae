"""The socket that the gateway listens on."""

from __future__ import annotations

import socket

_BACKLOG = 512


def open_listener(host: str, port: int) -> socket.socket:
    """Its connections send what there is at once: held back until what was sent before is acknowledged, the last part of
    a short answer would come 40 ms later. asyncio sees to that only where a socket names its protocol, and these do not.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener

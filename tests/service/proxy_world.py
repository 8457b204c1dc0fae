"""A proxy that listens on a port of this machine, in front of gateways that do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from service.gateway_world import World, wait_until
from sluicegate.service.proxy.app import Proxy, create_proxy
from sluicegate.service.proxy.settings import ProxySettings
from sluicegate.service.server import GatewayServer


class ProxyWorld(World):
    """The words of a gateway's world, said to the proxy; tokens are those that the gateways gave."""

    def __init__(self, proxy: Proxy, url: str, front: World) -> None:
        super().__init__(front.gateway, url)
        self.proxy = proxy


@contextmanager
def serve_proxy(*gateways: World, **more: Any) -> Iterator[ProxyWorld]:
    app = create_proxy(ProxySettings(tuple(each.url for each in gateways), **more))
    listener = socket.create_server(("127.0.0.1", 0))
    server = GatewayServer(app, "127.0.0.1", 0)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        assert server.started
        yield ProxyWorld(app.state.proxy, f"http://127.0.0.1:{listener.getsockname()[1]}", gateways[0])
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()

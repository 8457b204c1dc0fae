"""A way to the server that can be cut or frozen, as a network is."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


class Proxy:
    """Listens on a socket in a folder of its own and passes bytes on to the server's, until told otherwise."""

    def __init__(self, url: str, folder: Path) -> None:
        self._server = parse_qs(urlsplit(url).query)["host"][0]
        self.url = url.replace(self._server, str(folder))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.frozen = threading.Event()
        self.is_cut = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close what is open and take nothing new."""
        self.is_cut.set()
        for pair in self._pairs:
            for each in pair:
                # one end may just have closed it
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._pairs.clear()
        self.is_cut.clear()
        self.frozen.clear()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self.is_cut.is_set():
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{self._server}/.s.PGSQL.5432")
            self._pairs.append((client, server))
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with selectors.DefaultSelector() as ready, client, server:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if not data:
                        return
                    while self.frozen.is_set():
                        threading.Event().wait(0.01)
                    key.data.sendall(data)

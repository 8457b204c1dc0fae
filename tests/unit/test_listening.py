"""What the gateway sends leaves at once."""

from __future__ import annotations

import socket

from sluicegate.service.listening import open_listener


def test_connections_do_not_hold_back_the_end_of_an_answer() -> None:
    with (
        open_listener("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

"""Sentences from the network: one socket for an address, whoever of the feeds listens to it."""

from __future__ import annotations

import logging
import queue
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from sluicegate.runtime.ais.rows import read_clock
from sluicegate.runtime.feed.codes import refuse_feed

LARGEST_BACKLOG = 32 << 20
"""Bytes that wait for one feed; what comes beyond is lost, and told."""
MOST_CALLERS = 64
_PIECE = 1 << 16
_BEAT = 0.2
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
# whoever is gone without a word is found out after two minutes of silence
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes as they came: from whom, when, whether more can follow, how many before them were lost; or the end of all."""

    data: bytes
    peer: str | None = None
    now: int | None = None
    last: bool = False
    lost: int = 0
    broken: bool = False


class Subscription:
    """What has come for one feed."""

    def __init__(self, leave: Callable[[Subscription], None]) -> None:
        self._leave = leave
        self._pieces: queue.SimpleQueue[Piece] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = self._lost = 0

    def put(self, piece: Piece) -> None:
        with self._lock:
            if self._waiting + len(piece.data) > LARGEST_BACKLOG:
                self._lost += len(piece.data)
                return
            self._waiting += len(piece.data)
            lost, self._lost = self._lost, 0
        self._pieces.put(replace(piece, lost=lost) if lost else piece)

    def take(self) -> list[Piece]:
        """Everything that is there."""
        found: list[Piece] = []
        with suppress(queue.Empty):
            while True:
                found.append(self._pieces.get_nowait())
        with self._lock:
            self._waiting -= sum(len(each.data) for each in found)
        return found

    def close(self) -> None:
        self._leave(self)


class Receivers:
    """The sockets that are open, by how they are read and their address."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[str, tuple[str, int]], _Receiver] = {}

    def join(self, source: str, address: tuple[str, int]) -> Subscription:
        """From now on; what was sent before is gone."""
        with self._lock:
            key = (source, address)
            if key not in self._open:
                self._open[key] = _Receiver(source, address)
            joined = Subscription(lambda subscription: self._leave(key, subscription))
            self._open[key].subscriptions += (joined,)
            return joined

    def _leave(self, key: tuple[str, tuple[str, int]], subscription: Subscription) -> None:
        with self._lock:
            receiver = self._open.get(key)
            if receiver is None:
                return
            left = tuple(each for each in receiver.subscriptions if each is not subscription)
            receiver.subscriptions = left
            if not left:
                del self._open[key]
                receiver.stop()


class _Receiver:
    """A thread with one address; what it reads goes to everybody who listens."""

    def __init__(self, source: str, address: tuple[str, int]) -> None:
        self.subscriptions: tuple[Subscription, ...] = ()
        self._address, self._stopping = address, threading.Event()
        self._callers: dict[socket.socket, str] = {}
        """Their addresses, whoever was silent longest first."""
        self._socket = None if source == "tcp" else _bind(source, address)
        run = {"tcp": self._call, "listen": self._listen, "udp": self._take_datagrams}[source]
        self._thread = threading.Thread(target=self._guard, args=(run,), name=f"ais-{source}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=5)

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:
            _LOGGER.warning("a receiver of AIS has stopped", exc_info=error)
            for each in self.subscriptions:
                each.put(Piece(b"", broken=True))
        finally:
            if self._socket is not None:
                self._socket.close()

    def _publish(self, data: bytes, peer: str, last: bool = False) -> None:
        piece = Piece(data, peer, read_clock(), last)
        for each in self.subscriptions:
            each.put(piece)

    def _call(self) -> None:
        wait = _FIRST_WAIT
        while not self._stopping.is_set():
            try:
                with socket.create_connection(self._address, timeout=5) as connected:
                    wait = _FIRST_WAIT
                    _keep_alive(connected)
                    self._follow(connected)
            except OSError as error:
                _LOGGER.debug("no connection to a source of AIS", exc_info=error)
            self._stopping.wait(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    def _follow(self, connected: socket.socket) -> None:
        """Until the other side ends it; a line that it cut off is ended here."""
        connected.settimeout(_BEAT)
        peer = f"{self._address[0]}:{self._address[1]}"
        try:
            while not self._stopping.is_set():
                with suppress(TimeoutError):
                    data = connected.recv(_PIECE)
                    if not data:
                        return
                    self._publish(data, peer)
        finally:
            self._publish(b"", peer, last=True)

    def _listen(self) -> None:
        assert self._socket is not None
        self._socket.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            try:
                while not self._stopping.is_set():
                    for key, _ in selector.select(_BEAT):
                        if key.fileobj is self._socket:
                            self._accept(selector, self._socket)
                        # it may have been dropped for another since it was selected
                        elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._callers:
                            self._serve(selector, key.fileobj)
            finally:
                for caller in list(self._callers):
                    self._drop(selector, caller)

    def _accept(self, selector: selectors.BaseSelector, bound: socket.socket) -> None:
        """Everybody is let in: where there are too many, in the place of whoever was silent longest."""
        try:
            caller, address = bound.accept()
        except OSError:
            return
        try:
            caller.setblocking(False)
            _keep_alive(caller)
        except OSError:
            caller.close()
            return
        if len(self._callers) >= MOST_CALLERS:
            self._drop(selector, next(iter(self._callers)))
        selector.register(caller, selectors.EVENT_READ)
        self._callers[caller] = f"{address[0]}:{address[1]}"

    def _serve(self, selector: selectors.BaseSelector, caller: socket.socket) -> None:
        try:
            data = caller.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(selector, caller)
            return
        peer = self._callers.pop(caller)
        self._callers[caller] = peer
        self._publish(data, peer)

    def _drop(self, selector: selectors.BaseSelector, caller: socket.socket) -> None:
        selector.unregister(caller)
        caller.close()
        self._publish(b"", self._callers.pop(caller), last=True)

    def _take_datagrams(self) -> None:
        assert self._socket is not None
        self._socket.settimeout(_BEAT)
        while not self._stopping.is_set():
            with suppress(TimeoutError, ConnectionError):
                data, address = self._socket.recvfrom(_PIECE)
                # a datagram ends where its last line does
                self._publish(data if data.endswith(b"\n") else data + b"\n", f"{address[0]}:{address[1]}")


def _keep_alive(connected: socket.socket) -> None:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        # not every system has them all
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _bind(source: str, address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        if source == "listen":
            return socket.create_server(address, family=family)
        bound = socket.socket(family, socket.SOCK_DGRAM)
        try:
            bound.bind(address)
        except OSError:
            bound.close()
            raise
        return bound
    except OSError:
        message = f"nothing can listen on port {address[1]} as `{source}`: it is taken, or not this machine's"
        raise refuse_feed("feed-failed", message) from None

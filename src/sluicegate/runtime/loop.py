"""The thread that ticks: whenever something came in, for as long as there is anything to do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_LOGGER = logging.getLogger(__name__)
_PAUSE = 1.0


class Loop:
    """Calls `tick`, which says whether anything moved, from `start` to `stop`."""

    def __init__(self, tick: Callable[[], bool]) -> None:
        self._tick = tick
        self._news, self._stopping = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: str | None = None
        """That the last tick failed; why is in the log alone."""

    def wake(self) -> None:
        self._news.set()

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sluicegate-network", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """When it returns no tick runs, nor will one."""
        self._stopping.set()
        self.wake()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._news.wait(_PAUSE)
            self._news.clear()
            try:
                while not self._stopping.is_set() and self._tick():
                    pass
            except Exception:
                # Spark's text may carry values: it goes to the operator's log, the reason to nobody else
                _LOGGER.exception("a tick failed; it is tried again")
                self.failure = "a tick failed"
                self._stopping.wait(_PAUSE)
            else:
                self.failure = None

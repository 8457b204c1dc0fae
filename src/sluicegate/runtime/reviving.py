"""Feeds that stopped by themselves are started again, where nobody else watches them: a full disk or a lost worker passes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluicegate.runtime.feed.ingest import Ingest

_LOGGER = logging.getLogger(__name__)
_BEAT = 0.5
SHORTEST, LONGEST = 1.0, 60.0
"""Seconds before the first try, and after many."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """A pause, and when it is over; or the last one, and when the feed was tried after it."""

    pause: float
    moment: float
    waits: bool


class Reviver:
    """Looks at the feeds until `stop`; each is tried again after a pause that doubles as long as it keeps failing."""

    def __init__(self, feeds: Callable[[], Mapping[str, object]]) -> None:
        self._feeds, self._over = feeds, threading.Event()
        self._trials: dict[str, _Trial] = {}
        self._thread = threading.Thread(target=self._run, name="sluicegate-reviver", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """When it returns no feed is started by it."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_BEAT):
            for name, feed in list(self._feeds().items()):
                if isinstance(feed, Ingest):
                    self._look(name, feed)

    def _look(self, name: str, feed: Ingest) -> None:
        now, trial = time.monotonic(), self._trials.get(name)
        if not feed.may_pass:
            if trial is not None and not trial.waits and now > trial.moment + LONGEST:
                # it has run for long enough
                del self._trials[name]
        elif trial is None or not trial.waits:
            pause = SHORTEST if trial is None else min(LONGEST, 2 * trial.pause)
            self._trials[name] = _Trial(pause, now + pause, waits=True)
            _LOGGER.warning("the feed of %s has stopped by itself; it is tried again in %g s", name, pause)
        elif now >= trial.moment:
            self._trials[name] = _Trial(trial.pause, now, waits=False)
            self._try(name, feed)

    def _try(self, name: str, feed: Ingest) -> None:
        try:
            feed.restart()
            if self._feeds().get(name) is not feed:
                # declared anew meanwhile
                feed.stop()
        except Exception:
            # the others are still to be tried
            _LOGGER.exception("the feed of %s could not be started or stopped", name)

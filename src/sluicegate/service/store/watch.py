"""Changes that other gateways made: told by the database where it can, looked for where it cannot."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sluicegate.errors import DiagnosticError
from sluicegate.service.store.chain import last_entry
from sluicegate.service.store.database import Database

_log = logging.getLogger(__name__)


class Watch:
    """A thread that looks for a newer version, at once when it is told of one and every so often when it is not.

    A version is told until the callback returns without an error: a gateway that could not take a change is asked
    again, and until then it has not acknowledged it (see `leases`).
    """

    def __init__(
        self, database: Database, callback: Callable[[int], None], known: int, seconds: float
    ) -> None:
        self._database = database
        self._callback = callback
        self._known = known
        self._seconds = seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._look()
            self._database.wait(self._seconds)
        self._database.close()

    def _look(self) -> None:
        try:
            with self._database.transaction() as found:
                version = last_entry(found)[0]
            if version != self._known:
                self._callback(version)
                self._known = version
        except DiagnosticError as error:
            _log.warning("the store could not be watched: %s", error.diagnostics[0].code)
        except Exception:  # noqa: BLE001 — of the callback: it is asked again, since nobody else tells this gateway
            _log.exception("a change of the catalog could not be taken")

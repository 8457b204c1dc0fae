"""Users that were dropped: their accounts and queries go, also where the same change made others of these names.

Accounts are in the store, and all gateways have them in common; queries are each gateway's own. So there are two marks of how
far was looked: one in the store, one beside the queries.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.gate.files import make_private
from sluicegate.runtime.gate.sinks import write_note
from sluicegate.service.authorization.missing import find_dropped
from sluicegate.service.identity.accounts import Accounts
from sluicegate.service.store import Store

if TYPE_CHECKING:
    from sluicegate.runtime.engine import Engine

_LOG = logging.getLogger("sluicegate.gateway")


class DroppedUsers:
    """Of one gateway; `folder` is that of its state."""

    def __init__(self, store: Store, accounts: Accounts, engine: Engine, folder: Path) -> None:
        self._store, self._accounts, self._engine = store, accounts, engine
        make_private(folder)
        self._mark = folder / "dropped"

    def forget(self, catalog: Catalog) -> None:
        """What is left of those whom versions up to this one dropped."""
        self._accounts.forget_missing(catalog, self._find)
        seen = self._read_mark()
        if seen == catalog.version:
            return
        # of before the first look nothing is known to be another's
        dropped = self._find(seen) if seen is not None and seen < catalog.version else frozenset[str]()
        for each in self._engine.running:
            if each.user in dropped:
                self._engine.remove(each.handle)
        # behind the removals: interrupted before, all is done again
        write_note(self._mark, str(catalog.version))

    def _find(self, since: int) -> frozenset[str]:
        return find_dropped(self._store.history(since)).users

    def _read_mark(self) -> int | None:
        try:
            return int(self._mark.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except ValueError:
            _LOG.warning("the mark of dropped users is damaged; all are looked for")
            return 0

"""How far a query of before a restart had read: what it was given is bounded by that (R8)."""

from __future__ import annotations

from collections.abc import Mapping

from sluicegate.errors import SluicegateError
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.feeds import Feeds
from sluicegate.runtime.ledger_account import UNKNOWN, Read
from sluicegate.runtime.network.beginnings import find_greatest


def find_recorded_read(feeds: Feeds, catalog: Catalog, named: Mapping[str, str], *, opening: bool) -> Read:
    """The logs tell it that were on record by these names, also where they are those of an earlier declaration.

    With `opening` those that are not open are opened, or looked into; else they tell nothing.
    """
    if any(name not in catalog.streams for name in named):
        # a stream that is gone may come back with another event time
        return UNKNOWN
    try:
        if opening:
            feeds.open(catalog, named)
        logs = feeds.find_logs(named)
        others = [name for name in named if name not in logs]
        if others and not opening:
            return UNKNOWN
        earlier = [feeds.read_greatest(catalog.streams[name], named[name]) for name in others]
    except (SluicegateError, OSError):
        return UNKNOWN
    return max((*find_greatest(logs, logs), *(each for each in earlier if each is not None)), default=None)

"""A gateway over the store that its settings name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.policy.catalog import Catalog
from sluicegate.service.gateway import Gateway
from sluicegate.service.settings import Settings
from sluicegate.service.store import open_store, plan

if TYPE_CHECKING:
    from sluicegate.runtime.engine import Engine


def open_gateway(
    settings: Settings, engine: Callable[[Catalog], Engine], folder: Path | None = None
) -> tuple[Gateway, tuple[str, ...]]:
    """The gateway over the settings' store; an empty one is filled from the folder.

    Afterwards the store is the truth: statements by which the folder differs are given back, and never made.
    """
    store = open_store(settings.store)
    try:
        if store.is_empty and folder is not None:
            store.fill(folder)
        differs = () if folder is None else tuple(plan(folder, store).texts)
        return Gateway(settings, store, engine), differs
    except BaseException:
        store.close()
        raise

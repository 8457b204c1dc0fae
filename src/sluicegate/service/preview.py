"""What a change would mean for the queries that run, without making it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sluicegate.errors import DiagnosticError
from sluicegate.policy.catalog import Catalog
from sluicegate.rewrite.manner import USUAL, Manner
from sluicegate.runtime.network.authorize import authorize, find_changed, is_same_for
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.seats import seat_catalog
from sluicegate.service.outcomes import Changed


def preview(
    running: Iterable[Running], before: Catalog, after: Catalog, manner: Manner = USUAL
) -> dict[str, str | None]:
    """Handles that would change, with None, and those that would be withdrawn, with the reason."""
    found: dict[str, str | None] = {}
    for each in running:
        old, new = seat_catalog(before, each.seat), seat_catalog(after, each.seat)
        if is_same_for(each.user, old, new, each.allowed.asked, (before, after)):
            continue
        changed = find_changed(each.allowed, before, after)
        if changed is not None:
            found[each.handle] = changed
            continue
        try:
            allowed = authorize(
                new, each.user, each.query, each.allowed.without, each.allowed.kept_out, after, manner
            )
        except DiagnosticError as error:
            found[each.handle] = error.diagnostics[0].message
            continue
        if allowed.mark != each.allowed.mark:
            found[each.handle] = None
    return found


def preview_change(
    running: Sequence[Running], before: Catalog, after: Catalog, version: int, manner: Manner = USUAL
) -> Changed:
    """What the change would be told to have done."""
    found = preview(running, before, after, manner)
    touched = [each for each in running if each.handle in found]
    withdrawn = tuple(each for each in touched if found[each.handle] is not None)
    changed = tuple(each for each in touched if found[each.handle] is None)
    return Changed(version, withdrawn, changed, True)

"""Both chains from their first entry to their last: what was changed, taken out or put in since is named."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.errors import DiagnosticError
from sluicegate.policy.catalog import Catalog
from sluicegate.service.store.audit import CHANGED
from sluicegate.service.store.chain import read_entries, read_events
from sluicegate.service.store.database import Transaction
from sluicegate.service.store.folding import fold_entries
from sluicegate.service.store.records import BEFORE_ALL


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found sound, up to the first broken entry of each chain.

    Who can write to the database can write both chains anew, or cut off their ends: keep the last hashes elsewhere, and
    ask whether they are still in the chains (`has`).
    """

    changes: int
    events: int
    last_change: str
    last_event: str
    broken: tuple[str, ...]
    hashes: frozenset[str]

    @property
    def is_sound(self) -> bool:
        return not self.broken

    def has(self, hash_: str) -> bool:
        """Whether an entry that once had this hash is there, and with it all that was before it."""
        return hash_ in self.hashes


def verify(found: Transaction) -> Verification:
    changes, broken_change = _walk_changes(found)
    told, events, broken_event = _walk_events(found)
    broken = [each for each in (broken_change, broken_event) if each is not None]
    if not broken and told != list(enumerate(changes, 1)):
        broken.append(_name_difference(told, changes))
    last_change = changes[-1] if changes else BEFORE_ALL
    last_event = events[-1] if events else BEFORE_ALL
    hashes = frozenset((*changes, *events))
    return Verification(len(changes), len(events), last_change, last_event, tuple(broken), hashes)


def _walk_changes(found: Transaction) -> tuple[list[str], str | None]:
    hashes: list[str] = []
    catalog = Catalog()
    try:
        for entry in read_entries(found):
            catalog = fold_entries(catalog, [entry])
            hashes.append(entry.hash)
    except DiagnosticError as error:
        return hashes, error.diagnostics[0].message
    return hashes, None


def _walk_events(found: Transaction) -> tuple[list[tuple[int, str]], list[str], str | None]:
    """With the changes that the events tell of: version and hash."""
    hashes: list[str] = []
    told: list[tuple[int, str]] = []
    try:
        for each in read_events(found):
            hashes.append(each.hash)
            if each.event.action == CHANGED:
                told.append((each.event.version, each.event.subject))
    except DiagnosticError as error:
        return told, hashes, error.diagnostics[0].message
    return told, hashes, None


def _name_difference(told: list[tuple[int, str]], changes: list[str]) -> str:
    """The chains hold, but one does not know what the other does: an end was cut off, or replaced."""
    for at in range(max(len(told), len(changes))):
        if at >= len(changes):
            return f"change {told[at][0]} is missing: the audit log tells of it"
        if at >= len(told) or told[at] != (at + 1, changes[at]):
            return f"change {at + 1} is not the one that the audit log tells of"
    return "the changes are not those that the audit log tells of"

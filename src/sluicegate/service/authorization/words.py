"""The words of the authorization server in the store: a row each, only ever added."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sluicegate.service.authorization.state import (
    Admit,
    Cancel,
    Content,
    Create,
    Drop,
    Issue,
    Refuse,
    Revoke,
    Said,
    Seen,
    State,
    Subscribe,
    Turned,
    Word,
    fold_words,
)
from sluicegate.service.store.database import SHARED, Database, Row, Transaction, fail
from sluicegate.service.store.records import clean_text

_KINDS: Mapping[str, Callable[..., Content]] = {
    each.__name__.lower(): each
    for each in (Create, Drop, Admit, Refuse, Issue, Revoke, Subscribe, Cancel, Turned, Said, Seen)
}
_LISTS = frozenset({"roles", "users", "streams"})
# put together from constants of this package; values are bound
_SINCE = f"SELECT number, time, actor, content FROM {SHARED} WHERE number > ? ORDER BY number"  # noqa: S608
_LAST = f"SELECT coalesce(max(number), 0) FROM {SHARED}"  # noqa: S608
_ADD = f"INSERT INTO {SHARED} (number, time, actor, content) VALUES (?, ?, ?, ?)"  # noqa: S608


def write_content(content: Content) -> str:
    return json.dumps({"kind": type(content).__name__.lower(), **asdict(content)}, sort_keys=True)


def read_content(text: str) -> Content:
    """What a row says; one that is not ours raises, and then nothing is known."""
    try:
        found: dict[str, Any] = json.loads(text)
        kind = _KINDS[found.pop("kind")]
        made = kind(**{name: tuple(each) if name in _LISTS else each for name, each in found.items()})
        if json.loads(write_content(made)) != json.loads(text):
            raise ValueError(text)
        return made
    except (ValueError, TypeError, KeyError, AttributeError):
        fail("store-damaged", "a word on shared queries is not as it was written")


class Words:
    """In one store, which several gateways may share; threads may too."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def since(self, number: int) -> list[Word]:
        """Those behind a number, in order."""
        with self._database.transaction() as found:
            return _read(found, number)

    def add(
        self, state: State, actor: str, now: int, decide: Callable[[State], Sequence[Content]]
    ) -> tuple[State, tuple[Word, ...]]:
        """Add what `decide` makes of the newest state, which nobody else changes meanwhile; if it raises, nothing is."""
        with self._database.transaction(SHARED) as found:
            before = fold_words(state, _read(found, state.number))
            contents = decide(before)
            last = int(found.run(_LAST)[0][0])
            name = clean_text(actor)
            made = tuple(Word(last + at, now, name, each) for at, each in enumerate(contents, 1))
            rows = [(each.number, each.time, each.actor, write_content(each.content)) for each in made]
            found.run_many(_ADD, rows)
        return fold_words(before, made), made


def _read(found: Transaction, number: int) -> list[Word]:
    return [_read_row(row) for row in found.run(_SINCE, number)]


def _read_row(row: Row) -> Word:
    number, time, actor, content = row
    return Word(int(number), int(time), str(actor), read_content(str(content)))

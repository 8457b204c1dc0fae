"""Query-level punctuations where they stand in a stream (R16), as its log keeps them.

meta/<first>-<last>.json    those that came within a batch, under `said`: there when the batch is, and not otherwise
said.jsonl                  those that were put at the log's end, between two batches; a line each, in order
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.feed.log_files import PRIVATE, TEMPORARY, refuse_log, sync_folder

_NAME = "said.jsonl"


@dataclass(frozen=True, slots=True)
class Said:
    """A punctuation: tuples with a smaller `_offset` than `at` stand before it.

    `greatest` is the greatest event time before it, `watermark` how far results were final there; None where none was.
    """

    at: int
    greatest: int | None
    watermark: int | None
    query: str
    users: tuple[str, ...] | None
    positive: bool
    ts: int

    @property
    def punctuation(self) -> QueryPunctuation:
        users = None if self.users is None else frozenset(self.users)
        return QueryPunctuation(self.query, users, self.positive, self.ts)


def place_said(said: QueryPunctuation, at: int, greatest: int | None, watermark: int | None) -> Said:
    """A punctuation at its place."""
    users = None if said.users is None else tuple(sorted(said.users))
    return Said(at, greatest, watermark, said.query, users, said.positive, said.ts)


def read_said(found: Mapping[str, Any]) -> Said:
    users = found["users"]
    return Said(**{**found, "users": None if users is None else tuple(users)})


class SaidFile:
    """What was put at the end of a log; the first line tells how many were let go of before the others.

    A last line that was not written whole was never said.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self.base, self._entries = self._load()

    @property
    def count(self) -> int:
        """How many there ever were."""
        return self.base + len(self._entries)

    def since(self, count: int) -> list[Said]:
        """Those behind the first `count`."""
        return self._entries[max(count - self.base, 0) :]

    def append(self, said: Sequence[Said]) -> None:
        """On disk when it has returned."""
        if not self._path.exists():
            self._write(0, said)
        else:
            self._append("".join(json.dumps(asdict(each)) + "\n" for each in said))
        self._entries = [*self._entries, *said]

    def _append(self, text: str) -> None:
        before = self._path.stat().st_size
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            # what may be there of it was not said: the next line must not stand behind it
            os.truncate(self._path, before)
            raise

    def forget(self, count: int) -> None:
        """Let go of the first `count`, which somebody else remembers now."""
        if count > self.base:
            kept = self.since(count)
            self._write(count, kept)
            self.base, self._entries = count, kept

    def _write(self, base: int, said: Iterable[Said]) -> None:
        lines = [{"base": base}, *(asdict(each) for each in said)]
        temporary = self._path.with_suffix(TEMPORARY)
        with temporary.open("w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), PRIVATE)
            file.writelines(json.dumps(each) + "\n" for each in lines)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        sync_folder(self._path.parent)

    def _load(self) -> tuple[int, list[Said]]:
        if not self._path.exists():
            return 0, []
        text = self._path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            # or the next line would stand behind half of this one
            os.truncate(self._path, len(whole))
        try:
            first, *lines = [json.loads(line) for line in whole.splitlines()]
            return int(first["base"]), [read_said(each) for each in lines]
        except (ValueError, TypeError, KeyError) as error:
            raise refuse_log(f"`{_NAME}` has a line that is not one of ours") from error

"""What the proxy remembers, by who asked for it: handles of queries, and which gateway has what. No answers, no credentials."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Kept:
    """A handle that a gateway gave, under a version of its catalog."""

    gateway: int
    handle: str
    version: int


class Marks:
    """Keys that tell nothing: digests with a secret of this process, of what a caller sent."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def make(self, parts: Iterable[bytes]) -> bytes:
        digest = hashlib.blake2b(key=self._secret, digest_size=32)
        for part in parts:
            # with lengths, so that no two lists of parts run into each other
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return digest.digest()


class Recent(Generic[V]):
    """So many values, those longest not asked for forgotten first. Only used in the event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: bytes) -> V | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: bytes, value: V) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def drop(self, key: bytes) -> None:
        self._kept.pop(key, None)

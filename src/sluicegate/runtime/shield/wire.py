"""Punctuations out of the texts that a feed brings: read, and refused where their sender may not say that (R14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import Kind
from sluicegate.language.punctuation_wire import Arrived, read_punctuation_text
from sluicegate.language.punctuators import may_punctuate
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Privilege, Stream
from sluicegate.policy.punctuation import Constant, DataDescription, Pattern
from sluicegate.runtime.shield.rows import Alike
from sluicegate.runtime.shield.templates import Templates, find_templates

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a punctuation was not taken, without what stands in it."""

    code: str
    message: str


class PunctuationReader:
    """Reads the punctuations of one batch, all under one version of the catalog and with one time of arrival.

    `at` is in microseconds since 1970, by this machine's clock; `trusted` is who is not asked for a grant: the sender that
    the feed's own declaration stands for.
    """

    def __init__(self, stream: Stream, catalog: Catalog, at: int, trusted: str | None) -> None:
        self._stream, self._catalog, self._at, self._trusted = stream, catalog, at, trusted
        self._key = dict(stream.attributes)[stream.punctuated_by or ""]
        # a grant may hold for a time only
        self._is_timed = any(
            each.during is not None and each.privilege is Privilege.APPEND for each in catalog.grants.values()
        )
        self._may: dict[tuple[str, Pattern, int], Refusal | None] = {}

    def read_all(self, texts: pa.Array, senders: pa.Array) -> Alike | list[Punctuation | Refusal]:
        """Each as `read` reads it; what many have in common is read once."""
        templates = find_templates(texts, self._key, self._at)
        # who sent it has no part in how it is read
        rests = [self._read_text(rest, "") for rest in templates.rests]
        return self._find_alike(templates, rests, texts, senders) or self._read_each(
            templates, rests, texts, senders.to_pylist()
        )

    def _find_alike(
        self, templates: Templates, rests: Sequence[Punctuation | Refusal], texts: pa.Array, senders: pa.Array
    ) -> Alike | None:
        """All at once, where they are the trusted sender's, each of one whole number, and all are well."""
        good = tuple(each for each in rests if isinstance(each, Punctuation))
        if (
            not len(texts)
            or len(templates.at) < len(texts)
            or len(good) < len(rests)
            or templates.keys.null_count
            or self._key.kind not in (Kind.INT, Kind.BIGINT)
            or senders.null_count
            or senders.unique().to_pylist() != [self._trusted]
        ):
            return None
        keys = np.asarray(templates.keys).astype(np.int64)
        return Alike(self._trusted or "", good, templates.number, templates.ts, templates.sn, keys)

    def _read_each(
        self,
        templates: Templates,
        rests: Sequence[Punctuation | Refusal],
        texts: pa.Array,
        senders: Sequence[str | None],
    ) -> list[Punctuation | Refusal]:
        found: list[Punctuation | Refusal | None] = [None] * len(texts)
        for at, number, ts, sn, key in templates.parts():
            rest, sender = rests[number], senders[at]
            if isinstance(rest, Punctuation) and sender is not None:
                found[at] = self._fill(rest, sender, ts, sn, key)
        return [
            self.read(texts[at].as_py(), senders[at]) if each is None else each
            for at, each in enumerate(found)
        ]

    def read(self, text: str, sender: str | None) -> Punctuation | Refusal:
        if sender is None:
            return Refusal("sp-forged", "the punctuation has no sender")
        found = self._read_text(text, sender)
        return found if isinstance(found, Refusal) else self._check_sender(found) or found

    def _fill(
        self, rest: Punctuation, sender: str, ts: int, sn: int, key: Scalar | None
    ) -> Punctuation | Refusal:
        ddp = rest.ddp
        if key is not None:
            ddp = DataDescription(ddp.streams, Constant(key), ddp.attributes)
        made = Punctuation(sender, ts, sn, ddp, rest.srp, rest.positive, rest.immutable)
        return self._check_sender(made) or made

    def _read_text(self, text: str, sender: str) -> Punctuation | Refusal:
        try:
            return read_punctuation_text(text, Arrived(self._stream, sender, self._at), self._catalog)
        except DiagnosticError as error:
            told = error.diagnostics[0]
            return Refusal(told.code, told.message)

    def _check_sender(self, found: Punctuation) -> Refusal | None:
        if found.sender == self._trusted:
            return None
        key = (found.sender, found.ddp.tuples, found.ts if self._is_timed else 0)
        if key not in self._may:
            told = may_punctuate(self._catalog, found.sender, self._stream.name, found)
            self._may[key] = None if told is None else Refusal(told.code, told.message)
        return self._may[key]

"""Texts of punctuations that differ in ts, number and key alone, told apart by columns: each different rest is read once.

    {"ddp": {"tuples": 17}, "srp": ["Doctor"], "ts": "2026-01-01T10:00:00", "sn": 1}
    {"ddp": {"tuples": 0}, "srp": ["Doctor"], "ts": "1970-01-01T00:00:00", "sn": 1}      what is read, and 17, the ts, 1

A quote that is not escaped begins or ends a text of JSON, so `{"ts":` and `,"ts":` can only be a key. Where that key stands
twice, or deeper than it may, the rest has it too and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sluicegate.expr.types import INT_RANGE, Kind, Type
from sluicegate.expr.values import TIMESTAMP_MIN
from sluicegate.language.punctuation_wire import MOST_CHARACTERS, MOST_NUMBER
from sluicegate.runtime.shield.threads import cut_evenly, do_all

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

# days that every year has
_DAY = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
# what JSON takes for blank, which is less than a regular expression does
_GAP = r"[ \t\n\r]*"
_TS = rf'(?P<a>[{{,]{_GAP})"ts"{_GAP}:{_GAP}"(?P<x>[0-9]{{4}}-{_DAY}[ T]{_CLOCK})"'
_SN = rf'(?P<a>[{{,]{_GAP})"sn"{_GAP}:{_GAP}(?P<x>[1-9][0-9]{{0,4}})(?P<b>{_GAP}[,}}])'
_WHOLE = rf'(?P<a>[{{,]{_GAP})"tuples"{_GAP}:{_GAP}(?P<x>0|-?[1-9][0-9]{{0,17}})(?P<b>{_GAP}[,}}])'
_TEXT = rf'(?P<a>[{{,]{_GAP})"tuples"{_GAP}:{_GAP}"(?P<x>[^"\\*\x00-\x1f]*)"(?P<b>{_GAP}[,}}])'
PIECE = 4096
"""Texts that are worth a thread."""
_SPARE = 100
"""Characters by which a rest may be longer than its text."""


@dataclass(frozen=True, slots=True)
class Templates:
    """The texts that could be told apart (`at` are their places), the rests, and which of them each has."""

    at: NDArray[np.int64]
    rests: tuple[str, ...]
    number: NDArray[np.int64]
    ts: NDArray[np.int64]
    sn: NDArray[np.int64]
    keys: pa.Array
    """The constant of the tuple pattern, NULL where the rest has the pattern."""

    def parts(self) -> Iterator[tuple[int, int, int, int, Any]]:
        """Of each its place, which rest it has, its ts, its number and its constant."""
        columns = (each.tolist() for each in (self.at, self.number, self.ts, self.sn))
        return zip(*columns, self.keys.to_pylist(), strict=True)


def find_templates(texts: pa.Array, key: Type, latest: int) -> Templates:
    """Those with a ts up to `latest`; what is left out is to be read one by one, and told why it is wrong, if it is."""
    cuts = cut_evenly(len(texts), PIECE)
    found = do_all(lambda cut: _find(texts.slice(cut.start, cut.stop - cut.start), key, latest), cuts)
    return found[0] if len(found) == 1 else _join(found, [cut.start for cut in cuts])


def _join(found: Sequence[Templates], begins: Sequence[int]) -> Templates:
    """Templates of pieces that begin at these places, as of one text after the other."""
    import pyarrow as pa

    rests = {rest: None for each in found for rest in each.rests}
    places = {rest: place for place, rest in enumerate(rests)}
    numbers = [np.array([places[rest] for rest in each.rests], np.int64)[each.number] for each in found]
    return Templates(
        np.concatenate([each.at + begin for each, begin in zip(found, begins, strict=True)]),
        tuple(rests),
        np.concatenate(numbers),
        np.concatenate([each.ts for each in found]),
        np.concatenate([each.sn for each in found]),
        pa.concat_arrays([each.keys for each in found]),
    )


def _find(texts: pa.Array, key: Type, latest: int) -> Templates:
    import pyarrow as pa
    import pyarrow.compute as pc

    ts, sn, constant = _take(texts, _TS), _take(texts, _SN), _take_key(texts, key)
    short = pc.less(pc.utf8_length(texts), MOST_CHARACTERS - _SPARE)
    at = np.flatnonzero(np.asarray(pc.and_(pc.and_(ts.is_valid(), sn.is_valid()), short)))
    moments = np.asarray(ts.take(pa.array(at)).cast(pa.timestamp("us")).cast(pa.int64()))
    numbers = np.asarray(sn.take(pa.array(at)).cast(pa.int64()))
    good = (moments >= TIMESTAMP_MIN) & (moments <= latest) & (numbers <= MOST_NUMBER)
    keys = constant.take(pa.array(at[good]))
    coded = _cut(texts.take(pa.array(at[good])), keys, key).dictionary_encode()
    return Templates(
        at[good],
        tuple(coded.dictionary.to_pylist()),
        np.asarray(coded.indices).astype(np.int64),
        moments[good],
        numbers[good],
        keys,
    )


def _take(texts: pa.Array, pattern: str) -> pa.Array:
    import pyarrow.compute as pc

    return pc.struct_field(pc.extract_regex(texts, pattern), "x")


def _take_key(texts: pa.Array, key: Type) -> pa.Array:
    """Constants as the key's type has them; NULL where there is none, or the type is one of the rarer."""
    import pyarrow as pa
    import pyarrow.compute as pc

    match key.kind:
        case Kind.INT | Kind.BIGINT:
            found = _take(texts, _WHOLE).cast(pa.int64())
            low, high = INT_RANGE[key]
            inside = pc.and_(pc.greater_equal(found, low), pc.less_equal(found, high))
            return pc.if_else(inside, found, None)
        case Kind.STRING:
            return _take(texts, _TEXT)
        case _:
            return pa.nulls(len(texts), pa.string())


def _cut(texts: pa.Array, keys: pa.Array, key: Type) -> pa.Array:
    """The rests: the texts with one ts, one number and one key in the place of all."""
    import pyarrow.compute as pc

    found = pc.replace_substring_regex(texts, _TS, r'\1"ts":"1970-01-01T00:00:00"')
    found = pc.replace_substring_regex(found, _SN, r'\1"sn":1\3')
    pattern, value = (_TEXT, '""') if key.kind is Kind.STRING else (_WHOLE, "0")
    without = pc.replace_substring_regex(found, pattern, rf'\1"tuples":{value}\3')
    # a key that does not fit stays, and is refused with its text
    return pc.if_else(keys.is_valid(), without, found)

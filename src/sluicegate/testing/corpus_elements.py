"""Rows of punctuated streams in corpus files: punctuations under `_sp`, and what tuples say of their policy and sender."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluicegate.errors import DiagnosticError, SluicegateError
from sluicegate.language.punctuation_wire import Arrived, read_punctuation
from sluicegate.language.punctuators import may_punctuate
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.testing.corpus_compare import format_time, parse_time
from sluicegate.testing.oracle_policies import PARTITION, SENDER, SP, SP_COUNT, SP_TS

ARRIVED = "_arrived"
CARRIED = frozenset({SP_TS, SP_COUNT, SENDER, PARTITION})


class CorpusError(SluicegateError):
    """A corpus file that cannot be read; the message names the file and the key."""


def read_corpus_punctuation(
    row: Mapping[str, object], stream: Stream, catalog: Catalog, place: str
) -> dict[str, Any] | str:
    """An element of the typed input, or the code by which the punctuation is refused.

    A `_sender` is a user of the catalog and must be allowed to punctuate; without one, as in a replayed file, nobody asks.
    """
    unknown = sorted(set(row) - {SP, SENDER, PARTITION, ARRIVED})
    if unknown:
        raise CorpusError(f"{place}: a punctuation has no `{unknown[0]}` beside it")
    carried = read_carried({key: value for key, value in row.items() if key != SP}, place)
    at = parse_time(row[ARRIVED]) if ARRIVED in row else None
    try:
        arrived = Arrived(stream, carried[SENDER], at)
        found = read_punctuation(_plain(row[SP]), arrived, catalog)
    except DiagnosticError as error:
        return error.diagnostics[0].code
    if SENDER in row:
        refusal = may_punctuate(catalog, carried[SENDER], stream.name, found)
        if refusal is not None:
            return refusal.code
    return {SP: found, PARTITION: carried[PARTITION]}


def _plain(found: object) -> object:
    """What JSON would have given: YAML reads unquoted times as such."""
    match found:
        case dict():
            return {key: _plain(value) for key, value in found.items()}
        case list():
            return [_plain(value) for value in found]
        case _:
            time = None if isinstance(found, str) else parse_time(found)
            return found if time is None else format_time(time)


def read_carried(row: Mapping[str, object], place: str) -> dict[str, Any]:
    """What a tuple names and who sent it; NULL where it does not say."""
    ts = None if row.get(SP_TS) is None else parse_time(row[SP_TS])
    if ts is None and row.get(SP_TS) is not None:
        raise CorpusError(f"{place}.{SP_TS}: `{row[SP_TS]}` is not a TIMESTAMP")
    count, partition, sender = row.get(SP_COUNT), row.get(PARTITION, 0), row.get(SENDER, "")
    for name, value in ((SP_COUNT, count or 0), (PARTITION, partition)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise CorpusError(f"{place}.{name}: `{value}` is not a number")
    if not isinstance(sender, str):
        raise CorpusError(f"{place}.{SENDER}: must be a text")
    return {SP_TS: ts, SP_COUNT: count, SENDER: sender, PARTITION: partition}

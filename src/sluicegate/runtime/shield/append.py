"""A batch of elements as the next batch of a punctuated stream's log: rows, letters and memory first, then the commit."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.policy.catalog import Catalog
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.feed.carriage import PARTITION, SENDER, SP
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.dead_letters import DeadLetters
from sluicegate.runtime.feed.log_batch import LATE, LogBatch
from sluicegate.runtime.feed.log_files import log_schema, write_rows
from sluicegate.runtime.feed.misfits import PROBLEM, RAW
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.feed.turning import (
    Heard,
    Judge,
    find_query_level,
    hear_texts,
    judge_batch,
    place_all,
    place_outside,
    refuse_all,
    write_letters,
)
from sluicegate.runtime.shield.shield import ROW_BITS, Shield, Taken

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class _Divided:
    """A batch without its query-level punctuations: the places of the others, and what these said."""

    elements: pa.Table
    kept: NDArray[np.int64] | None = None
    heard: Heard = field(default_factory=Heard)

    def find_place(self, place: int) -> int:
        """In the batch as it came."""
        return place if self.kept is None else int(self.kept[place])


def append_elements(
    log: SourceLog,
    shield: Shield,
    elements: pa.Table,
    number: int,
    trusted: str | None,
    judge: Judge = refuse_all,
) -> LogBatch:
    """Append a batch in order of arrival (the columns of `Shield.take`); it is complete after."""
    _check_size(log, elements)
    divided = _divide(log, elements, judge_batch(judge))
    return _append(log, shield, shield.take(divided.elements, number, trusted), number, divided)


def append_pushed(
    log: SourceLog,
    shield: Shield,
    rows: pa.Table,
    sender: str | None,
    catalog: Catalog | None = None,
    judge: Judge = refuse_all,
) -> tuple[tuple[int, str], ...]:
    """Elements that one principal pushed: the attributes, `_sp`, `_sp_ts`, `_sp_count`.

    Told are the punctuations that were refused, by their row, from 0, and the code.
    """
    import pyarrow as pa

    origin = {SENDER: sender, PARTITION: None, PROBLEM: None, RAW: None}
    for name, value in origin.items():
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
    _check_size(log, rows)
    divided = _divide(log, rows, judge)
    taken = shield.take(divided.elements, log.end, None, catalog)
    _append(log, shield, taken, log.end, divided)
    refused = [(divided.find_place(place), code) for place, code in taken.refused]
    return (*refused, *((each.place, each.code) for each in divided.heard.refused))


def _divide(log: SourceLog, elements: pa.Table, judge: Judge) -> _Divided:
    import pyarrow as pa

    places = find_query_level(elements[SP])
    if not places:
        return _Divided(elements)
    senders = elements[SENDER]
    texts = [(at, elements[SP][at].as_py(), senders[at].as_py()) for at in places]
    kept = np.setdiff1d(np.arange(elements.num_rows), places)
    return _Divided(elements.take(pa.array(kept)), kept, hear_texts(texts, log.stream, judge))


def _check_size(log: SourceLog, elements: pa.Table) -> None:
    if elements.num_rows >= 1 << ROW_BITS:
        message = f"a batch of `{log.stream.name}` has more than {1 << ROW_BITS} elements"
        raise refuse_feed("feed-batch", message, "limit what the feed takes at once by its options")


def append_end(log: SourceLog, shield: Shield) -> None:
    """Append what waited, since the input has ended."""
    if not shield.ended:
        _append(log, shield, shield.end(log.end), log.end)


def _append(
    log: SourceLog, shield: Shield, taken: Taken, number: int, divided: _Divided | None = None
) -> LogBatch:
    rows, letters = _mark_late(log, taken.rows), taken.letters
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_rows, log.data_folder(number), [rows])
        taken = shield.prune(taken)
        waiting = shield.keep(number, taken)
        writing.result()
    if divided is not None and divided.heard.refused:
        import pyarrow as pa

        letters = pa.concat_tables([letters, write_letters(divided.heard.refused, number)])
    if letters.num_rows:
        DeadLetters(log.folder).append(number, letters)
    least, greatest = _find_bounds(log, rows)
    batch = log.describe(number, rows.num_rows, least, greatest, letters.num_rows, waiting)
    if divided is not None:
        batch = replace(batch, said=place_all(log, number, rows, _place(taken, divided)))
    log.commit(batch)
    shield.settle(number, taken)
    return batch


def _place(taken: Taken, divided: _Divided) -> Sequence[tuple[int, QueryPunctuation]]:
    """Each with how many of the released tuples came before it."""
    said, kept = divided.heard.taken, divided.kept
    if taken.released_at is None or kept is None:
        return place_outside(taken.rows.num_rows, said)
    came = kept[taken.released_at]
    return tuple((int(np.searchsorted(came, place)), each) for place, each in said)


def _mark_late(log: SourceLog, rows: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    late = pa.repeat(pa.scalar(False), rows.num_rows)
    if log.watermark is not None:
        times = rows[log.stream.event_time].cast(pa.int64())
        late = pc.fill_null(pc.less(times, log.watermark), False)
    return rows.append_column(LATE, late).select(log_schema(log.stream).names)


def _find_bounds(log: SourceLog, rows: pa.Table) -> tuple[int | None, int | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.min_max(rows[log.stream.event_time].cast(pa.int64()))
    return found["min"].as_py(), found["max"].as_py()

"""Dead letters of a punctuated stream: elements that are malformed, and punctuations that are refused.

Of a malformed element only the reason is kept: it may be a tuple, and whoever reads the letters need not be one whom its
policy lets read it. Denied tuples are no letters at all; they are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sluicegate.runtime.feed.log_batch import ARRIVAL, BATCH_SHIFT
from sluicegate.runtime.feed.misfits import LONGEST_RAW, PROBLEM, RAW
from sluicegate.runtime.shield.wire import Refusal

if TYPE_CHECKING:
    import pyarrow as pa

PLACE = "_place"
"""The column with an element's place in its batch."""
# whole characters, of at most four bytes
_LONGEST = LONGEST_RAW // 4


def write_malformed(rows: pa.Table, number: int) -> pa.Table:
    return _write(rows[PLACE].to_pylist(), rows[PROBLEM].to_pylist(), [None] * rows.num_rows, number)


def write_refused(refused: Sequence[tuple[int, str, Refusal]], number: int) -> pa.Table:
    """Place in the batch, text and reason of each."""
    problems = [f"{each.code}: {each.message}" for _, _, each in refused]
    texts = [text[:_LONGEST] for _, text, _ in refused]
    return _write([place for place, _, _ in refused], problems, texts, number)


def write_none() -> pa.Table:
    return _write([], [], [], 0)


def _write(
    places: Sequence[int], problems: Sequence[str], texts: Sequence[str | None], number: int
) -> pa.Table:
    import pyarrow as pa

    columns = {
        ARRIVAL: pa.array([(number << BATCH_SHIFT) + place for place in places], pa.int64()),
        PROBLEM: pa.array(problems, pa.string()),
        RAW: pa.array(texts, pa.string()),
    }
    return pa.table(columns)

"""Query-level punctuations out of what feeds and pushes bring (R16): read, judged, and put at their tuple.

They stand in the sequence of a stream's elements, under `_sp`, in streams that are not punctuated too. Where a batch has
several partitions nobody can say which tuples of the others came before: then a closing one stands before all of the
batch, and an opening one behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import STRING
from sluicegate.language.punctuation_wire import read_json_text
from sluicegate.language.query_punctuation_wire import QUERY, read_query_punctuation_json
from sluicegate.policy.model import Stream
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.feed.carriage import SP
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.log_batch import ARRIVAL, BATCH_SHIFT
from sluicegate.runtime.feed.misfits import LONGEST_RAW, PROBLEM, RAW
from sluicegate.runtime.feed.said import Said, place_said
from sluicegate.runtime.feed.source_log import SourceLog, find_later

if TYPE_CHECKING:
    import pyarrow as pa

Judge: TypeAlias = Callable[[QueryPunctuation, str | None], str | None]
"""The code by which a punctuation of this sender is refused, None where it is taken."""
JudgeAll: TypeAlias = Callable[[Sequence[QueryPunctuation]], Sequence[str | None]]
"""The same for all that came together, in order."""
MOST_SAID = 1_000
"""Punctuations for queries in one push: each is judged, and on record. Of a feed's batch, those that are asked for in vain."""
NOT_OWNER = "nothing says that the stream's owner sent it"
ALONE = "a punctuation for a query stands by itself"
_MARK = f'"{QUERY}"'
_LONGEST = LONGEST_RAW // 4


@dataclass(frozen=True, slots=True)
class Refused:
    """A punctuation that was not taken: its place among the rows, the code, and the words for the stream's owner."""

    place: int
    code: str
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class Heard:
    """The punctuations of a batch, by their places among its elements."""

    taken: tuple[tuple[int, QueryPunctuation], ...] = ()
    refused: tuple[Refused, ...] = ()


def carry_switches(stream: Stream) -> Stream:
    """The stream with the column for punctuations, where it is not punctuated and can have any; else as it is."""
    names = {name for name, _ in stream.attributes}
    if stream.punctuated_by is not None or stream.event_time is None or stream.key or SP in names:
        return stream
    return replace(stream, attributes=(*stream.attributes, (SP, STRING)))


def refuse_all(punctuation: QueryPunctuation, sender: str | None) -> str | None:
    """Where nobody is there to judge."""
    return "switch-unknown"


def find_query_level(texts: pa.ChunkedArray) -> list[int]:
    """Places of those that are for queries; Python looks only at texts that have the word."""
    import pyarrow.compute as pc

    marked = pc.fill_null(pc.match_substring(texts, _MARK), False)
    places = pc.indices_nonzero(marked).to_pylist()
    return [at for at in places if _is_query_level(texts[at].as_py())]


def _is_query_level(text: str) -> bool:
    try:
        found = read_json_text(text)
    except DiagnosticError:
        return False
    return isinstance(found, dict) and QUERY in found


def hear_texts(
    found: Sequence[tuple[int, str, str | None]], stream: Stream, judge: Judge, at: int | None = None
) -> Heard:
    """Texts with their places and senders, in order; what cannot be read, or may not be said, is refused."""
    arrival = time.time_ns() // 1000 if at is None else at
    taken: list[tuple[int, QueryPunctuation]] = []
    refused: list[Refused] = []
    for place, text, sender in found:
        try:
            punctuation = read_query_punctuation_json(read_json_text(text), arrival)
        except DiagnosticError as error:
            told = error.diagnostics[0]
            refused.append(Refused(place, told.code, told.message, text[:_LONGEST]))
            continue
        code = "switch-order" if stream.order_any else judge(punctuation, sender)
        if code is None:
            taken.append((place, punctuation))
        else:
            message = f"it is refused for `{punctuation.query[:60]}`"
            refused.append(Refused(place, code, message, text[:_LONGEST]))
    return Heard(tuple(taken), tuple(refused))


def judge_batch(judge: Judge) -> Judge:
    """For one batch of a feed: what is refused is asked for once, and only so often; what has no sender never.

    How much a batch brings is for others to say than the owner, and each question may be on record.
    """
    known: dict[object, str] = {}

    def judge_limited(punctuation: QueryPunctuation, sender: str | None) -> str | None:
        if sender is None:
            return "switch-owner"
        asked = (sender, punctuation.query, punctuation.users, punctuation.positive)
        found = known.get(sender) or known.get(asked)
        if found is not None:
            return found
        if punctuation.positive and len(known) >= MOST_SAID:
            # a closing one is asked for all the same: nobody's closing is lost because others say much
            return "switch-many"
        code = judge(punctuation, sender)
        if code is not None:
            known[sender if code == "switch-owner" else asked] = code
        return code

    return judge_limited


def judge_ahead(texts: pa.ChunkedArray, stream: Stream, judge_all: JudgeAll) -> Judge:
    """A judge whose answers for these texts are all there: it waits for nobody, while others wait for the stream.

    Raises where there are more for queries than `MOST_SAID`.
    """
    places = find_query_level(texts)
    if len(places) > MOST_SAID:
        message = f"there are {len(places)} punctuations for queries, and {MOST_SAID} are taken at once"
        raise refuse_feed("switch-many", message, "push them in several parts")
    found = hear_texts([(at, texts[at].as_py(), None) for at in places], stream, lambda *_: None)
    said = [each for _, each in found.taken]
    answers: dict[QueryPunctuation, list[str | None]] = {}
    for each, code in zip(said, judge_all(said) if said else (), strict=True):
        answers.setdefault(each, []).append(code)

    def judge(punctuation: QueryPunctuation, sender: str | None) -> str | None:
        left = answers.get(punctuation)
        # one of the future when it was judged is one of the future
        return left.pop(0) if left else "sp-future"

    return judge


def write_letters(refused: Sequence[Refused], number: int) -> pa.Table:
    """For the stream's owner."""
    import pyarrow as pa

    return pa.table(
        {
            ARRIVAL: pa.array([(number << BATCH_SHIFT) + each.place for each in refused], pa.int64()),
            PROBLEM: pa.array([f"{each.code}: {each.message}" for each in refused], pa.string()),
            RAW: pa.array([each.text[:_LONGEST] for each in refused], pa.string()),
        }
    )


def cut_texts(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Their beginnings, as letters have them."""
    import pyarrow.compute as pc

    return pc.utf8_slice_codeunits(texts, 0, _LONGEST)


def place_all(
    log: SourceLog, number: int, rows: pa.Table, said: Sequence[tuple[int, QueryPunctuation]]
) -> tuple[Said, ...]:
    """Punctuations between the rows of a batch, which are in order and numbered; each with the number of rows before it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not said:
        return ()
    times, count = rows[log.stream.event_time].cast(pa.int64()), rows.num_rows
    found = []
    for before, punctuation in said:
        high = find_later(log.greatest, pc.max(times.slice(0, before)).as_py())
        # rows behind it are judged late by the watermark before the batch: only what was final there stays so
        final = log.watermark
        if before < count:
            at = rows[ARRIVAL][before].as_py()
        else:
            # not the next batch's first: it would be taken for one of that
            at = rows[ARRIVAL][count - 1].as_py() + 1 if count else number << BATCH_SHIFT
        found.append(place_said(punctuation, at, high, final))
    return tuple(sorted(found, key=lambda each: each.at))


def place_outside(
    count: int, said: Sequence[tuple[int, QueryPunctuation]]
) -> tuple[tuple[int, QueryPunctuation], ...]:
    """Of several partitions: what closes before all rows, what opens behind them."""
    return tuple((count if each.positive else 0, each) for _, each in said)

"""The log of one stream: its recent past on disk, in batches, each complete or absent.

    meta/<first>-<last>.json    what a complete batch holds; its rename is the commit
    data/<first>-<last>/        the batch's rows, Parquet; without a meta they count as never written
    state.json                  what was forgotten, and whether the input has ended
    clock.json                  by what its rows' event time is told (`feed.log_names`)
    said.jsonl                  query-level punctuations between batches (`feed.said`)
    checkpoint/ dead/           the feed's own

One process owns a log; in it, one thread appends and any number read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sluicegate.errors import InvariantError
from sluicegate.expr.values import TIMESTAMP_MAX
from sluicegate.policy.model import Stream
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.feed.compact import find_runs, merge_batches
from sluicegate.runtime.feed.log_batch import BATCH_SHIFT, LogBatch, name_range, read_batch
from sluicegate.runtime.feed.log_files import (
    TEMPORARY,
    count_bytes,
    read_json,
    refuse_log,
    remove_all,
    sync_files,
    sync_folder,
    write_json,
)
from sluicegate.runtime.feed.log_names import keep_clock
from sluicegate.runtime.feed.said import Said, SaidFile, place_said

LARGEST_BATCH = 500_000
"""Rows up to which batches are put together."""


@dataclass(frozen=True, slots=True)
class _State:
    """What is known beyond the batches that are kept; times are microseconds since 1970."""

    end: int = 0
    greatest: int | None = None
    watermark: int | None = None
    forgotten: int | None = None
    finished: bool = False


class SourceLog:
    """The batches of a stream's log. What is forgotten is deleted once those who read at that time are done."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        self.folder, self.stream = folder, stream
        self._meta, self._data = folder / "meta", folder / "data"
        self._lock, self._upkeep = threading.RLock(), threading.Lock()
        self._readers: set[object] = set()
        self._retired: list[tuple[Path, set[object]]] = []
        self._unsure: set[Path] = set()
        """Metas that failed behind their rename, and may be there all the same."""
        for each in (self._meta, self._data):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        keep_clock(folder, stream)
        self._state = self._load_state()
        self._said = SaidFile(folder)
        self._batches = self._load_batches()
        self._discard_leftovers()
        for batch in self._batches:
            self._state = self._after(batch)

    def batches(self, begin: int = 0, end: int | None = None) -> tuple[LogBatch, ...]:
        """The complete batches with a number in [begin, end), in order; one that was put together may reach beyond."""
        with self._lock:
            return tuple(b for b in self._batches if b.last >= begin and (end is None or b.first < end))

    def reaching(self, least_time: int, begin: int = 0, end: int | None = None) -> tuple[LogBatch, ...]:
        """Those of the batches that may have rows with an event time of at least `least_time`."""
        found = self.batches(begin, end)
        return tuple(each for each in found if each.greatest is None or each.greatest >= least_time)

    def covers(self, begin: int, end: int) -> bool:
        """Whether every batch with a number in [begin, end) is still kept: what is forgotten may lie between others."""
        at = begin
        for each in self.batches(begin, end):
            if each.first > at:
                return False
            at = each.last + 1
        return at >= end

    @property
    def begin(self) -> int:
        """The first number that is kept; equal to `end` when there is none."""
        with self._lock:
            return self._batches[0].first if self._batches else self._state.end

    @property
    def end(self) -> int:
        """The number after the last complete batch."""
        return self._state.end

    @property
    def greatest(self) -> int | None:
        """The greatest event time that ever came in."""
        return self._state.greatest

    @property
    def watermark(self) -> int | None:
        """Rows below it may be late (D5); after a bounded input has ended, the end of time."""
        state = self._state
        return TIMESTAMP_MAX if state.finished and self.stream.event_time is not None else state.watermark

    @property
    def forgotten(self) -> int | None:
        """The greatest event time of a row that is no longer kept."""
        return self._state.forgotten

    @property
    def finished(self) -> bool:
        return self._state.finished

    def is_complete(self, number: int) -> bool:
        return number < self._state.end

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Files of batches that were asked for inside stay until the end of it."""
        token = object()
        with self._lock:
            self._readers.add(token)
        try:
            yield
        finally:
            with self._lock:
                self._readers.discard(token)
                gone = self._release()
            remove_all(gone)

    def data_folder(self, number: int) -> Path:
        """Where the rows of a batch that is not complete yet are to be written."""
        self._withdraw()
        return self._data / name_range(number, number)

    def describe(
        self,
        number: int,
        rows: int,
        least: int | None,
        greatest: int | None,
        dead: int = 0,
        waiting: int | None = None,
    ) -> LogBatch:
        """The batch that would follow, with the watermark after it; a watermark never goes back.

        `waiting` is the least event time of rows that came but are to follow: the watermark does not pass it.
        """
        high = find_later(self._state.greatest, greatest)
        mark = None if high is None else high - self.stream.watermark
        if mark is not None and waiting is not None:
            mark = min(mark, waiting)
        after = None if mark is None else find_later(self._state.watermark, mark)
        return LogBatch(number, number, self.data_folder(number), rows, least, greatest, after, dead)

    def commit(self, batch: LogBatch) -> None:
        """Make a batch complete, whose rows are written. One that is complete already is left as it is (a replay)."""
        with self._lock:
            if self.is_complete(batch.first):
                return
            if batch.first != self._state.end or batch.last != batch.first:
                raise InvariantError(f"batch {batch.first} of `{self.stream.name}` does not follow")
            if self._state.finished:
                raise InvariantError(f"the input of `{self.stream.name}` has ended")
            if batch.path != self.data_folder(batch.first):
                raise InvariantError(f"batch {batch.first} of `{self.stream.name}` lies elsewhere")
        sync_files(batch.path)
        sync_folder(self._data)
        self._write_meta(batch)
        with self._lock:
            self._batches = [*self._batches, batch]
            self._state = self._after(batch)

    def tell(self, punctuations: Iterable[QueryPunctuation], seen: int | None = None) -> None:
        """Put query-level punctuations at the end: before all rows that are not in a complete batch yet (R16).

        `seen` is the greatest event time of rows that came and are to follow: these are no later than the punctuation.
        """
        with self._lock:
            state, at = self._state, self._state.end << BATCH_SHIFT
            greatest = find_later(state.greatest, seen)
            self._said.append([place_said(each, at, greatest, state.watermark) for each in punctuations])

    def hear(self, told: int, batch: int) -> tuple[list[Said], int, int]:
        """The punctuations behind the first `told` between batches and those of the batches from `batch` on, in order of
        their places; and how many, and which batch, that was up to.
        """
        with self._lock:
            between = self._said.since(told)
            within = [
                said for each in self.batches(batch) for said in each.said if said.at >= batch << BATCH_SHIFT
            ]
            # what stands between batches was there before the rows of the next came
            found = sorted((*between, *within), key=lambda said: said.at)
            return found, self._said.count, self._state.end

    def forget_said(self, count: int, many: int) -> None:
        """The first `count` between batches are remembered elsewhere; they go once they are `many`."""
        with self._lock:
            if count - self._said.base >= many:
                self._said.forget(count)

    def finish(self) -> None:
        """A bounded input has ended: every open window may be released."""
        with self._lock:
            self._save(replace(self._state, finished=True))

    def cut(self, before: int, least_time: int | None) -> None:
        """Forget the batches below `before` that have nothing at or after `least_time`; one without times goes with those
        that came before it.
        """
        with self._upkeep:
            self._withdraw()
            with self._lock:
                gone = _find_old([each for each in self._batches if each.last < before], least_time)
                if not gone:
                    return
                forgotten = self._state.forgotten
                for each in gone:
                    forgotten = find_later(forgotten, each.greatest)
                # first, so that nobody takes the log for whole while files vanish
                self._save(replace(self._state, forgotten=forgotten))
                left = set(gone)
                self._batches = [each for each in self._batches if each not in left]
            self._retire(gone)

    def compact(self, before: int, largest: int = LARGEST_BATCH) -> None:
        """Put runs of small adjacent batches below `before` together; what they hold stays the same."""
        with self._upkeep:
            self._withdraw()
            for run in find_runs(self.batches(0), before, largest):
                made = merge_batches(run, self._data / name_range(run[0].first, run[-1].last), self.stream)
                self._write_meta(made)
                with self._lock:
                    old = set(run)
                    at = self._batches.index(run[0])
                    kept = [each for each in self._batches if each not in old]
                    self._batches = [*kept[:at], made, *kept[at:]]
                self._retire(run)

    def _retire(self, gone: list[LogBatch]) -> None:
        """The metas go now; the files when nobody can still be reading them."""
        remove_all(self._meta / f"{name_range(each.first, each.last)}.json" for each in gone)
        sync_folder(self._meta)
        with self._lock:
            self._retired += [(each.path, set(self._readers)) for each in gone]
            found = self._release()
        remove_all(found)

    def _release(self) -> list[Path]:
        free = [path for path, readers in self._retired if not readers & self._readers]
        self._retired = [each for each in self._retired if each[1] & self._readers]
        return free

    def _write_meta(self, batch: LogBatch) -> None:
        content = {**asdict(batch), "path": batch.path.name, "bytes": count_bytes(batch.path)}
        path = self._meta / f"{name_range(batch.first, batch.last)}.json"
        try:
            write_json(path, content)
        except BaseException:
            self._unsure.add(path)
            # what fails here is tried again before any rows are replaced
            with suppress(OSError):
                self._withdraw()
            raise

    def _withdraw(self) -> None:
        """A batch that is not complete in memory is not so on disk either, or a start would miss the rows of a next try."""
        for path in tuple(self._unsure):
            path.unlink(missing_ok=True)
            sync_folder(self._meta)
            self._unsure.discard(path)

    def _save(self, state: _State) -> None:
        write_json(self.folder / "state.json", asdict(state))
        self._state = state

    def _after(self, batch: LogBatch) -> _State:
        state = self._state
        return replace(
            state,
            end=max(state.end, batch.last + 1),
            greatest=find_later(state.greatest, batch.greatest),
            watermark=find_later(state.watermark, batch.watermark),
        )

    def _load_state(self) -> _State:
        path = self.folder / "state.json"
        if not path.exists():
            return _State()
        try:
            return _State(**read_json(path))  # type: ignore[arg-type]  # what was written
        except TypeError as error:
            raise refuse_log("`state.json` has other fields") from error

    def _load_batches(self) -> list[LogBatch]:
        """A batch within the range of a larger one was put together with others, and is dropped."""
        found = [read_batch(path, self._data) for path in self._meta.glob("*.json")]
        kept: list[LogBatch] = []
        for each in sorted(found, key=lambda batch: (batch.first, -batch.last)):
            if not kept or each.first > kept[-1].last:
                kept.append(each)
            elif each.last > kept[-1].last:
                raise refuse_log(f"batches {kept[-1].first} and {each.first} overlap")
        return kept

    def _discard_leftovers(self) -> None:
        metas = {f"{name_range(each.first, each.last)}.json" for each in self._batches}
        data = {each.path.name for each in self._batches}
        remove_all(path for path in self._meta.iterdir() if path.name not in metas)
        remove_all(path for path in self._data.iterdir() if path.name not in data)
        remove_all(self.folder.glob(f"*{TEMPORARY}"))


def _find_old(batches: Iterable[LogBatch], least_time: int | None) -> list[LogBatch]:
    gone, is_first = [], True
    for each in batches:
        if least_time is None or (is_first if each.greatest is None else each.greatest < least_time):
            gone.append(each)
        else:
            is_first = False
    return gone


def find_later(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else max(left, right)

"""A streaming frame of an authorized query that follows the values of its policy from micro-batch to micro-batch."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from sluicegate.expr.evaluate import Environment
from sluicegate.expr.values import LONG_MAX, LONG_MIN
from sluicegate.graph.operators import Aggregate, sources, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.model import Stream
from sluicegate.runtime.batch import check_given, check_served
from sluicegate.runtime.network.lift import lift_joins, lower_joins
from sluicegate.runtime.network.shapes import Shaped, find_shape
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.run_inputs import to_micros
from sluicegate.runtime.session import check_session, check_streaming
from sluicegate.runtime.stream.build import build_frame
from sluicegate.runtime.stream.live_table import LiveTable, find_literals, find_version
from sluicegate.runtime.stream.watch import Watch
from sluicegate.targets.spark import result_columns
from sluicegate.targets.spark_state import check_streamable, may_be_fixed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WITHHELD = LONG_MAX
"""As `since`: no window is whole yet."""


class Change(Enum):
    """What a new version of the catalog means for a frame."""

    NONE = "none"
    VALUES = "values"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Version:
    """An authorized plan, and the values that it has under one version of the catalog."""

    plan: AuthorizedPlan
    environment: Environment
    streams: Mapping[str, Stream]

    def shape(self) -> Shaped:
        return find_shape(self.plan, self.environment)

    def sources(self) -> dict[str, Stream]:
        return {each.stream: self.streams[each.stream] for each in sources(self.plan.root)}


def make_fixed(
    spark: SparkSession,
    version: Version,
    frames: Mapping[str, DataFrame],
    start: int | None = None,
    since: int | None = None,
) -> DataFrame:
    """The streaming frame of a version that no other will follow, `start` and `since` as in `LiveFrame`.

    Its values stand in the text, unless something behind state needs them or it is not yet known which windows are whole.
    """
    _check_given(spark, version, frames)
    shaped = version.shape()
    shape = lower_joins(shaped.shape)
    check_streamable(shape)
    windows = any(isinstance(node, Aggregate) for node in walk(shape.root))
    waits = windows and since == WITHHELD
    if waits or not may_be_fixed(shape.root, start is not None):
        return LiveFrame(spark, version, frames, start, since, early=True, fixed=True).frame
    row = Subscription(find_version(shaped), shaped.constants, start, since if windows else None)
    names = [name for name, _ in result_columns(version.plan)]
    values = find_literals(shaped.types, row)
    return build_frame(
        spark, shape, names, frames, version.streams, values, start is not None, watched=False
    ).frame


def _check_given(spark: SparkSession, version: Version, frames: Mapping[str, DataFrame]) -> None:
    check_session(spark)
    check_streaming(spark)
    check_served(version.plan, version.streams)
    check_given(version.plan, frames)


class LiveFrame:
    """`frame` is the streaming frame. Closed, its next micro-batch fails."""

    def __init__(
        self,
        spark: SparkSession,
        version: Version,
        frames: Mapping[str, DataFrame],
        start: int | None = None,
        since: int | None = None,
        early: bool = False,
        fixed: bool = False,
    ) -> None:
        """`start`: no tuple before it is read; `since`: no window that reaches back before it is whole, `WITHHELD` until known.

        `early`: conditions stay below joins, whose pairs are then of one version or withheld. `fixed`: no other version will be
        put in force, so that nobody need know how far was read, where it is known from when on windows are whole.
        """
        _check_given(spark, version, frames)
        self._version, self._shaped = version, version.shape()
        self._start, self._since, self._fixed = start, since, fixed
        self._lock = threading.Lock()
        self._table = LiveTable(spark, self._shaped.types)
        try:
            self._write()
            names = [name for name, _ in result_columns(version.plan)]
            shape = lower_joins(self._shaped.shape) if early else lift_joins(self._shaped.shape)
            watched = since == WITHHELD or not fixed
            built = build_frame(
                spark, shape, names, frames, version.streams, self._table, start is not None, watched
            )
        except BaseException:
            self._table.close()
            raise
        self.frame: DataFrame = built.frame
        self._expected, self._floor = 0, LONG_MIN if start is None else start
        self._follows = since == WITHHELD
        self._watch = None
        if built.observed:
            self._watch = Watch(spark, built.observed, self._begin_windows, self._begin_query)
        if since == WITHHELD:
            self._expect()

    def change(self, version: Version | None, greatest: datetime | None = None) -> Change:
        """Put a new version in force from the next micro-batch on; None: nothing of the query is left.

        `greatest` is the latest event time that the sources had brought by then, where the caller knows it.
        """
        with self._lock:
            if self._table.ended:
                return Change.ENDED
            if version is None:
                return self._end("withdrawn")
            if self._fixed:
                return self._end("policy-changed")
            try:
                return self._follow(version, None if greatest is None else to_micros(greatest) + 1)
            except BaseException:
                # what cannot be put in force must not leave the version before in force
                self._end("policy-changed")
                raise

    def _follow(self, version: Version, since: int | None) -> Change:
        shaped = version.shape()
        if not self._fits(version, shaped):
            return self._end("policy-changed")
        self._version = version
        if shaped.constants == self._shaped.constants:
            return Change.NONE
        self._shaped = shaped
        if since is None:
            self._withhold()
        else:
            self._since, self._expected = max(since, self._floor), 0
            self._write()
        return Change.VALUES

    def _withhold(self) -> None:
        """Until it is known what may have been read by now, no window is whole."""
        self._since = WITHHELD
        self._write()
        self._expect()

    def _expect(self) -> None:
        if self._watch is not None:
            self._expected = self._watch.expect()

    def end(self, code: str) -> None:
        """Let the next micro-batch fail, with the code."""
        with self._lock:
            self._end(code)

    def close(self) -> None:
        """Forget the values; a query that still runs over the frame fails."""
        with self._lock:
            if self._watch is not None:
                self._watch.stop()
            self._table.close()

    def _fits(self, version: Version, shaped: Shaped) -> bool:
        names = [name for name, _ in result_columns(version.plan)]
        return (
            shaped.shape == self._shaped.shape
            and shaped.types == self._shaped.types
            and names == [name for name, _ in result_columns(self._version.plan)]
            and version.sources() == self._version.sources()
        )

    def _end(self, code: str) -> Change:
        self._table.end(code)
        if self._watch is not None:
            self._watch.stop()
        return Change.ENDED

    def _write(self) -> None:
        constants = self._shaped.constants
        row = Subscription(find_version(self._shaped), constants, self._start, self._since)
        self._table.write(row)

    def _begin_windows(self, greatest: int, expected: int) -> None:
        """All that an older version may have read is known: windows after it are whole (R11)."""
        with self._lock:
            if self._since == WITHHELD and self._expected == expected and not self._table.ended:
                self._since = max(greatest + 1, self._floor)
                self._write()

    def _begin_query(self) -> None:
        """Another query over the frame, or the same again: what it begins with, a window may have a part of (R8)."""
        with self._lock:
            if self._follows and self._since != WITHHELD and not self._table.ended:
                self._withhold()

"""Functions of dates and times: adding durations, and ranges of the day (A.3.7, A.3.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from sluicegate.policy.xacml.functions_scalar import BOOLEAN, lift, name_function
from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.signature import Function, Kind
from sluicegate.policy.xacml.temporal import DAY, Moment, add_months

T = DataType


def list_time_functions() -> Iterator[Function]:
    shapes: tuple[tuple[DataType, str, DataType, Callable[..., Moment]], ...] = (
        (T.DATE_TIME, "add", T.DAY_TIME_DURATION, _add_seconds),
        (T.DATE_TIME, "subtract", T.DAY_TIME_DURATION, _subtract(_add_seconds)),
        (T.DATE_TIME, "add", T.YEAR_MONTH_DURATION, add_months),
        (T.DATE_TIME, "subtract", T.YEAR_MONTH_DURATION, _subtract(add_months)),
        (T.DATE, "add", T.YEAR_MONTH_DURATION, add_months),
        (T.DATE, "subtract", T.YEAR_MONTH_DURATION, _subtract(add_months)),
    )
    for kind, verb, duration, run in shapes:
        for version in ("3.0", "1.0"):  # 1.0: as it was called with the durations of a draft of XPath
            function_id = name_function(version, f"{kind.short}-{verb}-{duration.short}")
            yield Function(function_id, (Kind(kind), Kind(duration)), Kind(kind), lift(run, kind))
    times = (Kind(T.TIME),) * 3
    yield Function(name_function("2.0", "time-in-range"), times, BOOLEAN, lift(_in_range, T.BOOLEAN))


def _add_seconds(moment: Moment, seconds: Fraction) -> Moment:
    return Moment(moment.local + seconds, moment.zone)


def _subtract(add: Callable[[Moment, Any], Moment]) -> Callable[[Moment, Any], Moment]:
    return lambda moment, amount: add(moment, -amount)


def _in_range(asked: Moment, low: Moment, high: Moment) -> bool:
    """From `low` to `high`, which is the first such time after it; bounds without a zone have that of `asked`."""
    zone = asked.zone or 0
    start, end = (
        Moment(each.local, zone if each.zone is None else each.zone).instant for each in (low, high)
    )
    return (asked.instant - start) % DAY <= (end - start) % DAY

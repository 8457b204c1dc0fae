"""Compare expected rows, as people write them, with the rows of an engine: as bags, times in ISO, doubles nearly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TOLERANCE = 1e-9
_TIMES = frozenset({"window_start", "window_end"})


def parse_time(value: object) -> int | None:
    """ISO text (or what YAML made of it) as microseconds since 1970, UTC where no zone is given."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def format_time(microseconds: int) -> str:
    """`2026-01-01T10:00:00`, in UTC."""
    return (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=None).isoformat()


def compare_rows(
    expected: Sequence[Mapping[str, object]], actual: Sequence[Mapping[str, object]]
) -> str | None:
    """What is missing and what is too much, or None where both are the same bag."""
    left = list(actual)
    missing = []
    for row in expected:
        match = next((at for at, other in enumerate(left) if _same_row(row, other)), None)
        if match is None:
            missing.append(row)
        else:
            del left[match]
    lines = [f"missing: {_show(row)}" for row in missing] + [f"not expected: {_show(row)}" for row in left]
    return "\n".join(lines) or None


def _same_row(expected: Mapping[str, object], actual: Mapping[str, object]) -> bool:
    """The same attributes, too: a withheld one is absent, which NULL is not."""
    return expected.keys() == actual.keys() and all(
        same_value(value, actual[key]) for key, value in expected.items()
    )


def same_value(expected: object, actual: object) -> bool:
    """Equal values of one kind; an ISO text equals the microseconds that it names."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(actual, int) and isinstance(expected, str | datetime):
        return parse_time(expected) == actual
    if isinstance(actual, str) and isinstance(expected, datetime):
        return parse_time(expected) == parse_time(actual)
    if isinstance(expected, float) or isinstance(actual, float):
        return _same_double(expected, actual)
    return expected == actual


def _same_double(expected: object, actual: object) -> bool:
    if not isinstance(expected, int | float) or not isinstance(actual, int | float):
        return False
    return math.isclose(expected, actual, rel_tol=_TOLERANCE, abs_tol=0.0)


def _show(row: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {_show_value(key, value)}" for key, value in row.items()) + "}"


def _show_value(key: str, value: object) -> str:
    if value is None:
        return "null"
    if key in _TIMES and isinstance(value, int):
        return format_time(value)
    return str(value)

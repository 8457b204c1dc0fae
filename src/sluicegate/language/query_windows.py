"""Windows as queries write them: `[RANGE 1 HOUR SLIDE 10 MINUTES]`, `[ROWS 10 SLIDE 2]`, `WINDOW('1 hour', '30 minutes')`."""

from __future__ import annotations

from sluicegate.language.lexing import NUMBER, Cursor, Token
from sluicegate.language.literals import read_duration
from sluicegate.language.query_syntax import WindowSpec

_HELP = "write [RANGE 1 HOUR SLIDE 10 MINUTES] or [ROWS 10 SLIDE 2]"
_LANDMARKS = frozenset({"LANDMARK", "UNBOUNDED", "NOW", "SINCE", "PARTITION"})


def parse_window(cursor: Cursor) -> WindowSpec | None:
    """The window in brackets at the cursor, if there is one."""
    first = cursor.accept("[")
    if first is None:
        return None
    _refuse_landmark(cursor)
    rows = _parse_kind(cursor)
    _refuse_landmark(cursor)
    size = _parse_extent(cursor, rows)
    cursor.accept(",")
    step = _parse_extent(cursor, rows) if cursor.accept("SLIDE") or cursor.accept("STEP") else None
    if not cursor.accept("]"):
        cursor.fail_unexpected("`]`", help=_HELP)
    return WindowSpec(size, step, rows, cursor.span_from(first))


def _parse_kind(cursor: Cursor) -> bool:
    if cursor.accept("ROWS"):
        return True
    if not cursor.accept("RANGE"):
        cursor.fail_unexpected("`RANGE` or `ROWS`", help=_HELP)
    return False


def _refuse_landmark(cursor: Cursor) -> None:
    token = cursor.current
    if token.key in _LANDMARKS:
        cursor.fail("landmark-window", f"{token.key} windows are not read", cursor.span(token), _HELP)


def _parse_extent(cursor: Cursor, rows: bool) -> int:
    first = cursor.current
    extent = cursor.expect_integer("a number of rows") if rows else read_duration(cursor)
    return _check_extent(cursor, first, extent)


def _check_extent(cursor: Cursor, first: Token, extent: int) -> int:
    if extent <= 0:
        cursor.fail("empty-window", "a window's size and step are greater than zero", cursor.span_from(first))
    return extent


def parse_group_window(cursor: Cursor) -> WindowSpec:
    """`WINDOW(size [, step])` of GROUP BY; `10 ROWS` for tuples."""
    first = cursor.expect("WINDOW", "(")
    if cursor.current.key:
        help_ = "write WINDOW('1 hour', '30 minutes'): the event time is the stream's own"
        cursor.fail_unexpected("a duration or a number of rows", help=help_)
    size, rows = _parse_group_extent(cursor)
    step = None
    if cursor.accept(","):
        second = cursor.current
        step, same = _parse_group_extent(cursor)
        if same is not rows:
            cursor.fail("window-mixed", "size and step are both times or both rows", cursor.span_from(second))
    cursor.expect(")")
    return WindowSpec(size, step, rows, cursor.span_from(first))


def _parse_group_extent(cursor: Cursor) -> tuple[int, bool]:
    first = cursor.current
    rows = first.kind == NUMBER and cursor.peek().key in ("ROWS", "ROW")
    if rows:
        extent = cursor.expect_integer("a number of rows")
        cursor.next()
    else:
        extent = read_duration(cursor)
    return _check_extent(cursor, first, extent), rows

"""Tables and values as people read them in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from unicodedata import combining, east_asian_width

from sluicegate.cli.console import Console
from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME

ABSENT = "·"
_GAP = "  "
_LAST = (START_NAME, END_NAME, GRANT_NAME)


def draw_table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be, the last one as long as it is."""
    widths = [max(_width(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    lines = [console.style(_line(heads, widths), "dim"), *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
    return _GAP.join(padded).rstrip()


def _width(text: str) -> int:
    """Columns of a terminal."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def draw_rows(console: Console, rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as a table; an attribute that a row lacks is a dot, which NULL is not."""
    if not rows:
        return console.style("no rows", "dim")
    found = dict.fromkeys(name for row in rows for name in row)
    names = sorted(found, key=lambda name: _LAST.index(name) if name in _LAST else -1)
    cells = [[write_value(row[name]) if name in row else ABSENT for name in names] for row in rows]
    return draw_table(console, names, cells)


def write_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)

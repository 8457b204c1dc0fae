"""Queries back to text: `parse_query(print_query(q)) == q` (I6)."""

from __future__ import annotations

from sluicegate.expr.text import write_string
from sluicegate.expr.values import write_timestamp
from sluicegate.graph.windows import format_duration
from sluicegate.language.print_expression import print_expression, print_name
from sluicegate.language.query_syntax import (
    FromItem,
    GroupItem,
    JoinItem,
    NestedItem,
    Output,
    Query,
    SelectQuery,
    Star,
    Start,
    StartAt,
    StreamItem,
    WindowSpec,
)


def print_query(query: Query) -> str:
    """The query on one line, without `;`."""
    parts = [" UNION ALL ".join(_print_branch(branch) for branch in query.branches)]
    if query.start is not None:
        parts.append(f"START AT {_print_start(query.start)}")
    if query.on_result:
        parts.append(f"ON RESULT ({_print_on_result(query)})")
    return " ".join(parts)


def _print_branch(branch: SelectQuery | Query) -> str:
    return f"({print_query(branch)})" if isinstance(branch, Query) else _print_select(branch)


def _print_start(start: StartAt) -> str:
    return start.value if isinstance(start, Start) else f"TIMESTAMP '{write_timestamp(start)}'"


def _print_on_result(query: Query) -> str:
    # statements and queries print each other's parts; the import waits until both are there
    from sluicegate.language.print_statements import print_insert
    from sluicegate.language.statements import InsertSP

    return ", ".join(print_insert(each) for each in query.on_result if isinstance(each, InsertSP))


def _print_select(select: SelectQuery) -> str:
    items = ", ".join(map(_print_item, select.items))
    sources = ", ".join(map(_print_source, select.sources))
    parts = ["SELECT UNITED" if select.united else "SELECT", items, "FROM", sources]
    if select.where is not None:
        parts.append(f"WHERE {print_expression(select.where)}")
    groups = [print_expression(each) for each in select.group_by]
    if select.window is not None:
        groups.append(_print_group_window(select.window))
    if groups:
        parts.append(f"GROUP BY {', '.join(groups)}")
    if select.having is not None:
        parts.append(f"HAVING {print_expression(select.having)}")
    return " ".join(parts)


def _print_item(item: Star | Output) -> str:
    if isinstance(item, Star):
        return f"{print_name(item.qualifier)}.*" if item.qualifier else "*"
    return print_expression(item.expr) + _print_alias(item.alias)


def _print_alias(alias: str | None) -> str:
    return f" AS {print_name(alias)}" if alias is not None else ""


def _print_source(item: FromItem) -> str:
    match item:
        case StreamItem(stream, alias, window):
            return print_name(stream) + _print_alias(alias) + _print_window(window)
        case NestedItem(query, alias, window):
            return f"({print_query(query)}){_print_alias(alias)}{_print_window(window)}"
        case GroupItem(inner, window):
            return f"({_print_source(inner)}){_print_window(window)}"
        case JoinItem(left, right, on):
            return f"{_print_source(left)} JOIN {_print_source(right)} ON {print_expression(on)}"


def _print_window(window: WindowSpec | None) -> str:
    if window is None:
        return ""
    if window.rows:
        return f" [ROWS {window.size}{f' SLIDE {window.step}' if window.step is not None else ''}]"
    step = f" SLIDE {format_duration(window.step).upper()}" if window.step is not None else ""
    return f" [RANGE {format_duration(window.size).upper()}{step}]"


def _print_group_window(window: WindowSpec) -> str:
    extents = [each for each in (window.size, window.step) if each is not None]
    if window.rows:
        return f"WINDOW({', '.join(f'{each} ROWS' for each in extents)})"
    return f"WINDOW({', '.join(write_string(format_duration(each)) for each in extents)})"

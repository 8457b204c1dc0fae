"""Queries as XML where they have that form: `parse_user_query(print_user_query(q)) == q` (I6)."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.graph.windows import format_duration
from sluicegate.language.print_expression import print_expression
from sluicegate.language.query_syntax import Output, Query, SelectQuery, Star, StreamItem, WindowSpec
from sluicegate.language.resolve_expression import AGGREGATES
from sluicegate.language.syntax import FuncCall, Name


def print_user_query(query: Query) -> str:
    """The query as `<UserQuery>`; raises `xml-inexpressible` where it has more than that can say."""
    (select, stream) = _find_parts(query)
    lines = ["<UserQuery>", f"  <Stream name={quoteattr(stream.stream)}/>"]
    if select.where is not None:
        condition = escape(print_expression(select.where))
        lines += ["  <Filter>", f"    <FilterCondition>{condition}</FilterCondition>", "  </Filter>"]
    outputs = [item for item in select.items if isinstance(item, Output)]
    if stream.window is not None:
        lines += [
            "  <Aggregation>",
            *_print_window(stream.window),
            *map(_print_output, outputs),
            "  </Aggregation>",
        ]
    elif outputs:
        lines += ["  <Map>", *map(_print_output, outputs), "  </Map>"]
    return "\n".join([*lines, "</UserQuery>"])


def _print_window(window: WindowSpec) -> Iterator[str]:
    yield f"    <WindowType>{'tuple' if window.rows else 'time'}</WindowType>"
    yield f"    <WindowSize>{_print_extent(window.size, window)}</WindowSize>"
    if window.step is not None:
        yield f"    <WindowStep>{_print_extent(window.step, window)}</WindowStep>"


def _print_extent(extent: int, window: WindowSpec) -> str:
    return str(extent) if window.rows else format_duration(extent)


def _print_output(output: Output) -> str:
    alias = "" if output.alias is None else f" as={quoteattr(output.alias)}"
    return f"    <Attribute{alias}>{escape(print_expression(output.expr))}</Attribute>"


def _find_parts(query: Query) -> tuple[SelectQuery, StreamItem]:
    select = query.branches[0]
    if query.start is not None or query.on_result or len(query.branches) > 1 or isinstance(select, Query):
        raise _refuse("only a single SELECT has a form in XML")
    stream = select.sources[0]
    if len(select.sources) > 1 or not isinstance(stream, StreamItem) or stream.alias is not None:
        raise _refuse("only a query of one stream, without an alias, has a form in XML")
    if select.group_by or select.having is not None or select.united or select.window is not None:
        raise _refuse("GROUP BY, HAVING and UNITED have no form in XML")
    if not _fits(select, stream):
        raise _refuse("in XML a query selects attributes, or functions of them in a window")
    return select, stream


def _fits(select: SelectQuery, stream: StreamItem) -> bool:
    if stream.window is None and len(select.items) == 1 and select.items[0] == Star(""):
        return True
    return all(_fits_item(item, stream.window is not None) for item in select.items)


def _fits_item(item: Star | Output, windowed: bool) -> bool:
    expr = item.expr if isinstance(item, Output) else None
    if windowed and isinstance(expr, FuncCall):
        bare = expr.star or (len(expr.args) == 1 and _is_attribute(expr.args[0]))
        return bare and expr.name.upper() in AGGREGATES
    return not windowed and _is_attribute(expr)


def _is_attribute(expr: object) -> bool:
    return isinstance(expr, Name) and not expr.qualifier


def _refuse(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("xml-inexpressible", message)])

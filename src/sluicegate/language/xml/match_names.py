"""Names of a query in XML that differ from an attribute's in case alone: eXACML+ writes `RainRate` for `rainrate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sluicegate.errors import Diagnostic, Severity
from sluicegate.expr.nodes import Expr
from sluicegate.language.query_syntax import Output, Query, SelectQuery, StreamItem
from sluicegate.language.syntax import Name, map_syntax
from sluicegate.policy.model import Stream


def match_names(query: Query, streams: Mapping[str, Stream]) -> tuple[Query, tuple[Diagnostic, ...]]:
    """The query with such names as the catalog has them, and a warning for each.

    Where several attributes fit, or none, the name stays, and is found to be unknown when it is resolved.
    """
    (select,) = query.branches
    if not isinstance(select, SelectQuery) or not isinstance(select.sources[0], StreamItem):
        raise TypeError("a query in XML reads one stream")
    stream = streams.get(select.sources[0].stream)
    if stream is None:
        return query, ()
    matcher = _Matcher([name for name, _ in stream.attributes])
    items = tuple(
        replace(item, expr=matcher.match(item.expr)) if isinstance(item, Output) else item
        for item in select.items
    )
    where = None if select.where is None else matcher.match(select.where)
    made = replace(query, branches=(replace(select, items=items, where=where),))
    return made, tuple(matcher.warnings.values())


def match_expression(expr: Expr, stream: Stream) -> Expr:
    """An expression on one stream, likewise."""
    return _Matcher([name for name, _ in stream.attributes]).match(expr)


class _Matcher:
    def __init__(self, attributes: list[str]) -> None:
        self.warnings: dict[str, Diagnostic] = {}
        self._known = frozenset(attributes)
        self._folded: dict[str, list[str]] = {}
        for name in attributes:
            self._folded.setdefault(name.casefold(), []).append(name)

    def match(self, expr: Expr) -> Expr:
        if not isinstance(expr, Name):
            return map_syntax(expr, self.match)
        fitting = self._folded.get(expr.name.casefold(), [])
        if expr.qualifier or expr.name in self._known or len(fitting) != 1:
            return expr
        message = f"`{expr.name}` is read as `{fitting[0]}`: names are case-sensitive"
        self.warnings.setdefault(
            expr.name, Diagnostic("name-case", message, expr.span, severity=Severity.WARNING)
        )
        return replace(expr, name=fitting[0])

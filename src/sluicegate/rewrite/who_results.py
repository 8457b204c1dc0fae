"""Which named results show something of a stream, or of one attribute of it: whoever reads those sees it too."""

from __future__ import annotations

from collections.abc import Iterator

from sluicegate.expr.nodes import Expr, columns
from sluicegate.graph.operators import Aggregate, Join, Node, Project, Select, Source, Union, sources, walk
from sluicegate.language.named_results import read_result
from sluicegate.language.statements import QueryText
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.policy.stated import list_stated
from sluicegate.rewrite.named_results import Ended, Results


def find_results_of(catalog: Catalog, stream: str, attribute: str | None) -> list[str]:
    """Those whose queries use it, those that are made of these in turn, and so on, as far as makers may have something."""
    graphs = {
        name: read_result(catalog, QueryText(each.query), each.event_time, name).root
        for name, each in sorted(catalog.streams.items())
        if each.query is not None
    }
    results, found = Results(catalog), dict[str, None]()
    todo = [name for name, root in graphs.items() if _uses(root, stream, attribute)]
    while todo:
        name = todo.pop(0)
        if name not in found and not isinstance(results.find(name), Ended):
            found[name] = None
            todo += [other for other, root in graphs.items() if _uses(root, name, None)]
    return list(found)


def is_read_by_owner(catalog: Catalog, stream: str) -> bool:
    """Whether the stream is a named result that goes on, without an ON RESULT: its owner may read it without a grant."""
    known = catalog.streams.get(stream)
    if known is None or known.query is None or known.stated:
        return False
    return not isinstance(Results(catalog).find(stream), Ended)


def list_stated_readers(
    catalog: Catalog, stream: Stream, attribute: str | None
) -> dict[str, tuple[str, ...]]:
    """Users whom an ON RESULT names, each with what it lets them see; nobody where the maker has nothing to pass on."""
    if isinstance(Results(catalog).find(stream.name), Ended):
        return {}
    found = {}
    for user in sorted(catalog.users):
        shown = sorted(name for name in list_stated(catalog, stream, user) if attribute in (None, name))
        if shown:
            found[user] = tuple(shown)
    return found


def _uses(root: Node, stream: str, attribute: str | None) -> bool:
    aliases = {each.alias for each in sources(root) if each.stream == stream}
    if attribute is None or not aliases:
        return bool(aliases)
    used = {column for node in walk(root) for expr in _expressions(node) for column in columns(expr)}
    return any(each.qualifier in aliases and each.name == attribute for each in used)


def _expressions(node: Node) -> Iterator[Expr]:
    match node:
        case Select(predicate=predicate) | Join(predicate=predicate):
            yield predicate
        case Project(items=items):
            yield from (item.expr for item in items)
        case Aggregate(calls=calls, group_by=keys):
            yield from (call.arg for call in calls if call.arg is not None)
            yield from (item.expr for item in keys)
        case Source() | Union():
            return
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")

"""Queries as drawings and back: what the graph editor and the diagnostics under a text need. Nothing is decided or run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.functions import FUNCTIONS
from sluicegate.graph.operators import Field, Node, Source
from sluicegate.language.draw_graph import draw_query
from sluicegate.language.drawings import write_drawing
from sluicegate.language.expressions import RESERVED
from sluicegate.language.resolve_expression import AGGREGATES
from sluicegate.policy.catalog import Catalog
from sluicegate.service.access import Caller, Need, OpenGateway, Reading, Route
from sluicegate.service.decisions import known_streams, read_known
from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.changes import hide_unknown
from sluicegate.service.identity.principal import Principal, seat
from sluicegate.service.limits import check_length
from sluicegate.service.schemas_console import (
    ColumnAnswer,
    DrawAsked,
    DrawingAsked,
    DrawnAnswer,
    ProblemAnswer,
    VocabularyAnswer,
    WordAnswer,
    WrittenAnswer,
)

KEYWORDS = (
    RESERVED - {"EXCEPT", "EXISTS", "INTERSECT", "LIMIT", "NATURAL", "ORDER", "OVER", "WITH", "FULL"}
) | {
    *(
        "BY",
        "EARLIEST",
        "END",
        "INTERVAL",
        "LATEST",
        "RANGE",
        "RESULT",
        "ROWS",
        "SLIDE",
        "START AT",
        "TIMESTAMP",
    ),
    *("TIME", "UNITED", "WINDOW", "MINUTES", "HOURS", "SECONDS", "DAYS"),
}


def _find_catalog(caller: Principal, gateway: Gateway) -> Catalog:
    return seat(caller, gateway.engine.catalog)


def read_graph(asked: DrawAsked, caller: Caller, gateway: OpenGateway, reading: Reading) -> DrawnAnswer:
    """The drawing of a query, read by what its asker may know; what is wrong with it is in the answer."""
    check_length(asked.query)
    with reading.take(caller.user):
        return _read_graph(asked.query, caller, gateway)


def _read_graph(query: str, caller: Principal, gateway: Gateway) -> DrawnAnswer:
    try:
        found = read_known(_find_catalog(caller, gateway), caller.user, query)
        drawing = draw_query(found)
    except DiagnosticError as error:
        return DrawnAnswer(drawing=None, outputs=[], problems=[_show(each) for each in error.diagnostics])
    warned = [_show(each) for each in found.warnings]
    return DrawnAnswer(drawing=drawing, outputs=[_column(each) for each in found.outputs], problems=warned)


def write_graph(asked: DrawingAsked, caller: Caller, gateway: OpenGateway, reading: Reading) -> WrittenAnswer:
    """The text of a drawing, which reads back; what is wrong is told with the operator and the field of its form."""
    drawing = asked.model_dump()
    check_length(json.dumps(drawing, ensure_ascii=False))
    with reading.take(caller.user):
        return _write_graph(drawing, caller, gateway)


def _write_graph(drawing: Mapping[str, Any], caller: Principal, gateway: Gateway) -> WrittenAnswer:
    catalog = _find_catalog(caller, gateway)
    written = write_drawing(drawing, known_streams(catalog, caller.user))
    problems = [
        ProblemAnswer(
            code=each.code,
            message=each.message,
            help=each.help,
            start=each.start,
            end=each.end,
            node=each.node,
            field=each.field,
        )
        for each in written.problems
    ]
    unknown = _find_unknown(caller, catalog, written.nodes.values())
    fields = {
        number: [
            _column(each)
            for each in node.fields
            if not each.hidden and (each.qualifier, each.name) not in unknown
        ]
        for number, node in written.nodes.items()
    }
    text = written.text
    if text is not None:
        try:
            read_known(catalog, caller.user, text)
        except DiagnosticError as error:
            # an ending that does not fit, or a size that only the whole has
            text, problems = None, [_show(each, "ending") for each in error.diagnostics]
    return WrittenAnswer(text=text, fields=fields, problems=problems)


def _find_unknown(caller: Principal, catalog: Catalog, nodes: Iterable[Node]) -> set[tuple[str, str]]:
    """Attributes of sources that `/v1/streams` does not show to the caller: none are offered to be chosen."""
    if caller.is_admin:
        return set()
    known = hide_unknown(caller, catalog).streams
    return {
        (node.alias, name)
        for node in nodes
        if isinstance(node, Source) and not catalog.streams[node.stream].governed_by_provider
        for name, _ in node.attributes
        if node.stream not in known or known[node.stream].type_of(name) is None
    }


def tell_vocabulary(caller: Caller) -> VocabularyAnswer:
    """Words of queries: what an editor offers besides the names of streams and attributes."""
    functions = [WordAnswer(name=each.name, told=each.signature) for each in FUNCTIONS.values()]
    shown = [each for each in functions if not each.name.startswith("_")]
    return VocabularyAnswer(keywords=sorted(KEYWORDS), functions=shown, aggregates=sorted(AGGREGATES))


def _show(finding: Diagnostic, field: str = "") -> ProblemAnswer:
    span = finding.span
    return ProblemAnswer(
        code=finding.code,
        message=finding.message,
        help=finding.help,
        severity=finding.severity.value,
        start=None if span is None else span.start,
        end=None if span is None else span.end,
        field=field,
    )


def _column(field: Field) -> ColumnAnswer:
    return ColumnAnswer(qualifier=field.qualifier, name=field.name, type=str(field.type))


ROUTES = (
    Route("GET", "/v1/vocabulary", tell_vocabulary, Need.CALLER),
    Route("POST", "/v1/graph/read", read_graph, Need.READ),
    Route("POST", "/v1/graph/write", write_graph, Need.READ),
)

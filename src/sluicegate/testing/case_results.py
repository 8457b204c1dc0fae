# Queries in our own language, of attributes that the case has.
# ruff: noqa: S608
"""Random cases over named results: a case's query becomes the result `R`, which somebody else reads."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Column
from sluicegate.language.graph_to_query import graph_to_query
from sluicegate.language.named_results import read_result
from sluicegate.language.print_query import print_query
from sluicegate.language.resolve import read_query
from sluicegate.language.statements import QueryText
from sluicegate.policy.model import Grant, Privilege, Stream, StreamRef, Subject
from sluicegate.testing.cases import Case

RESULT, READER = "R", "v"


def name_result(case: Case) -> Case | None:
    """The case with its query as a named result of its user's, and a full grant to another; None where it cannot be one."""
    text = print_query(graph_to_query(case.root))
    try:
        found = read_result(case.catalog, QueryText(text))
    except DiagnosticError as error:
        if error.diagnostics[0].code != "result-event-time":
            raise
        return None
    stream = Stream(RESULT, found.attributes, found.event_time, owner=case.user, query=text)
    columns = tuple(Column(RESULT, name, of) for name, of in found.attributes)
    ref = StreamRef(RESULT, RESULT)
    full = Grant("full", Subject(READER, is_user=True), Privilege.READ, (ref,), columns)
    grants = {**case.catalog.grants, full.name: full}
    catalog = replace(case.catalog, streams={**case.catalog.streams, RESULT: stream}, grants=grants)
    # a maker in a session without some of its roles may not read its result
    catalog = catalog.with_user(replace(catalog.users[case.user], inactive=()))
    # with the pairs' time, where it has pairs
    return replace(case, catalog=catalog, root=found.root, united=False)


def ask_result(case: Case, user: str, query: str) -> Case:
    """The case of a user who asks a query over the result."""
    asked = read_query(query, case.catalog)
    return replace(case, user=user, root=asked.root, outputs=asked.outputs)


def select_all(case: Case) -> str:
    """Every attribute, under a name of its own: window bounds have names that no output may have."""
    names = [name for name, _ in case.catalog.streams[RESULT].attributes]
    items = [f'"{name}" AS "c {name}"' for name in names]
    return f"SELECT {', '.join(items)} FROM {RESULT}"


def random_reading(rng: Random, case: Case) -> str:
    """A selection, a window, or a join of the result with itself."""
    stream = case.catalog.streams[RESULT]
    name = f'"{rng.choice([each for each, _ in stream.attributes])}"'
    match rng.randrange(3):
        case 0:
            return f"SELECT {name} AS a FROM R WHERE {name} IS NOT NULL"
        case 1 if stream.event_time is not None:
            return f"SELECT COUNT({name}) AS n, COUNT(*) AS m FROM R [RANGE 7 SECONDS SLIDE 3 SECONDS]"
        case _:
            window = "" if stream.event_time is None else "[RANGE 4 SECONDS]"
            joined = f"R AS a {window} JOIN R AS b {window} ON a.{name} = b.{name}"
            return f"SELECT a.{name} AS x, b.{name} AS y FROM {joined}"

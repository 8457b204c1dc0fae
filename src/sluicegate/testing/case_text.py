"""A case by way of the language: printed and read again, catalog and query (I6)."""

from __future__ import annotations

from dataclasses import replace

from sluicegate.language.graph_to_query import graph_to_query
from sluicegate.language.load import read_catalog
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_query import print_query
from sluicegate.language.print_statements import print_statements
from sluicegate.language.resolve import read_query
from sluicegate.testing.cases import Case


def catalog_text(case: Case) -> str:
    return print_statements(catalog_statements(case.catalog))


def query_text(case: Case) -> str:
    """Without UNITED, which is no part of the graph."""
    return print_query(graph_to_query(case.root))


def through_text(case: Case) -> Case:
    """The same case as the language reads it; what the language refuses raises."""
    catalog = read_catalog(catalog_text(case))
    resolved = read_query(query_text(case), catalog)
    return replace(case, catalog=catalog, root=resolved.root, outputs=resolved.outputs)

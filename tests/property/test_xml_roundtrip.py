"""I6 for ASSIST's XML: every query, plan and catalog of the corpus, and random graphs, come back as they were, by the schema."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
from lxml import etree

import sluicegate
from sluicegate.api import Denied, Gate
from sluicegate.errors import DiagnosticError
from sluicegate.graph.operators import NOBODY, Node, Shield
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rebuild import rebuild
from sluicegate.language.fold import fold_together
from sluicegate.language.graph_to_query import graph_to_query
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_query import print_query
from sluicegate.language.resolve import ResolvedQuery, read_query
from sluicegate.language.statements import CreateGrant, CreateRole
from sluicegate.language.xml.read_catalog import read_authorizations
from sluicegate.language.xml.read_plan import read_plan
from sluicegate.language.xml.write_catalog import print_authorizations
from sluicegate.language.xml.write_graph import print_plan, print_resolved
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.service.store.difference import is_same
from sluicegate.source import SourceText
from sluicegate.testing.corpus import Case, load_corpus
from unit.graph_cases import ATTRIBUTES, TABLE_ATTRIBUTES
from unit.graph_random import GraphMaker

ROOT = Path(__file__).parents[2]
FOLDERS = [
    ROOT / "tests" / "corpus",
    *sorted(each for each in (ROOT / "examples").iterdir() if each.is_dir()),
]
SCHEMA = Path(sluicegate.__file__).parent / "language" / "xml" / "assist.xsd"
RANDOM = Catalog(
    streams={
        "S": Stream("S", ATTRIBUTES, "ts"),
        "T": Stream("T", ATTRIBUTES, "ts"),
        "D": Stream("D", TABLE_ATTRIBUTES, None),
    }
)


@cache
def schema() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(SCHEMA))


def check_schema(text: str) -> None:
    schema().assertValid(etree.fromstring(text.encode()))


@cache
def corpus() -> list[tuple[Case, Catalog]]:
    found = []
    for file in (file for folder in FOLDERS for file in load_corpus(folder)):
        for case in file.cases:
            try:
                found.append((case, case.load_catalog()))
            except DiagnosticError:
                continue
    return found


def read_cases() -> list[tuple[Case, Catalog, ResolvedQuery]]:
    found = []
    for case, catalog in corpus():
        try:
            found.append((case, catalog, read_query(case.query, catalog)))
        except DiagnosticError:
            continue
    return found


def test_queries_of_the_corpus_come_back() -> None:
    cases = read_cases()
    for case, catalog, asked in cases:
        text = print_resolved(asked)
        check_schema(text)
        assert replace(read_query(text, catalog), warnings=()) == replace(asked, warnings=()), case.label
    assert len(cases) > 400


def test_authorized_graphs_of_the_corpus_come_back() -> None:
    compared = 0
    for case, catalog, _ in read_cases():
        try:
            plan = Gate(catalog).authorize(case.user, case.query).plan
        except (Denied, DiagnosticError):
            continue
        if plan is not None:
            compared += 1
            text = print_plan(plan)
            check_schema(text)
            assert read_plan(text) == _forget_who(plan), case.label
    assert compared > 300


def _forget_who(plan: AuthorizedPlan) -> AuthorizedPlan:
    def forget(node: Node) -> Node:
        return replace(node, who=NOBODY) if isinstance(node, Shield) else node

    return replace(plan, root=rebuild(plan.root, forget))


def test_catalogs_of_the_corpus_come_back() -> None:
    seen = set()
    for case, catalog in corpus():
        statements = catalog_statements(catalog)
        if (key := str(statements)) in seen:
            continue
        seen.add(key)
        others = [each for each in statements if not isinstance(each, CreateRole | CreateGrant)]
        text = print_authorizations(catalog)
        check_schema(text)
        made = read_authorizations(SourceText("made.xml", text), others)
        assert is_same(fold_together([*others, *made]), catalog), case.label


@pytest.mark.parametrize("batch", range(2))
def test_random_graphs_come_back(batch: int) -> None:
    """As plans to the letter; those that are queries also by way of the resolver."""
    queries = 0
    for seed in range(batch * 100, batch * 100 + 100):
        plan = GraphMaker(Random(seed)).plan()
        text = print_plan(plan)
        check_schema(text)
        assert read_plan(text) == plan, seed
        asked = _as_query(plan.root)
        if asked is not None:
            queries += 1
            assert read_query(print_resolved(asked), RANDOM).root == asked.root, seed
    assert queries > 10


def _as_query(root: Node) -> ResolvedQuery | None:
    """None where the graph has what only the rewriter makes, or a size that no text can have."""
    try:
        return read_query(print_query(graph_to_query(root)), RANDOM)
    except (TypeError, DiagnosticError):
        return None

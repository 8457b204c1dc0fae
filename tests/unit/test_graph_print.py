"""Graphs drawn for people and written as JSON."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest

from sluicegate.expr.nodes import Compare, FactRef, Literal, Op, Polygon, SelfRef
from sluicegate.expr.types import POLYGON, STRING
from sluicegate.graph.json_expr import GraphFormatError, expr_from_json, expr_json
from sluicegate.graph.operators import AggFunction, Join, Node, Select, Unfold, UnfoldCase, walk
from sluicegate.graph.pretty import draw
from sluicegate.graph.to_json import graph_from_json, graph_json
from sluicegate.graph.windows import TimeWindow, TupleWindow
from unit.graph_cases import CASES, D, S, T, aggregate, col, eq, number
from unit.graph_random import GraphMaker

HOUR, MINUTE = 3_600_000_000, 60_000_000


def test_draw_marks_what_a_policy_put_there() -> None:
    allowed = Select(S, eq(col(S, "g"), SelfRef("Platoon")), ("own_platoon", "other"))
    root = aggregate(
        allowed, {"n": (AggFunction.COUNT_DISTINCT, "id")}, TimeWindow(HOUR, 10 * MINUTE), by=("g",)
    )
    assert draw(root) == (
        "Σ COUNT(DISTINCT S.id) as n over 1 hour / 10 minutes by S.g\n"
        "└─ σ S.g = self.Platoon   ◂ own_platoon, other\n"
        "   └─ S\n"
    )


def test_draw_shows_a_shared_node_once() -> None:
    shared = next(case for case in CASES if case.name.startswith("a shared node"))
    text = draw(shared.plan.root)
    assert text.count("σ S.id > 0") == 1
    assert "#1, drawn above" in text
    assert text.startswith("⋈ l.id = r.id   [5 microseconds; 5 microseconds]\n├─ π")


def test_draw_windows_tables_and_cases() -> None:
    joined = Join(S, D, eq(col(S, "id"), col(D, "id")), TupleWindow(1, 0), None)
    shown = Unfold(joined, (col(joined, "name"),), (UnfoldCase(eq(col(joined, "v"), number(1)), (), ("g",)),))
    assert draw(shown) == (
        "show each row as its grants allow:\n"
        "│    nothing more where S.v = 1   ◂ g\n"
        "└─ ⋈ S.id = D.id   [1 row; all]\n"
        "   ├─ S\n"
        "   └─ D (table)\n"
    )


def test_draw_leaves_hidden_columns_out_unless_asked() -> None:
    labelled = next(case for case in CASES if case.name.startswith("partitions"))
    assert "#grant" not in draw(labelled.plan.root)
    assert "apart for each #grant.name" in draw(labelled.plan.root, hidden=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_json_gives_the_graph_back(case: Any) -> None:
    check_round_trip(case.plan.root)


def test_json_gives_random_graphs_back() -> None:
    for seed in range(200):
        check_round_trip(GraphMaker(Random(seed)).plan().root)


def check_round_trip(root: Node) -> None:
    written = json.dumps(graph_json(root), sort_keys=True)
    read = graph_from_json(json.loads(written))
    assert read == root
    assert [each.fields for each in walk(read)] == [each.fields for each in walk(root)]
    assert json.dumps(graph_json(read), sort_keys=True) == written
    assert draw(read) == draw(root)


def test_json_keeps_sharing_and_tells_policy_from_query() -> None:
    shared = next(case for case in CASES if case.name.startswith("a shared node"))
    graph = graph_json(shared.plan.root)
    assert [node["kind"] for node in graph["nodes"]] == ["source", "select", "project", "project", "join"]
    allowed = graph_json(Select(S, eq(col(S, "id"), number(1)), ("mine",)))["nodes"]
    assert [(node["policy"], node["grants"]) for node in allowed] == [(False, []), (True, ["mine"])]


def test_json_of_sets_polygons_and_facts() -> None:
    square = Polygon(((((0.0, 0.0), (1.0, 0.0), (1.0, 1.5)),),))
    for expr in (
        Literal(square, POLYGON),
        Literal(frozenset({"a", "b"}), STRING),
        Compare(Op.LE, FactRef("f", (SelfRef("x"),)), number(1)),
    ):
        assert expr_from_json(json.loads(json.dumps(expr_json(expr)))) == expr


GRAPH = graph_json(
    aggregate(
        Join(S, T, eq(col(S, "v"), col(T, "v")), TimeWindow(1, 0), TimeWindow(1, 0)),
        {"n": (AggFunction.COUNT, None)},
        TimeWindow(2, 2),
    )
)


def broken(*path: str | int, value: object) -> dict[str, Any]:
    graph = copy.deepcopy(GRAPH)
    place: Any = graph
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([], "a graph is not an object"),
        ({}, "`nodes` is not a list"),
        (broken("root", value=99), "there is no node 99"),
        (broken("nodes", 0, "kind", value="teleport"), "unknown operator `teleport`"),
        (broken("nodes", 0, "kind", value=["source"]), "unknown operator"),
        (broken("nodes", 1, "id", value=1), "two nodes have the id 1"),
        (broken("nodes", 0, "event_time", value="nope"), "`nope` is not an attribute"),
        (broken("nodes", 0, "attributes", 0, "type", value="MONEY"), "unknown type `MONEY`"),
        (broken("nodes", 2, "inputs", value=[1]), "does not fit together"),
        (broken("nodes", 2, "inputs", value=[1, 4]), "uses node 4 before it is there"),
        (broken("nodes", 2, "predicate", "expr", value="magic"), "unknown expression `magic`"),
        (broken("nodes", 2, "predicate", "op", value="=="), "does not have the parts it needs"),
        (broken("nodes", 2, "predicate", "args", value=[]), "does not have the parts it needs"),
        (broken("nodes", 2, "windows", 0, "kind", value="landmark"), "unknown window `landmark`"),
        (broken("nodes", 3, "window", value=None), "needs a window"),
        (broken("nodes", 3, "window", "size", value=-1), "not a whole number"),
        (broken("nodes", 3, "calls", 0, "function", value="MEDIAN"), "unknown aggregate function `MEDIAN`"),
        (broken("nodes", 3, "grants", value=[1]), "`grants` is not a text"),
    ],
)
def test_json_that_is_not_a_graph_is_refused(graph: object, message: str) -> None:
    with pytest.raises(GraphFormatError, match=message):
        graph_from_json(graph)


def test_an_unknown_operator_is_neither_drawn_nor_written() -> None:
    class Other(Node):
        __slots__ = ()

    with pytest.raises(TypeError, match="unknown operator"):
        draw(Other())
    with pytest.raises(TypeError, match="unknown operator"):
        graph_json(Other())

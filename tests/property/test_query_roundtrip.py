"""I6 for queries: trees of random shape print as text that reads back equal, and random graphs keep their rows."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
    Case,
    Cast,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Op,
    Or,
)
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    COLUMN_TYPES,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    UNKNOWN,
)
from sluicegate.expr.values import DAY, TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.interpret import run
from sluicegate.graph.operators import Node
from sluicegate.language.graph_to_query import graph_to_query
from sluicegate.language.print_query import print_query
from sluicegate.language.queries import parse_query
from sluicegate.language.query_syntax import (
    GroupItem,
    JoinItem,
    NestedItem,
    Output,
    Query,
    SelectQuery,
    Star,
    Start,
    StreamItem,
    WindowSpec,
)
from sluicegate.language.resolve import read_query
from sluicegate.language.syntax import Between, FuncCall, Lit, Member, Name, Negate
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from unit.graph_cases import ATTRIBUTES, TABLE_ATTRIBUTES
from unit.graph_random import GraphMaker, random_data

names = st.sampled_from(
    ["a", "b", "Ä b", "select", "END", "united", 'x"y', "timestamp", "start", "range", "π", "over"]
)
functions = st.sampled_from(["abs", "COUNT", "target", "end", "coalesce"])
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=6)
integers = st.integers(-(2**63), 2**63 - 1)
literals = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda value: Lit(value, INT)),
    integers.map(lambda value: Lit(value, BIGINT)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: Lit(value, DOUBLE)),
    texts.map(lambda value: Lit(value, STRING)),
    st.booleans().map(lambda value: Lit(value, BOOLEAN)),
    st.integers(TIMESTAMP_MIN, TIMESTAMP_MAX).map(lambda value: Lit(value, TIMESTAMP)),
    st.integers(0, DAY - 1).map(lambda value: Lit(value, TIME)),
    st.integers(-(10**15), 10**15).map(lambda value: Lit(value, INTERVAL)),
    st.sampled_from([UNKNOWN, *COLUMN_TYPES]).map(lambda of: Lit(None, of)),
)
leaves = st.one_of(literals, st.builds(Name, st.one_of(st.just(""), st.just("self"), names), names))


def _extend(below: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    several = st.lists(below, min_size=2, max_size=3).map(tuple)
    calls = st.builds(FuncCall, functions, st.lists(below, min_size=1, max_size=2).map(tuple), st.booleans())
    return st.one_of(
        st.builds(And, several),
        st.builds(Or, several),
        st.builds(Not, below),
        st.builds(Negate, below),
        st.builds(IsNull, below),
        st.builds(Compare, st.sampled_from(Op), below, below),
        st.builds(Arith, st.sampled_from(ArithOp), below, below),
        st.builds(Between, below, below, below),
        st.builds(In, below, several),
        st.builds(Like, below, texts),
        st.builds(Member, below, calls),
        st.builds(Cast, below, st.sampled_from(COLUMN_TYPES)).filter(lambda cast: not _is_null(cast.arg)),
        st.builds(Case, st.lists(st.tuples(below, below), min_size=1, max_size=2).map(tuple), below),
        calls,
        st.builds(FuncCall, functions, st.just(()), st.just(False), st.booleans()),
    )


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Lit) and expr.value is None


exprs = st.recursive(leaves, _extend, max_leaves=8)
extents = st.integers(1, 10**14)
windows = st.builds(WindowSpec, extents, st.none() | extents, st.booleans())
maybe_windows = st.none() | windows
streams = st.builds(StreamItem, names, st.none() | names, maybe_windows)
outputs = st.one_of(st.builds(Star, st.just("") | names), st.builds(Output, exprs, st.none() | names))


def _queries(below: st.SearchStrategy[Query] | None) -> st.SearchStrategy[Query]:
    items = (
        streams if below is None else st.one_of(streams, st.builds(NestedItem, below, names, maybe_windows))
    )
    joins = st.builds(JoinItem, items, items, exprs)
    grouped = st.builds(JoinItem, st.builds(GroupItem, joins, maybe_windows), items, exprs)
    selects = st.builds(
        SelectQuery,
        st.lists(outputs, min_size=1, max_size=2).map(tuple),
        st.lists(st.one_of(items, joins, grouped), min_size=1, max_size=2).map(tuple),
        st.none() | exprs,
        st.lists(exprs, max_size=2).map(tuple),
        maybe_windows,
        st.none() | exprs,
        st.just(False),
    )
    return st.builds(Query, st.lists(selects, min_size=1, max_size=2).map(tuple))


starts = st.one_of(st.none(), st.sampled_from(Start), st.integers(TIMESTAMP_MIN, TIMESTAMP_MAX))
queries = st.builds(lambda query, start: Query(query.branches, start), _queries(_queries(None)), starts)


@given(queries)
def test_printed_queries_read_back(query: Query) -> None:
    assert parse_query(print_query(query)) == query


CATALOG = Catalog(
    streams={
        "S": Stream("S", ATTRIBUTES, "ts"),
        "T": Stream("T", ATTRIBUTES, "ts"),
        "D": Stream("D", TABLE_ATTRIBUTES, None),
    }
)


@pytest.mark.parametrize("batch", range(4))
def test_graphs_keep_their_rows(batch: int) -> None:
    """A graph of any shape, printed and read again, gives the same rows; printed once more it gives the same graph."""
    compared = 0
    for seed in range(batch * 150, batch * 150 + 150):
        rng = Random(seed)
        root = GraphMaker(rng).plan().root
        again = _read_again(root)
        if again is None:
            continue
        compared += 1
        data = random_data(rng)
        assert _bag(root, data) == _bag(again, data), seed
        assert _read_again(again) == again, seed
    assert compared > 20


def _read_again(root: Node) -> Node | None:
    """None where the graph has what only the rewriter makes, or a size that no text can have."""
    try:
        text = print_query(graph_to_query(root))
    except TypeError:
        return None
    try:
        return read_query(text, CATALOG).root
    except DiagnosticError as error:
        codes = {each.code for each in error.diagnostics}
    assert codes <= {"bad-duration", "window-mixed"}, text
    return None


def _bag(root: Node, data: object) -> Counter[tuple[object, ...]]:
    shown = [each.column for each in root.fields if not each.hidden]
    return Counter(tuple(row.values[column] for column in shown) for row in run(root, data))

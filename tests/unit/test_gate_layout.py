"""Columns become rows as the interpreter makes them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.expr.nodes import Column
from sluicegate.expr.types import BIGINT, BOOLEAN, INT, STRING, TIMESTAMP
from sluicegate.graph.operators import WINDOW_END, WINDOW_START, Source
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.graph.rows import Row, result_rows
from sluicegate.runtime.gate.layout import Field, Layout, find_layout, read_layout, write_layout
from sluicegate.targets.spark import result_columns

TYPES = {
    BIGINT: pa.int64(),
    INT: pa.int32(),
    BOOLEAN: pa.bool_(),
    STRING: pa.string(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
}


def _plan(**labels: Any) -> AuthorizedPlan:
    source = Source("s", "s", (("a", INT), ("a_shown", BOOLEAN), ("b", STRING), ("t", TIMESTAMP)), "t")
    a, shown, b, t = (each.column for each in source.fields)
    return AuthorizedPlan(
        source, (OutputColumn("a", a, shown), OutputColumn("b", b), OutputColumn("t", t)), **labels
    )


ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 9),
        st.none() | st.booleans(),
        st.none() | st.text(),
        st.none() | st.integers(0, 99),
    )
)


@given(ROWS, st.booleans())
def test_rows_are_those_of_the_interpreter(rows: list[tuple[Any, ...]], is_labelled: bool) -> None:
    plan = _plan()
    if is_labelled:
        plan = _plan(label=plan.outputs[1].column)
    columns = [column for _, column in result_columns(plan)]
    known = [dict(zip([each.column for each in plan.root.fields], row, strict=True)) for row in rows]
    expected = result_rows([Row(each, None, ()) for each in known], plan.outputs, plan.label)
    table = pa.table(
        {
            f"o{at}": pa.array([each[column] for each in known], TYPES[column.of])
            for at, column in enumerate(columns)
        }
    )
    assert find_layout(plan).make_rows(table) == expected


def test_window_bounds_and_label_as_the_interpreter_gives_them() -> None:
    layout = Layout((Field("n", 0),), label=1, bounds=2)
    time = pa.timestamp("us")
    table = pa.table(
        {
            "o0": [1, 2],
            "o1": ["g", None],
            "o2": pa.array([10, None], time),
            "o3": pa.array([20, 7], time),
        }
    )
    column = Column("x", "n", INT)
    label = Column("x", "l", STRING)
    rows = [
        Row({column: 1, label: "g", WINDOW_START: 10, WINDOW_END: 20}, None, ()),
        Row({column: 2, label: None, WINDOW_START: None, WINDOW_END: 7}, None, ()),
    ]
    assert layout.make_rows(table) == result_rows(rows, (OutputColumn("n", column),), label)


def test_a_table_under_output_names_holds_no_withheld_value() -> None:
    layout = Layout((Field("secret", 0, 1), Field("open", 2)))
    table = pa.table({"q": [1, 1, 1], "o0": [1, 2, 3], "o1": [True, False, None], "o2": ["a", None, "c"]})
    named = layout.name_columns(table)
    assert named.column("secret").to_pylist() == [1, None, None]
    assert named.column("open").to_pylist() == ["a", None, "c"]
    assert len(named.column_names) == 3


def test_rows_without_outputs_are_counted() -> None:
    assert Layout(()).make_rows(pa.table({"q": [1, 1]})) == [{}, {}]


@given(
    st.builds(
        Layout,
        st.lists(st.builds(Field, st.text(), st.integers(0, 9), st.none() | st.integers(0, 9))).map(tuple),
        st.none() | st.integers(0, 9),
        st.none() | st.integers(0, 9),
    )
)
def test_a_layout_is_read_as_it_was_written(layout: Layout) -> None:
    assert read_layout(write_layout(layout)) == layout

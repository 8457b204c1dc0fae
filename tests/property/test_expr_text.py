"""I6 for expressions: what `to_text` writes, the language reads as the same expression."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.expr.functions import lookup
from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Op,
    Or,
    SelfRef,
    Value,
)
from sluicegate.expr.text import to_text
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INT_RANGE,
    INTERVAL,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Type,
)
from sluicegate.expr.values import LONG_MAX, LONG_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.language.expressions import read_expression
from sluicegate.language.scope import Scope
from sluicegate.policy.model import Stream
from sluicegate.source import SourceText

NAMES = {
    "x": INT,
    "odd name": INT,
    "y": BIGINT,
    "d": DOUBLE,
    "select": DOUBLE,
    "s": STRING,
    'q"': STRING,
    "ts": TIMESTAMP,
    "b": BOOLEAN,
}
SCOPE = Scope.of_policy([("a b", Stream("S", tuple(NAMES.items())))], {"target": DOUBLE})
COLUMNS = {
    of: st.sampled_from([Column("a b", n, t) for n, t in NAMES.items() if t == of]) for of in NAMES.values()
}


def literals(of: Type, values: st.SearchStrategy[Value]) -> st.SearchStrategy[Expr]:
    return values.map(lambda value: Literal(value, of))


PLAIN: dict[Type, st.SearchStrategy[Expr]] = {
    INT: literals(INT, st.integers(*INT_RANGE[INT])) | COLUMNS[INT],
    BIGINT: literals(BIGINT, st.integers(LONG_MIN, LONG_MAX)) | COLUMNS[BIGINT],
    DOUBLE: literals(DOUBLE, st.floats(allow_nan=False, allow_infinity=False))
    | COLUMNS[DOUBLE]
    | st.just(FactRef("target", (Literal("it's", STRING),), DOUBLE)),
    STRING: literals(STRING, st.text("a'%_\\\" é", max_size=5))
    | COLUMNS[STRING]
    | st.just(SelfRef("Platoon")),
    TIMESTAMP: literals(TIMESTAMP, st.integers(TIMESTAMP_MIN, TIMESTAMP_MAX)) | COLUMNS[TIMESTAMP],
}
NUMBERS = st.recursive(
    PLAIN[INT] | PLAIN[BIGINT] | PLAIN[DOUBLE],
    lambda inner: (
        st.builds(Arith, st.sampled_from(list(ArithOp)), inner, inner)
        | inner.map(lambda arg: Cast(arg, INT))
        | inner.map(lambda arg: Call("abs", (arg,), lookup("abs").result_type([arg.type])))
    ),
    max_leaves=6,
)
MOMENTS = PLAIN[TIMESTAMP] | st.builds(
    Arith,
    st.sampled_from([ArithOp.ADD, ArithOp.SUB]),
    PLAIN[TIMESTAMP],
    literals(INTERVAL, st.integers(-(10**15), 10**15)),
)
OPS = st.sampled_from(list(Op))
ATOMS = st.one_of(
    st.builds(Compare, OPS, NUMBERS, NUMBERS),
    st.builds(Compare, OPS, PLAIN[STRING], PLAIN[STRING]),
    st.builds(Compare, OPS, MOMENTS, MOMENTS),
    st.builds(In, NUMBERS, st.lists(NUMBERS, min_size=1, max_size=3).map(tuple)),
    st.builds(IsNull, NUMBERS | COLUMNS[STRING]),
    st.builds(Like, COLUMNS[STRING], st.text("ab%_'", max_size=4)),
    COLUMNS[BOOLEAN],
)
PREDICATES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner.filter(lambda arg: not isinstance(arg, And)), min_size=2, max_size=3).map(
            lambda a: And(tuple(a))
        ),
        st.lists(inner.filter(lambda arg: not isinstance(arg, Or)), min_size=2, max_size=3).map(
            lambda a: Or(tuple(a))
        ),
        inner.map(Not),
        st.builds(Compare, OPS, inner, inner),
        st.builds(lambda when, then: Case(((when, then),), Literal(None, UNKNOWN)), inner, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(PREDICATES | NUMBERS)
def test_text_reads_back_as_the_same(expr: Expr) -> None:
    text = to_text(expr)
    assert read_expression(SourceText("<test>", text), SCOPE) == expr

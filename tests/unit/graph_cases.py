"""Small graphs with their rows worked out by hand; every engine must give exactly these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import (
    TRUE,
    And,
    Arith,
    ArithOp,
    Case,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    IsNull,
    Literal,
    Op,
    SelfRef,
    Value,
)
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Unfold,
    UnfoldCase,
    Union,
    field_of,
    result_type,
    shown_field,
    sources,
)
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.policy.model import Stream

ATTRIBUTES = (("ts", TIMESTAMP), ("id", INT), ("g", STRING), ("v", DOUBLE))
TABLE_ATTRIBUTES = (("id", INT), ("name", STRING))


def stream(alias: str, name: str | None = None) -> Source:
    return Source(name or alias, alias, ATTRIBUTES, "ts")


def table(alias: str) -> Source:
    return Source(alias, alias, TABLE_ATTRIBUTES, None)


def col(node: Node, name: str, qualifier: str | None = None) -> Column:
    found = [each for each in node.fields if each.name == name and qualifier in (None, each.qualifier)]
    assert len(found) == 1, (name, qualifier, node.fields)
    return found[0].column


def number(value: int) -> Literal:
    return Literal(value, INT)


def eq(left: Expr, right: Expr) -> Compare:
    return Compare(Op.EQ, left, right)


def call(function: AggFunction, arg: Expr | None, name: str) -> AggCall:
    return AggCall(
        function, arg, Field("out", name, result_type(function, None if arg is None else arg.type))
    )


def aggregate(
    below: Node,
    calls: Mapping[str, tuple[AggFunction, str | None]],
    window: Window,
    by: Sequence[str] = (),
    partition: tuple[Column, ...] = (),
) -> Aggregate:
    made = tuple(
        call(function, None if arg is None else col(below, arg), name)
        for name, (function, arg) in calls.items()
    )
    keys = tuple(Item(Field("out", name, col(below, name).of), col(below, name)) for name in by)
    return Aggregate(below, made, window, keys, partition)


def plan_of(root: Node, label: Column | None = None) -> AuthorizedPlan:
    """Every visible column under its name (with the alias where two share it), with its companion where it has one."""
    known = {each.column for each in root.fields}
    visible = [each.column for each in root.fields if not each.hidden]
    names = [each.name for each in visible]
    outputs = []
    for column in visible:
        name = column.name if names.count(column.name) == 1 else f"{column.qualifier}.{column.name}"
        shown = shown_field(column).column
        outputs.append(OutputColumn(name, column, shown if shown in known else None))
    return AuthorizedPlan(root, tuple(outputs), label)


def streams_of(root: Node) -> dict[str, Stream]:
    return {each.stream: Stream(each.stream, each.attributes, each.event_time) for each in sources(root)}


def rows(*entries: tuple[Value, ...]) -> list[dict[str, Value]]:
    names = [name for name, _ in ATTRIBUTES]
    return [dict(zip(names, entry, strict=True)) for entry in entries]


def names(*entries: tuple[int | None, str]) -> list[dict[str, Value]]:
    return [{"id": number, "name": name} for number, name in entries]


def as_bag(found: Iterable[Mapping[str, Value]]) -> Counter[str]:
    """Rows without order; types are kept apart, the two zeros of a DOUBLE are not."""
    plain = (
        {name: value + 0.0 if isinstance(value, float) else value for name, value in row.items()}
        for row in found
    )
    return Counter(repr(sorted(row.items())) for row in plain)


@dataclass(frozen=True)
class GraphCase:
    name: str
    plan: AuthorizedPlan
    data: Mapping[str, Sequence[Mapping[str, Value]]]
    expected: Sequence[Mapping[str, Value]]
    env: Environment = field(default=EMPTY)


S, T, D = stream("S"), stream("T"), table("D")


def _select() -> GraphCase:
    predicate = And((Compare(Op.GT, col(S, "v"), number(1)), In(col(S, "id"), (number(1), number(2)))))
    data = rows(
        (0, 1, "a", 2.0), (1, 2, "a", None), (2, 3, "a", 5.0), (3, None, "b", 5.0), (4, 2, None, float("inf"))
    )
    return GraphCase(
        "select keeps what is true, not what is unknown",
        plan_of(Select(S, predicate)),
        {"S": data},
        [{"ts": 0, "id": 1, "g": "a", "v": 2.0}],
    )


def _project() -> GraphCase:
    largest = Literal(2**63 - 1, BIGINT)
    items = (
        Item(Field("o", "more", BIGINT), Arith(ArithOp.ADD, largest, col(S, "id"))),
        Item(Field("o", "part", DOUBLE), Arith(ArithOp.DIV, number(6), col(S, "id"))),
        Item(Field("o", "rest", BIGINT), Arith(ArithOp.MOD, number(-7), col(S, "id"))),
        Item(Field("o", "big", DOUBLE), Arith(ArithOp.MUL, col(S, "v"), Literal(1e300, DOUBLE))),
        Item(
            Field("o", "word", STRING), Case(((IsNull(col(S, "g")), Literal("it's", STRING)),), col(S, "g"))
        ),
    )
    data = rows((0, 0, None, 1.0), (0, 3, "x", 1e300), (0, -1, "x", None))
    return GraphCase(
        "project computes, and what cannot be computed is NULL",
        plan_of(Project(S, items)),
        {"S": data},
        [
            {"more": 2**63 - 1, "part": None, "rest": None, "big": 1e300, "word": "it's"},
            {"more": None, "part": 2.0, "rest": -1, "big": None, "word": "x"},
            {"more": 2**63 - 2, "part": -6.0, "rest": 0, "big": None, "word": "x"},
        ],
    )


def _tumbling() -> GraphCase:
    calls = {
        "n": (AggFunction.COUNT, None),
        "vs": (AggFunction.COUNT, "v"),
        "ids": (AggFunction.COUNT_DISTINCT, "id"),
        "low": (AggFunction.MIN, "v"),
        "high": (AggFunction.MAX, "v"),
        "total": (AggFunction.SUM, "id"),
        "mean": (AggFunction.AVG, "v"),
        "first": (AggFunction.FIRST, "v"),
        "last": (AggFunction.LAST, "v"),
    }
    root = aggregate(S, calls, TimeWindow(10, 10), by=("g",))
    # the tuple at 1 arrives after the one at 3; two share time 9
    data = rows(
        (3, 1, "a", 4.0),
        (1, 1, "a", None),
        (9, 2, "a", 8.0),
        (9, 2, "a", 6.0),
        (10, 5, "a", 1.0),
        (4, None, None, 0.5),
        (None, 7, "a", 7.0),
    )
    more = {"low": 0.5, "high": 0.5, "total": None, "mean": 0.5, "first": 0.5, "last": 0.5}
    one = {"low": 1.0, "high": 1.0, "total": 5, "mean": 1.0, "first": 1.0, "last": 1.0}
    return GraphCase(
        "tumbling windows, NULL is a group, FIRST and LAST go by event time and then arrival",
        plan_of(root),
        {"S": data},
        [
            {
                "g": "a",
                "n": 4,
                "vs": 3,
                "ids": 2,
                "low": 4.0,
                "high": 8.0,
                "total": 6,
                "mean": 6.0,
                "first": None,
                "last": 6.0,
                "window_start": 0,
                "window_end": 10,
            },
            {"g": None, "n": 1, "vs": 1, "ids": 0, **more, "window_start": 0, "window_end": 10},
            {"g": "a", "n": 1, "vs": 1, "ids": 1, **one, "window_start": 10, "window_end": 20},
        ],
    )


def _sliding() -> GraphCase:
    root = aggregate(S, {"n": (AggFunction.COUNT, None)}, TimeWindow(10, 4))
    return GraphCase(
        "sliding windows, also before 1970",
        plan_of(root),
        {"S": rows((-1, 1, "a", 1.0), (7, 1, "a", 1.0))},
        [
            {"n": 1, "window_start": -8, "window_end": 2},
            {"n": 1, "window_start": -4, "window_end": 6},
            {"n": 1, "window_start": 0, "window_end": 10},
            {"n": 1, "window_start": 4, "window_end": 14},
        ],
    )


def _sampling() -> GraphCase:
    root = aggregate(S, {"n": (AggFunction.COUNT, None)}, TimeWindow(2, 10))
    return GraphCase(
        "a step above the size leaves gaps",
        plan_of(root),
        {
            "S": rows(
                (0, 1, "a", 1.0), (1, 1, "a", 1.0), (2, 1, "a", 1.0), (-10, 1, "a", 1.0), (-8, 1, "a", 1.0)
            )
        },
        [{"n": 2, "window_start": 0, "window_end": 2}, {"n": 1, "window_start": -10, "window_end": -8}],
    )


def _overflow() -> GraphCase:
    wide = Project(
        S, (Item(Field("o", "n", BIGINT), Arith(ArithOp.MUL, col(S, "id"), Literal(2**62, BIGINT))),)
    )
    root = aggregate(
        wide, {"sum": (AggFunction.SUM, "n"), "mean": (AggFunction.AVG, "n")}, TimeWindow(10, 10)
    )
    return GraphCase(
        "a sum beyond 64 bits is NULL",
        plan_of(root),
        {"S": rows((0, 1, "a", 1.0), (1, 1, "a", 1.0), (10, 1, "a", 1.0))},
        [
            {"sum": None, "mean": 2.0**62, "window_start": 0, "window_end": 10},
            {"sum": 2**62, "mean": 2.0**62, "window_start": 10, "window_end": 20},
        ],
    )


def _tuples() -> GraphCase:
    calls = {"n": (AggFunction.COUNT, None), "ids": (AggFunction.SUM, "id"), "last": (AggFunction.LAST, "id")}
    root = aggregate(S, calls, TupleWindow(3, 2))
    data = rows(
        (5, 1, "a", 1.0),
        (1, 2, "a", 1.0),
        (None, 50, "a", 1.0),
        (3, 4, "a", 1.0),
        (9, 8, "a", 1.0),
        (0, 16, "a", 1.0),
        (2, 32, "a", 1.0),
    )
    return GraphCase(
        "tuple windows count arrivals with an event time, full ones only",
        plan_of(root),
        {"S": data},
        [{"n": 3, "ids": 7, "last": 1}, {"n": 3, "ids": 28, "last": 8}],
    )


def _tuples_grouped() -> GraphCase:
    root = aggregate(
        S, {"n": (AggFunction.COUNT, None)}, TupleWindow(2, 2), by=("g",), partition=(col(S, "id"),)
    )
    root_plan = AuthorizedPlan(root, (OutputColumn("n", col(root, "n")), OutputColumn("g", col(root, "g"))))
    data = rows(
        (0, 1, "a", 1.0),
        (0, None, "z", 1.0),
        (1, 2, "a", 1.0),
        (2, 1, "b", 1.0),
        (3, 2, "a", 1.0),
        (4, 1, "c", 1.0),
        (5, None, "z", 1.0),
    )
    return GraphCase(
        "tuple windows count in each partition, before grouping",
        root_plan,
        {"S": data},
        [{"n": 1, "g": "a"}, {"n": 1, "g": "b"}, {"n": 2, "g": "a"}, {"n": 2, "g": "z"}],
    )


def _pairs(node: Join) -> AuthorizedPlan:
    left, right = col(node, "v", "S"), col(node, "v", "T")
    return AuthorizedPlan(node, (OutputColumn("l", left), OutputColumn("r", right)))


def _time_join() -> GraphCase:
    node = Join(S, T, eq(col(S, "id"), col(T, "id")), TimeWindow(10, 0), TimeWindow(3, 0))
    left = rows((0, 1, "a", 1.0), (20, 1, "a", 2.0), (20, None, "a", 3.0), (None, 1, "a", 4.0))
    right = rows(
        (9, 1, "a", 10.0),
        (10, 1, "a", 11.0),
        (18, 1, "a", 12.0),
        (17, 1, "a", 13.0),
        (20, 1, "a", 14.0),
        (20, None, "a", 15.0),
        (0, 2, "a", 16.0),
    )
    return GraphCase(
        "a join pairs while the earlier is in its side's window",
        _pairs(node),
        {"S": left, "T": right},
        [{"l": 1.0, "r": 10.0}, {"l": 2.0, "r": 12.0}, {"l": 2.0, "r": 14.0}],
    )


def _rows_join() -> GraphCase:
    node = Join(S, T, TRUE, TupleWindow(2, 0), TimeWindow(1, 0))
    left = rows((1, 0, "a", 1.0), (2, 0, "a", 2.0), (2, 0, "a", 3.0), (2, 0, "a", 4.0), (6, 0, "a", 5.0))
    right = rows((1, 0, "a", 10.0), (2, 0, "a", 20.0), (5, 0, "a", 50.0), (6, 0, "a", 60.0))
    pairs = [(1, 10), (3, 20), (4, 20), (3, 50), (4, 50), (4, 60), (5, 60)]
    return GraphCase(
        "a tuple window on a join side is its last tuples at the later event time, ties counted",
        _pairs(node),
        {"S": left, "T": right},
        [{"l": float(one), "r": float(other)} for one, other in pairs],
    )


def _rows_join_partitioned() -> GraphCase:
    node = Join(S, T, TRUE, TupleWindow(1, 0), TimeWindow(1, 0), left_partition=(col(S, "g"),))
    left = rows((1, 0, "a", 1.0), (2, 0, "b", 2.0), (3, 0, "a", 3.0), (3, 0, None, 4.0), (4, 0, None, 5.0))
    return GraphCase(
        "a tuple window on a join side counts in each partition",
        _pairs(node),
        {"S": left, "T": rows((4, 0, "a", 10.0))},
        [{"l": 2.0, "r": 10.0}, {"l": 3.0, "r": 10.0}, {"l": 5.0, "r": 10.0}],
    )


def _table_join() -> GraphCase:
    node = Join(S, D, eq(col(S, "id"), col(D, "id")), TimeWindow(5, 0), None)
    root = aggregate(node, {"n": (AggFunction.COUNT, None)}, TimeWindow(10, 10), by=("name",))
    data = rows((1, 1, "a", 1.0), (50, 1, "a", 1.0), (2, 2, "a", 1.0), (None, 1, "a", 1.0))
    return GraphCase(
        "a table is in every window, a stream's tuple without event time in none",
        plan_of(root),
        {"S": data, "D": names((1, "one"), (1, "uno"), (None, "none"))},
        [
            {"name": "one", "n": 1, "window_start": 0, "window_end": 10},
            {"name": "uno", "n": 1, "window_start": 0, "window_end": 10},
            {"name": "one", "n": 1, "window_start": 50, "window_end": 60},
            {"name": "uno", "n": 1, "window_start": 50, "window_end": 60},
        ],
    )


def _join_order() -> GraphCase:
    node = Join(S, T, TRUE, TimeWindow(10, 0), TimeWindow(10, 0))
    calls = (
        call(AggFunction.FIRST, col(node, "v", "T"), "f"),
        call(AggFunction.SUM, col(node, "v", "S"), "s"),
    )
    root = Aggregate(node, calls, TupleWindow(2, 2))
    # pairs in order: (2; 0 0) (3; 0 1) (3; 1 0) (3; 1 1)
    return GraphCase(
        "pairs are ordered by their event time, then by the arrivals from left to right",
        plan_of(root),
        {"S": rows((2, 0, "a", 1.0), (3, 0, "a", 2.0)), "T": rows((1, 0, "a", 10.0), (3, 0, "a", 20.0))},
        [{"f": 10.0, "s": 2.0}, {"f": 10.0, "s": 4.0}],
    )


def _union() -> GraphCase:
    windowed = aggregate(S, {"n": (AggFunction.COUNT, None)}, TimeWindow(10, 10))
    plain = Project(T, (Item(Field("o", "n", BIGINT), Arith(ArithOp.ADD, col(T, "id"), number(0))),))
    return GraphCase(
        "a union passes bounds where a branch has them",
        plan_of(Union((windowed, plain), (Field("u", "n", BIGINT),))),
        {"S": rows((1, 1, "a", 1.0)), "T": rows((5, 7, "a", 1.0), (5, 7, "a", 1.0))},
        [{"n": 1, "window_start": 0, "window_end": 10}, {"n": 7}, {"n": 7}],
    )


def _union_order() -> GraphCase:
    both = Union((S, T), tuple(Field("u", name, of) for name, of in ATTRIBUTES))
    root = aggregate(
        both, {"sum": (AggFunction.SUM, "id"), "first": (AggFunction.FIRST, "id")}, TupleWindow(2, 2)
    )
    # (1; T 0) (2; S 1) (2; T 1) (5; S 0)
    return GraphCase(
        "rows of a union are ordered by event time, branch and arrival",
        plan_of(root),
        {"S": rows((5, 1, "a", 1.0), (2, 2, "a", 1.0)), "T": rows((1, 4, "a", 1.0), (2, 8, "a", 1.0))},
        [{"sum": 6, "first": 4}, {"sum": 9, "first": 8}],
    )


def _unfold() -> GraphCase:
    g, v = col(S, "g"), col(S, "v")
    cases = (
        UnfoldCase(Compare(Op.GT, v, number(0)), (g,), ("one",)),
        UnfoldCase(Compare(Op.GT, col(S, "id"), number(1)), (v,), ("two",)),
    )
    root = Unfold(S, (g, v), cases)
    data = rows((0, 1, "a", 1.0), (1, 2, None, 2.0), (2, 3, "c", None), (3, 0, "d", -1.0))
    return GraphCase(
        "a row appears once for each of its ways to be shown; what is not shown is absent, not NULL",
        plan_of(root),
        {"S": data},
        [
            {"ts": 0, "id": 1, "g": "a"},
            {"ts": 1, "id": 2, "g": None},
            {"ts": 1, "id": 2, "v": 2.0},
            {"ts": 2, "id": 3, "v": None},
        ],
    )


def _labelled() -> GraphCase:
    label = Field("#grant", "name", STRING)
    name = Case(((Compare(Op.GT, col(S, "v"), number(1)), SelfRef("who", STRING)),), Literal(None, STRING))
    below = Project(S, (Item(label, name), Item(Field("o", "v", DOUBLE), col(S, "v"))))
    calls = (
        call(AggFunction.COUNT, None, "n"),
        call(
            AggFunction.COUNT_IF, Compare(Op.GT, col(below, "v"), FactRef("limit", (SelfRef("who"),))), "over"
        ),
    )
    grouped = Aggregate(below, calls, TimeWindow(10, 10), partition=(label.column,))
    early = Compare(Op.LT, WINDOW_START, Literal(10, TIMESTAMP))
    env = Environment({"who": "o'hara"}, {("limit", ("o'hara",)): 2.5})
    return GraphCase(
        "partitions are not mixed; profile and facts come from the environment",
        plan_of(Select(grouped, early), label.column),
        {"S": rows((0, 1, "a", 2.0), (1, 1, "a", 3.0), (2, 1, "a", None), (11, 1, "a", 3.0))},
        [
            {"n": 2, "over": 1, "_grant": "o'hara", "window_start": 0, "window_end": 10},
            {"n": 1, "over": 0, "window_start": 0, "window_end": 10},
        ],
        env,
    )


def _unset() -> GraphCase:
    tests = (eq(col(S, "g"), SelfRef("nobody")), eq(col(S, "v"), FactRef("nothing", (), DOUBLE)))
    items = tuple(Item(Field("o", f"t{at}", BOOLEAN), test) for at, test in enumerate(tests))
    return GraphCase(
        "what is not set is NULL",
        plan_of(Project(S, items)),
        {"S": rows((0, 1, "a", 1.0))},
        [{"t0": None, "t1": None}],
    )


def _shared() -> GraphCase:
    base = Select(S, Compare(Op.GT, col(S, "id"), number(0)))
    left = Project(
        base, (Item(Field("l", "id", INT), col(base, "id")), Item(Field("l", "v", DOUBLE), col(base, "v")))
    )
    right = Project(
        base, (Item(Field("r", "id", INT), col(base, "id")), Item(Field("r", "w", DOUBLE), col(base, "v")))
    )
    node = Join(left, right, eq(col(left, "id"), col(right, "id")), TimeWindow(5, 0), TimeWindow(5, 0))
    plan = AuthorizedPlan(node, (OutputColumn("v", col(node, "v")), OutputColumn("w", col(node, "w"))))
    return GraphCase(
        "a shared node feeds both sides",
        plan,
        {"S": rows((0, 1, "a", 1.0), (4, 1, "a", 2.0), (9, 1, "a", 3.0), (0, 0, "a", 4.0))},
        [
            {"v": 1.0, "w": 1.0},
            {"v": 1.0, "w": 2.0},
            {"v": 2.0, "w": 1.0},
            {"v": 2.0, "w": 2.0},
            {"v": 3.0, "w": 3.0},
        ],
    )


def _odd_names() -> GraphCase:
    source = Source('a"; DROP TABLE x --', "step1", (("é'\"", STRING), ("t.t", TIMESTAMP)), "t.t")
    wanted = eq(col(source, "é'\""), Literal("'; --\0\\", STRING))
    below = Project(
        Select(source, wanted),
        (
            Item(Field("A", "x.y", STRING), col(source, "é'\"")),
            Item(Field("a.X", "Y", STRING), Literal("q", STRING)),
        ),
    )
    plan = AuthorizedPlan(
        below, (OutputColumn('"', col(below, "x.y")), OutputColumn("step1", col(below, "Y")))
    )
    return GraphCase(
        "names and texts may hold anything",
        plan,
        {source.stream: [{"é'\"": "'; --\0\\", "t.t": 5}, {"é'\"": "x", "t.t": 5}]},
        [{'"': "'; --\0\\", "step1": "q"}],
    )


def _nested_aggregate() -> GraphCase:
    inner = aggregate(S, {"n": (AggFunction.COUNT, None)}, TimeWindow(10, 10), by=("g",))
    kept = (Item(Field("o", "n", BIGINT), col(inner, "n")), Item(field_of(WINDOW_END), WINDOW_END))
    outer = aggregate(Project(inner, kept), {"most": (AggFunction.MAX, "n")}, TimeWindow(20, 20))
    return GraphCase(
        "an aggregate's row has the last instant of its window",
        plan_of(outer),
        {
            "S": rows(
                (1, 1, "a", 1.0), (2, 1, "a", 1.0), (3, 1, "b", 1.0), (19, 1, "b", 1.0), (20, 1, "b", 1.0)
            )
        },
        [{"most": 2, "window_start": 0, "window_end": 20}, {"most": 1, "window_start": 20, "window_end": 40}],
    )


CASES = [
    _select(),
    _project(),
    _tumbling(),
    _sliding(),
    _sampling(),
    _overflow(),
    _tuples(),
    _tuples_grouped(),
    _time_join(),
    _rows_join(),
    _rows_join_partitioned(),
    _table_join(),
    _join_order(),
    _union(),
    _union_order(),
    _unfold(),
    _labelled(),
    _unset(),
    _shared(),
    _odd_names(),
    _nested_aggregate(),
]

"""Random graphs of the core model and data for them: small domains, so that keys meet and times collide."""

from __future__ import annotations

from random import Random

from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
    Case,
    Column,
    Compare,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Op,
    Or,
    Value,
)
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, NUMERIC, STRING, TIMESTAMP, Type
from sluicegate.graph.operators import (
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
    result_type,
    shown_field,
)
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.graph.shape import find_shapes
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from unit.graph_cases import ATTRIBUTES, TABLE_ATTRIBUTES

UNITED = (INT, STRING, DOUBLE)
POOLS: dict[Type, tuple[Value, ...]] = {
    INT: (0, 1, 2, 3, None),
    BIGINT: (0, 1, 2, 2**63 - 1, None),
    DOUBLE: (0.0, 0.5, 1.0, -1.5, 2.0, None),
    STRING: ("a", "b", "", "Ä'", None),
    TIMESTAMP: (-3, 0, 5, 9, 10),
    BOOLEAN: (True, False, None),
}
FUNCTIONS = tuple(each for each in AggFunction if each is not AggFunction.COMMON_ROLES)


class GraphMaker:
    """Makes graphs from a seed."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.count = 0

    def name(self, start: str) -> str:
        self.count += 1
        return f"{start}{self.count}"

    def plan(self) -> AuthorizedPlan:
        root = self.node(self.rng.randint(1, 4))
        visible = [each.column for each in root.fields if each.qualifier != "#window"]
        known = set(visible)
        outputs = []
        for at, column in enumerate(visible):
            shown = shown_field(column).column
            outputs.append(OutputColumn(f"c{at}", column, shown if shown in known else None))
        return AuthorizedPlan(root, tuple(outputs))

    def node(self, depth: int) -> Node:
        if depth == 0:
            return self.source()
        makers = [self.select, self.project, self.unfold, self.union, self.join, self.join, self.aggregate]
        return self.rng.choice(makers)(depth - 1)

    def source(self) -> Node:
        kind = self.rng.choice("SSTTD")
        if kind == "D":
            return Source("D", self.name("d"), TABLE_ATTRIBUTES, None)
        return Source(kind, self.name("s"), ATTRIBUTES, "ts")

    def select(self, depth: int) -> Node:
        below = self.node(depth)
        return Select(below, self.predicate(below), self.rng.choice([(), ("some_grant",)]))

    def project(self, depth: int) -> Node:
        below = self.node(depth)
        return self.project_to(below, [self.rng.choice(UNITED) for _ in range(self.rng.randint(1, 3))])

    def project_to(self, below: Node, types: list[Type]) -> Node:
        qualifier = self.name("p")
        items = [
            Item(Field(qualifier, f"x{at}", of), self.value(self.columns(below), of))
            for at, of in enumerate(types)
        ]
        return Project(below, tuple(items))

    def unfold(self, depth: int) -> Node:
        below = self.node(depth)
        known = {each.column for each in below.fields}
        usable = [column for column in self.columns(below) if shown_field(column).column not in known]
        variable = tuple(self.some(usable, 2))
        cases = [UnfoldCase(self.predicate(below), variable, ("g1",))]
        cases += [UnfoldCase(self.predicate(below), variable[:1])] if len(variable) > 1 else []
        return Unfold(below, variable, tuple(cases))

    def union(self, depth: int) -> Node:
        branches = tuple(self.project_to(self.node(depth), list(UNITED)) for _ in range(2))
        qualifier = self.name("u")
        return Union(branches, tuple(Field(qualifier, f"x{at}", of) for at, of in enumerate(UNITED)))

    def join(self, depth: int) -> Node:
        left, right = self.node(depth), self.node(self.rng.randint(0, depth))
        parts = [self.predicate_over([*self.columns(left), *self.columns(right)])] if self.coin() else []
        parts += [self.meet(left, right)] if self.rng.random() < 0.8 else []
        windows = [self.join_window(side) for side in (left, right)]
        partitions = [
            tuple(self.some(self.columns(side), 1)) if self.coin() else () for side in (left, right)
        ]
        return Join(left, right, And(tuple(parts)), *windows, *partitions)

    def meet(self, left: Node, right: Node) -> Expr:
        pairs = [
            (one, other)
            for one in self.columns(left)
            for other in self.columns(right)
            if one.of == other.of or {one.of, other.of} <= NUMERIC
        ]
        return Compare(Op.EQ, *self.rng.choice(pairs)) if pairs else And(())

    def join_window(self, side: Node) -> Window:
        if find_shapes(side)[id(side)].ordered and self.coin():
            return TupleWindow(self.rng.randint(1, 3), 0)
        return TimeWindow(self.rng.choice([1, 3, 8, 2**63]), self.rng.choice([0, 5]))

    def aggregate(self, depth: int) -> Node:
        below = self.node(depth)
        shape = find_shapes(below)[id(below)]
        if not shape.timed:
            return below
        qualifier = self.name("a")
        usable = self.columns(below)
        keys = [
            Item(Field(qualifier, f"k{at}", column.of), column)
            for at, column in enumerate(self.some(usable, 2))
        ]
        hidden = [each.column for each in below.fields if each.hidden and each.qualifier != "#window"]
        partition = tuple(hidden if self.coin() else ())
        calls = tuple(self.call(qualifier, at, usable, shape.ordered) for at in range(self.rng.randint(1, 3)))
        return Aggregate(below, calls, self.window(shape.ordered), tuple(keys), partition)

    def call(self, qualifier: str, at: int, usable: list[Column], ordered: bool) -> AggCall:
        function = self.rng.choice(FUNCTIONS)
        if function in (AggFunction.FIRST, AggFunction.LAST) and not ordered:
            function = AggFunction.MAX
        arg: Expr | None
        if function is AggFunction.COUNT_IF:
            arg = self.predicate_over(usable)
        elif function in (AggFunction.SUM, AggFunction.AVG):
            arg = self.value(usable, self.rng.choice([INT, DOUBLE]))
        elif function is AggFunction.COUNT and self.coin():
            arg = None
        else:
            arg = self.value(usable, self.rng.choice(UNITED))
        return AggCall(
            function, arg, Field(qualifier, f"f{at}", result_type(function, arg.type if arg else None))
        )

    def window(self, ordered: bool) -> Window:
        if ordered and self.coin():
            return TupleWindow(self.rng.randint(1, 4), self.rng.randint(1, 4))
        return TimeWindow(self.rng.choice([1, 4, 10]), self.rng.choice([1, 3, 10, 12]))

    def coin(self) -> bool:
        return self.rng.random() < 0.5

    def columns(self, node: Node) -> list[Column]:
        return [each.column for each in node.fields if not each.hidden]

    def some(self, columns: list[Column], most: int) -> list[Column]:
        return self.rng.sample(columns, min(len(columns), self.rng.randint(0, most)))

    def value(self, columns: list[Column], of: Type) -> Expr:
        fitting = [column for column in columns if column.of == of]
        literal = Literal(self.rng.choice(POOLS[of]), of)
        if not fitting or self.rng.random() < 0.1:
            return literal
        column = self.rng.choice(fitting)
        if of == DOUBLE and self.rng.random() < 0.2:
            return Arith(self.rng.choice(list(ArithOp)), column, literal)
        if self.rng.random() < 0.1:
            return Case(((self.predicate_over(columns), column),), literal)
        return column

    def predicate(self, below: Node) -> Expr:
        return self.predicate_over(self.columns(below))

    def predicate_over(self, columns: list[Column], depth: int = 2) -> Expr:
        if depth and self.coin():
            parts = tuple(self.predicate_over(columns, depth - 1) for _ in range(2))
            return self.rng.choice([And(parts), Or(parts), Not(parts[0])])
        if not columns:
            return Literal(self.rng.choice([True, True, None]), BOOLEAN)
        column = self.rng.choice(columns)
        pool = POOLS[column.of]
        match self.rng.randint(0, 3):
            case 0:
                return IsNull(column)
            case 1:
                return In(column, tuple(Literal(value, column.of) for value in self.rng.sample(pool, 3)))
            case _:
                return Compare(
                    self.rng.choice(list(Op)), column, Literal(self.rng.choice(pool[:-1]), column.of)
                )


def random_data(rng: Random) -> dict[str, list[dict[str, Value]]]:
    def tuples(most: int) -> list[dict[str, Value]]:
        times = [
            rng.choice([None, *range(-5, 25)]) if rng.random() < 0.2 else rng.randint(-5, 25)
            for _ in range(most)
        ]
        return [
            {
                "ts": time,
                "id": rng.choice(POOLS[INT]),
                "g": rng.choice(POOLS[STRING]),
                "v": rng.choice(POOLS[DOUBLE]),
            }
            for time in times
        ]

    named = [
        {"id": rng.choice(POOLS[INT]), "name": rng.choice(POOLS[STRING])} for _ in range(rng.randint(0, 4))
    ]
    return {"S": tuples(rng.randint(0, 12)), "T": tuples(rng.randint(0, 12)), "D": named}

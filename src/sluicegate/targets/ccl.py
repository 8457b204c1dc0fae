# Every name in the statements made here is a plain word, every literal is checked in `stream_text`.
# ruff: noqa: S608
"""CCL of Coral8: an authorized plan as statements, one stream for each operator.

A CCL window is read at each row that comes, full or not, so that a window of tuples is three statements: one counts rows
up to the step, one aggregates over the last rows, one keeps what a full window gives where a step ends.
"""

from __future__ import annotations

from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Column, Expr
from sluicegate.expr.types import INT, Kind, Type
from sluicegate.expr.values import write_timestamp
from sluicegate.graph.operators import (
    AggCall,
    AggFunction,
    Aggregate,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.windows import TimeWindow
from sluicegate.targets.base import Abilities, Construct, Part
from sluicegate.targets.stream_plan import refuse
from sluicegate.targets.stream_script import OUTPUT, Outputs, Script, ready
from sluicegate.targets.stream_text import Dialect, name_fields

TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT: "INTEGER",
    Kind.BIGINT: "LONG",
    Kind.DOUBLE: "FLOAT",
    Kind.STRING: "STRING",
    Kind.TIMESTAMP: "TIMESTAMP",
}
_IN_ORDER = "tuples must come in the order of event time, which each must have"

ABILITIES = Abilities(
    target="ccl",
    known={
        Part.OPERATOR: frozenset({"Source", "Select", "Project", "Aggregate", "Join", "Union"}),
        Part.WINDOW: frozenset(
            {
                "tumbling tuple window",
                "sliding tuple window",
                "sampling tuple window",
                "time window of a join side",
            }
        ),
        Part.AGGREGATE: frozenset({"MIN", "MAX", "COUNT", "AVG", "SUM", "LAST"}),
        Part.EXPRESSION: frozenset(
            {"Literal", "Column", "Compare", "And", "Or", "Not", "IsNull", "In", "Call"}
        ),
        Part.FUNCTION: frozenset({"is_member"}),
        Part.TYPE: frozenset({*(kind.value for kind in TYPES), "SET", "UNKNOWN"}),
    },
    notes={
        Construct(Part.OPERATOR, "Project"): "attributes and constants; nothing is computed",
        Construct(Part.WINDOW, "tumbling tuple window"): f"without GROUP BY; {_IN_ORDER}",
        Construct(Part.WINDOW, "sliding tuple window"): f"without GROUP BY; {_IN_ORDER}",
        Construct(Part.WINDOW, "sampling tuple window"): f"without GROUP BY; {_IN_ORDER}",
        Construct(
            Part.WINDOW, "time window of a join side"
        ): f"without a step; rows' own times must be event times; {_IN_ORDER}",
        Construct(Part.AGGREGATE, "SUM"): "of INT and DOUBLE, as AVG",
        Construct(Part.TYPE, "DOUBLE"): "a stream must have no NaN and no infinity",
        Construct(Part.TYPE, "TIMESTAMP"): "the engine's time zone must be UTC",
    },
)

_FUNCTIONS = {
    AggFunction.MIN: "MIN({})",
    AggFunction.MAX: "MAX({})",
    AggFunction.COUNT: "TO_LONG(COUNT({}))",
    AggFunction.SUM: "SUM({})",
    AggFunction.AVG: "AVG({})",
    # the row that closes a window is its last
    AggFunction.LAST: "{}",
}
_PHASE, _COUNT = "phase_", "count_"
_SECOND = 1_000_000


def translate(plan: AuthorizedPlan, env: Environment = EMPTY) -> str:
    """The statements; refused, with names, where CCL cannot express the plan."""
    return _Ccl(_DIALECT, ready(plan, env, ABILITIES)).write()


def _write_null(of: Type) -> str:
    if of.kind not in TYPES:
        raise refuse("ccl", "cannot write a NULL that has no type")
    return "NULL"


def _write_timestamp(micros: int) -> str:
    return f"TIMESTAMP '{write_timestamp(micros)}'"


_DIALECT = Dialect(
    "ccl", "<>", "{} IS NULL", "{} IS NOT NULL", "TRUE", "FALSE", "L", _write_null, _write_timestamp
)


class _Ccl(Script):
    def declare_input(self, source: Source) -> None:
        fields = ", ".join(f"{name} {TYPES[of.kind]}" for name, of in source.attributes)
        self.statements.append(f"CREATE INPUT STREAM {source.stream} SCHEMA ({fields});")

    def open_stream(self, node: Node) -> None:
        if isinstance(node, Aggregate):
            return
        self.streams[id(node)] = self.next_name()
        self._declare(self.streams[id(node)], [(n, c.of) for c, n in self.fields[id(node)].items()])

    def _declare(self, stream: str, fields: list[tuple[str, Type]]) -> None:
        kind = "OUTPUT" if stream == OUTPUT else "LOCAL"
        listed = ", ".join(f"{name} {self._type(of)}" for name, of in fields)
        self.statements.append(f"CREATE {kind} STREAM {stream} SCHEMA ({listed});")

    def _type(self, of: Type) -> str:
        if of.kind not in TYPES:
            raise refuse("ccl", f"has no type for {of}")
        return TYPES[of.kind]

    def _fill(self, stream: str, items: list[str], rest: str) -> None:
        self.statements.append(f"INSERT INTO {stream} SELECT {', '.join(items)} FROM {rest};")

    def write_select(self, node: Select) -> None:
        names = self.fields[id(node.input)]
        condition = self.conditions(names).write_condition(node.predicate)
        source = self.streams[id(node.input)]
        self._fill(self.streams[id(node)], list(names.values()), f"{source} WHERE {condition}")

    def write_project(self, node: Project, items: Outputs) -> None:
        self._fill(self.streams[id(node)], self._list(node.input, items), self.streams[id(node.input)])

    def _list(self, source: Node, items: Outputs) -> list[str]:
        writer = self.conditions(self.fields[id(source)])
        return [_name_item(writer.write_value(expr), name) for name, expr in items]

    def write_aggregate(self, node: Aggregate) -> None:
        if isinstance(node.window, TimeWindow):
            raise refuse("ccl", "tells of a window by time before it ends")
        size, step = node.window.size, node.window.step
        below = name_fields(node.input, (_PHASE, _COUNT))
        counted, each_row, final = (self.next_name() for _ in range(3))
        self.streams[id(node)] = final
        own = self.fields[id(node)]
        results = [(own[call.field.column], call.field.type) for call in node.calls]
        passed = [(name, column.of) for column, name in below.items()]
        given = [_name_item(old, below[column]) for column, old in self.fields[id(node.input)].items()]
        self._declare(counted, [*passed, (_PHASE, INT)])
        self._fill(
            counted,
            [*given, f"COUNT(*) AS {_PHASE}"],
            f"{self.streams[id(node.input)]} KEEP EVERY {step} ROWS",
        )
        self._declare(each_row, [*results, (_PHASE, INT), (_COUNT, INT)])
        calls = [f"{_write_call(call, below)} AS {own[call.field.column]}" for call in node.calls]
        self._fill(each_row, [*calls, _PHASE, f"COUNT(*) AS {_COUNT}"], f"{counted} KEEP {size} ROWS")
        self._declare(final, results)
        phase = (size - 1) % step + 1
        condition = f"{_COUNT} = {size} AND {_PHASE} = {phase}"
        self._fill(final, [name for name, _ in results], f"{each_row} WHERE {condition}")

    def write_join(self, node: Join) -> None:
        sides = []
        names: dict[Column, str] = {}
        for alias, side, window in (("l", node.left, node.left_window), ("r", node.right, node.right_window)):
            names |= {column: f"{alias}.{name}" for column, name in self.fields[id(side)].items()}
            size = 0 if window is None else window.size
            sides.append(f"{self.streams[id(side)]} AS {alias} KEEP {self.write_duration(size)}")
        condition = self.conditions(names).write_condition(node.predicate)
        left, right = (names[_column(self.times[id(side)])] for side in (node.left, node.right))
        within = self.within(node, left, right, {"left": left, "right": right})
        listed = [f"{names[column]} AS {name}" for column, name in self.fields[id(node)].items()]
        self._fill(self.streams[id(node)], listed, f"{', '.join(sides)} WHERE ({condition}) AND {within}")

    def write_union(self, node: Union) -> None:
        own = [self.fields[id(node)][each.column] for each in node.fields]
        for branch in node.branches:
            columns = [each.column for each in branch.fields]
            self._fill(
                self.streams[id(node)],
                self._list(branch, list(zip(own, columns, strict=True))),
                self.streams[id(branch)],
            )

    def write_output(self, top: Node, items: Outputs) -> None:
        self._declare(OUTPUT, [(name, expr.type) for name, expr in items])
        self._fill(OUTPUT, self._list(top, items), self.streams[id(top)])

    def write_duration(self, micros: int) -> str:
        if micros % _SECOND:
            raise refuse("ccl", "is given whole seconds only")
        return f"{micros // _SECOND} SECONDS"


def _column(expr: Expr | None) -> Column:
    if not isinstance(expr, Column):
        raise TypeError("not a column")
    return expr


def _write_call(call: AggCall, names: dict[Column, str]) -> str:
    name = "*" if call.arg is None else names[_column(call.arg)]
    if call.arg is not None and call.arg.type == INT:
        # sums of INTEGER wrap round, averages may be cut
        name = {AggFunction.SUM: f"TO_LONG({name})", AggFunction.AVG: f"TO_FLOAT({name})"}.get(
            call.function, name
        )
    return _FUNCTIONS[call.function].format(name)


def _name_item(text: str, name: str) -> str:
    return text if text == name else f"{text} AS {name}"

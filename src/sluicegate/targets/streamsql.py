# Every name in the statements made here is a plain word, every literal is checked in `stream_text`.
# ruff: noqa: S608
"""StreamSQL of StreamBase, in the form of eXACML+, Fig. 4b: an authorized plan as statements, one stream for each operator.

The engine's own documentation says what it takes for granted: windows open at multiples of their advance, aggregate functions
pass over NULL, a comparison with NULL is not true. What is not in it is refused.
"""

from __future__ import annotations

from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Column, Expr
from sluicegate.expr.types import INT, Kind, Type
from sluicegate.expr.values import write_timestamp
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
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
from sluicegate.targets.stream_plan import Prepared, refuse
from sluicegate.targets.stream_script import OUTPUT, Outputs, Script, describe_window, ready
from sluicegate.targets.stream_text import Dialect

TYPES = {
    Kind.BOOLEAN: "bool",
    Kind.INT: "int",
    Kind.BIGINT: "long",
    Kind.DOUBLE: "double",
    Kind.STRING: "string",
    Kind.TIMESTAMP: "timestamp",
}
_IN_ORDER = "tuples must come in the order of event time, which each must have, from the stream's beginning"

ABILITIES = Abilities(
    target="streamsql",
    known={
        Part.OPERATOR: frozenset({"Source", "Select", "Project", "Aggregate", "Join", "Union"}),
        Part.WINDOW: frozenset(
            {
                "tumbling tuple window",
                "sliding tuple window",
                "tumbling time window",
                "sliding time window",
                "time window of a join side",
            }
        ),
        Part.AGGREGATE: frozenset({"MIN", "MAX", "COUNT", "AVG", "SUM", "FIRST", "LAST"}),
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
        Construct(
            Part.WINDOW, "tumbling time window"
        ): f"of one source, in seconds that divide an hour; {_IN_ORDER}",
        Construct(
            Part.WINDOW, "sliding time window"
        ): f"of one source, in seconds that divide an hour; {_IN_ORDER}",
        Construct(Part.WINDOW, "time window of a join side"): f"without a step; {_IN_ORDER}",
        Construct(Part.AGGREGATE, "SUM"): "of INT and DOUBLE, as AVG",
        Construct(Part.TYPE, "DOUBLE"): "a stream must have no NaN and no infinity",
        Construct(Part.TYPE, "TIMESTAMP"): "to the millisecond",
    },
)

_FUNCTIONS = {
    AggFunction.MIN: "min({})",
    AggFunction.MAX: "max({})",
    AggFunction.FIRST: "firstval({})",
    AggFunction.LAST: "lastval({})",
    AggFunction.COUNT: "long(count({}))",
    AggFunction.SUM: "sum({})",
    AggFunction.AVG: "avg({})",
}
_HOUR, _SECOND, _MILLISECOND = 3_600_000_000, 1_000_000, 1_000


def translate(plan: AuthorizedPlan, env: Environment = EMPTY) -> str:
    """The statements; refused, with names, where StreamSQL cannot express the plan."""
    return _StreamSql(_DIALECT, ready(plan, env, ABILITIES)).write()


def _write_null(of: Type) -> str:
    if of.kind not in TYPES:
        raise refuse("streamsql", "cannot write a NULL that has no type")
    return f"{TYPES[of.kind]}(null)"


def _write_timestamp(micros: int) -> str:
    if micros % _MILLISECOND:
        raise refuse("streamsql", "knows times to the millisecond")
    return f"timestamp('{write_timestamp(micros)}+0000')"


_DIALECT = Dialect(
    "streamsql", "!=", "isnull({})", "notnull({})", "true", "false", "L", _write_null, _write_timestamp
)


class _StreamSql(Script):
    def __init__(self, dialect: Dialect, prepared: Prepared) -> None:
        self._windows: dict[int, str] = {}
        super().__init__(dialect, prepared)

    def declare_input(self, source: Source) -> None:
        fields = ", ".join(f"{name} {TYPES[of.kind]}" for name, of in source.attributes)
        self.statements.append(f"CREATE INPUT STREAM {source.stream} ({fields});")

    def open_stream(self, node: Node) -> None:
        # it is declared when it is filled: the last aggregate may become the output itself
        self.streams[id(node)] = self.next_name()

    def _fill(self, stream: str, select: str, *before: str) -> None:
        kind = "OUTPUT STREAM" if stream == OUTPUT else "STREAM"
        self.statements += [f"CREATE {kind} {stream};", *before, f"{select} INTO {stream};"]

    def write_select(self, node: Select) -> None:
        condition = self.conditions(self.fields[id(node.input)]).write_condition(node.predicate)
        self._fill(self.streams[id(node)], f"SELECT * FROM {self.streams[id(node.input)]} WHERE {condition}")

    def write_project(self, node: Project, items: Outputs) -> None:
        self._fill(self.streams[id(node)], self._select(node.input, items))

    def _select(self, source: Node, items: Outputs) -> str:
        stream = self.streams[id(source)]
        names = {column: f"{stream}.{name}" for column, name in self.fields[id(source)].items()}
        writer = self.conditions(names)
        listed = [_name_item(writer.write_value(expr), name, stream) for name, expr in items]
        return f"SELECT {', '.join(listed)} FROM {stream}"

    def write_aggregate(self, node: Aggregate) -> None:
        self._write_aggregate(node, self.streams[id(node)], self.fields[id(node)])

    def _write_aggregate(self, node: Aggregate, into: str, names: dict[Column, str]) -> None:
        window = self._windows.get(id(node)) or self.choose(describe_window(node.window))
        self._windows[id(node)] = window
        below = self.fields[id(node.input)]
        made: dict[Column, str] = {call.field.column: _write_call(call, below) for call in node.calls}
        made |= {each.field.column: below[_column(each.expr)] for each in node.group_by}
        if isinstance(node.window, TimeWindow):
            made[WINDOW_START] = "openval()"
            made[WINDOW_END] = f"openval() + {self.write_duration(node.window.size)}"
        listed = ", ".join(f"{made[column]} AS {name}" for column, name in names.items())
        groups = [below[_column(each.expr)] for each in node.group_by]
        grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
        select = f"SELECT {listed} FROM {self.streams[id(node.input)]}[{window}]{grouped}"
        self._fill(into, select, f"CREATE WINDOW {window} ({self._window(node)});")

    def _window(self, node: Aggregate) -> str:
        size, step = node.window.size, node.window.step
        if not isinstance(node.window, TimeWindow):
            return f"SIZE {size} ADVANCE {step} TUPLES"
        if size % _SECOND or step % _SECOND or _HOUR % step:
            raise refuse("streamsql", "aligns windows in seconds that divide an hour")
        time = self.times[id(node.input)]
        if time is None:
            raise refuse("streamsql", "has no event time here")
        name = self.fields[id(node.input)][time]
        return f"SIZE {size // _SECOND} ADVANCE {step // _SECOND} ON {name} PARTIAL TRUE OFFSET 0"

    def write_join(self, node: Join) -> None:
        sides = []
        names: dict[Column, str] = {}
        for alias, side, window in (("l", node.left, node.left_window), ("r", node.right, node.right_window)):
            names |= {column: f"{alias}.{name}" for column, name in self.fields[id(side)].items()}
            size = 0 if window is None else window.size
            if size % _SECOND:
                raise refuse("streamsql", "keeps a join's tuples for whole seconds")
            time = self.fields[id(side)][_column(self.times[id(side)])]
            sides.append(f"{self.streams[id(side)]}[SIZE {size // _SECOND} ADVANCE 1 ON {time}] AS {alias}")
        condition = self.conditions(names).write_condition(node.predicate)
        within = self._within(node, names)
        listed = ", ".join(f"{names[column]} AS {name}" for column, name in self.fields[id(node)].items())
        select = f"SELECT {listed} FROM {', '.join(sides)} WHERE ({condition}) AND {within}"
        self._fill(self.streams[id(node)], select)

    def _within(self, node: Join, names: dict[Column, str]) -> str:
        left, right = (names[_column(self.times[id(side)])] for side in (node.left, node.right))
        return self.within(node, left, right, {"left": left, "right": right})

    def write_union(self, node: Union) -> None:
        columns = [each.column for each in node.fields]
        own = self.fields[id(node)]
        branches = []
        for branch in node.branches:
            items = list(zip((own[column] for column in columns), _line_up(node, branch), strict=True))
            branches.append(self._select(branch, items))
        self._fill(self.streams[id(node)], " UNION ".join(branches))

    def write_output(self, top: Node, items: Outputs) -> None:
        columns = {expr: name for name, expr in items if isinstance(expr, Column)}
        calls = {each.column for each in top.fields}
        if isinstance(top, Aggregate) and len(columns) == len(items) and set(columns) <= calls:
            del self.statements[-3:]
            self._write_aggregate(top, OUTPUT, columns)
            return
        self._fill(OUTPUT, self._select(top, items))

    def write_duration(self, micros: int) -> str:
        if micros % _SECOND:
            raise refuse("streamsql", "counts time in whole seconds")
        return f"seconds({micros // _SECOND})"


def _line_up(union: Union, branch: Node) -> list[Expr]:
    """The branch's columns in the order of the union's fields: outputs by position, bounds by name."""
    own = [each.column for each in branch.fields if each.qualifier != "#window"]
    bounds = [each.column for each in union.fields[len(union.outputs) :]]
    known = {each.column for each in branch.fields}
    if any(each not in known for each in bounds):
        raise refuse("streamsql", "cannot unite rows with and without a window's bounds")
    return [*own, *bounds]


def _column(expr: Expr | None) -> Column:
    if not isinstance(expr, Column):
        raise TypeError("not a column")
    return expr


def _write_call(call: AggCall, names: dict[Column, str]) -> str:
    name = "" if call.arg is None else names[_column(call.arg)]
    if call.arg is not None and call.arg.type == INT:
        # sums of int may overflow, averages may be cut
        name = {AggFunction.SUM: f"long({name})", AggFunction.AVG: f"double({name})"}.get(call.function, name)
    return _FUNCTIONS[call.function].format(name)


def _name_item(text: str, name: str, stream: str) -> str:
    return text if text == f"{stream}.{name}" else f"{text} AS {name}"

"""The core query model (D4) and the few operators that the rewriter adds to it.

Nodes are frozen and equal by value; a node may feed several others (a DAG shares the object). Each node knows its
output fields, and its constructor refuses a column that its input does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column, Expr, Literal, columns
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Type
from sluicegate.graph.windows import TimeWindow, Window

NOBODY = Literal("", STRING)
POLICY = "_policy"
"""The column of a punctuated stream's table with the number of the tuple's policy class."""
WINDOW_START = Column("#window", "start", TIMESTAMP)
WINDOW_END = Column("#window", "end", TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Field:
    """An output attribute of an operator."""

    qualifier: str
    name: str
    type: Type

    @property
    def column(self) -> Column:
        return Column(self.qualifier, self.name, self.type)

    @property
    def hidden(self) -> bool:
        return self.qualifier.startswith("#")


def field_of(column: Column) -> Field:
    return Field(column.qualifier, column.name, column.of)


def allowed_field(column: Column) -> Field:
    """Whether the policy of a shielded row allows a column that is only told."""
    return Field("#allowed:" + column.qualifier, column.name, BOOLEAN)


def roles_field(name: str) -> Field:
    """The roles of the principal that the policies behind a row allow, one bit each."""
    return Field("#roles:" + name, "roles", BIGINT)


def shown_field(column: Column) -> Field:
    """The companion of a column that some rows withhold: whether this row shows it."""
    return Field("#shown:" + column.qualifier, column.name, BOOLEAN)


@dataclass(frozen=True, slots=True)
class Item:
    """An output field and the expression that makes it."""

    field: Field
    expr: Expr


class AggFunction(Enum):
    MIN = "MIN"
    MAX = "MAX"
    COUNT = "COUNT"
    COUNT_DISTINCT = "COUNT DISTINCT"
    AVG = "AVG"
    SUM = "SUM"
    FIRST = "FIRST"
    LAST = "LAST"
    COUNT_IF = "COUNT_IF"
    """The rewriter's own (MIN GROUP): rows for which a boolean is true."""
    COMMON_ROLES = "COMMON_ROLES"
    """The rewriter's own (R15): the roles that the policies of all rows allow, a bit each."""


INTERNAL_FUNCTIONS = frozenset({AggFunction.COUNT_IF, AggFunction.COMMON_ROLES})
"""Those that no user and no grant can name."""


@dataclass(frozen=True, slots=True)
class AggCall:
    """`function(arg)` as an output field; `arg` is None for COUNT(*)."""

    function: AggFunction
    arg: Expr | None
    field: Field


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all operators."""

    fields: tuple[Field, ...] = field(init=False, compare=False, repr=False)
    types: Mapping[tuple[str, str], Type] = field(init=False, compare=False, repr=False)
    """Of the fields, by qualifier and name: what the nodes above are checked against."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def _finish(self, fields: Iterable[Field]) -> None:
        made = tuple(fields)
        types = {(each.qualifier, each.name): each.type for each in made}
        if len(types) != len(made):
            raise InvariantError(f"{type(self).__name__} has two fields of one name: {made}")
        object.__setattr__(self, "fields", made)
        object.__setattr__(self, "types", types)

    def _pass_on(self, input_: Node) -> None:
        """The same fields as the input's, which were checked there."""
        object.__setattr__(self, "fields", input_.fields)
        object.__setattr__(self, "types", input_.types)


def _check(node: Node, exprs: Iterable[Expr], *inputs: Node) -> None:
    types = [source.types for source in inputs]
    for expr in exprs:
        used = (expr,) if isinstance(expr, Column) else columns(expr)
        missing = [
            each
            for each in used
            if not any(known.get((each.qualifier, each.name)) == each.of for known in types)
        ]
        if missing:
            raise InvariantError(
                f"{type(node).__name__} uses {sorted(map(str, missing))}, which its input lacks"
            )


@dataclass(frozen=True, slots=True)
class Source(Node):
    """An occurrence of a stream; `alias` is unique in the graph. `event_time` is None for a table (D1)."""

    stream: str
    alias: str
    attributes: tuple[tuple[str, Type], ...]
    event_time: str | None

    def __post_init__(self) -> None:
        self._finish(Field(self.alias, name, type_) for name, type_ in self.attributes)


@dataclass(frozen=True, slots=True)
class Shield(Node):
    """The rows of a source that their own policies allow (R13–R15).

    A row passes if one role of the principal is allowed all `needed` attributes; where none is needed, one of `told`, or
    any at all. Output: the source's fields, a flag for each told attribute (`allowed_field`), the roles (`roles_field`).
    """

    input: Source
    needed: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    who: Expr = NOBODY
    """Whose query it is, as the policy layer writes it."""

    def __post_init__(self) -> None:
        if not isinstance(self.input, Source):
            raise InvariantError("a shield stands directly above its source")
        named = (*self.needed, *self.told)
        missing = sorted(set(named) - {name for name, _ in self.input.attributes})
        if missing or len(set(named)) != len(named):
            raise InvariantError(f"a shield names {missing or list(named)} of `{self.input.stream}`")
        own = {each.name: each.column for each in self.input.fields}
        flags = (allowed_field(own[name]) for name in self.told)
        self._finish((*self.input.fields, *flags, roles_field(self.input.alias)))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class RaisedShield(Node):
    """A shield that an engine moved up: the class of a tuple has come along as a column of the shield's source.

    No authorized plan has it; `runtime.network.placement` puts it there. Output: the input's fields and what the shield adds.
    """

    input: Node
    shield: Shield

    def __post_init__(self) -> None:
        _check(self, self.carried, self.input)
        added = self.shield.fields[len(self.shield.input.fields) :]
        self._finish((*self.input.fields, *added))

    @property
    def policy(self) -> Column:
        return Column(self.shield.input.alias, POLICY, BIGINT)

    @property
    def carried(self) -> tuple[Column, ...]:
        """What the judging reads: the source's own columns, as they were."""
        return (*(each.column for each in self.shield.input.fields), self.policy)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Select(Node):
    """σ. `by` names the grants that put it there; empty for the user's own."""

    input: Node
    predicate: Expr
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self, [self.predicate], self.input)
        self._pass_on(self.input)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Project(Node):
    """π, with computed and renamed attributes."""

    input: Node
    items: tuple[Item, ...]
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self, [item.expr for item in self.items], self.input)
        self._finish(item.field for item in self.items)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """Σ. Rows are first parted by `partition` (the rewriter's hidden columns), then windowed, then grouped.

    Output: the group-by fields, the calls' fields, the partition columns and, for time windows, the window's bounds.
    """

    input: Node
    calls: tuple[AggCall, ...]
    window: Window
    group_by: tuple[Item, ...] = ()
    partition: tuple[Column, ...] = ()
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        exprs = [call.arg for call in self.calls if call.arg is not None]
        _check(self, [*exprs, *(item.expr for item in self.group_by), *self.partition], self.input)
        bounds = (WINDOW_START, WINDOW_END) if isinstance(self.window, TimeWindow) else ()
        self._finish(
            (
                *(item.field for item in self.group_by),
                *(call.field for call in self.calls),
                *map(field_of, self.partition),
                *map(field_of, bounds),
            )
        )

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """⋈ of pairs (D5). A side's window is None for a table. Window bounds of the inputs end here.

    A tuple window on a side counts per value of that side's `partition` columns (the rewriter's).
    """

    left: Node
    right: Node
    predicate: Expr
    left_window: Window | None
    right_window: Window | None
    left_partition: tuple[Column, ...] = ()
    right_partition: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        _check(self, [self.predicate], self.left, self.right)
        _check(self, self.left_partition, self.left)
        _check(self, self.right_partition, self.right)
        both = (*self.left.fields, *self.right.fields)
        self._finish(each for each in both if each.qualifier != "#window")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Union(Node):
    """∪ (bag). Inputs agree with `outputs` in number and types, by position; window bounds pass where a branch has them."""

    branches: tuple[Node, ...]
    outputs: tuple[Field, ...]

    def __post_init__(self) -> None:
        for branch in self.branches:
            own = [each.type for each in branch.fields if each.qualifier != "#window"]
            if own != [each.type for each in self.outputs]:
                raise InvariantError("a union's branch does not fit its outputs")
        windowed = any(WINDOW_START in [each.column for each in branch.fields] for branch in self.branches)
        bounds = (field_of(WINDOW_START), field_of(WINDOW_END)) if windowed else ()
        self._finish((*self.outputs, *bounds))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.branches


@dataclass(frozen=True, slots=True)
class UnfoldCase:
    """A way in which a row may be shown: when, and which of the variable columns it then shows."""

    when: Expr
    shown: tuple[Column, ...]
    grants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unfold(Node):
    """Each row once for every case whose `when` is true (R4): variable columns not shown are NULL there.

    Output: the input's fields and, for each variable column, its companion (`shown_field`).
    """

    input: Node
    variable: tuple[Column, ...]
    cases: tuple[UnfoldCase, ...]

    def __post_init__(self) -> None:
        _check(self, [*self.variable, *(case.when for case in self.cases)], self.input)
        self._finish((*self.input.fields, *map(shown_field, self.variable)))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


def result_type(function: AggFunction, arg: Type | None) -> Type:
    """The type of an aggregate: counts and integer sums are BIGINT, averages DOUBLE."""
    match function:
        case AggFunction.COUNT | AggFunction.COUNT_DISTINCT | AggFunction.COUNT_IF | AggFunction.COMMON_ROLES:
            return BIGINT
        case AggFunction.AVG:
            return DOUBLE
        case AggFunction.SUM:
            return DOUBLE if arg == DOUBLE else BIGINT
        case AggFunction.MIN | AggFunction.MAX | AggFunction.FIRST | AggFunction.LAST:
            if arg is None:
                raise InvariantError(f"{function.value} needs an argument")
            return arg


def walk(root: Node) -> Iterator[Node]:
    """Every node once, inputs before what they feed."""
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.inputs))


def sources(root: Node) -> tuple[Source, ...]:
    return tuple(node for node in walk(root) if isinstance(node, Source))


def shields(root: Node) -> tuple[Shield, ...]:
    """All of a graph, wherever they stand."""
    found = (node.shield if isinstance(node, RaisedShield) else node for node in walk(root))
    return tuple(node for node in found if isinstance(node, Shield))

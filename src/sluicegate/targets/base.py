"""What a target can express, as data, and the check of a plan against it before a word is translated.

A target's module begins with its `Abilities`. What they do not name is refused, by name (R7): a new operator or
function reaches a target only when somebody has written it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Call, Column, Expr, Literal
from sluicegate.expr.nodes import walk as walk_expr
from sluicegate.expr.types import Type
from sluicegate.graph.operators import (
    Aggregate,
    Join,
    Node,
    Project,
    RaisedShield,
    Select,
    Shield,
    Source,
    Unfold,
    Union,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window

UNSUPPORTED = "target-unsupported"
TARGET_CODES = {"target-unsupported": "the target cannot express something that the authorized query uses"}


class Part(Enum):
    """What kind of construct: the sections of the support table."""

    OPERATOR = "operator"
    WINDOW = "window"
    AGGREGATE = "aggregate function"
    EXPRESSION = "expression"
    FUNCTION = "function"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Construct:
    """Something that a plan uses and a target must know."""

    part: Part
    name: str

    def __str__(self) -> str:
        return f"{self.part.value} `{self.name}`"


@dataclass(frozen=True, slots=True)
class Abilities:
    """All that a target knows; `notes` says what a reader of the support table should know of single constructs."""

    target: str
    known: Mapping[Part, frozenset[str]]
    notes: Mapping[Construct, str]

    def has(self, construct: Construct) -> bool:
        return construct.name in self.known.get(construct.part, frozenset())


def name_window(window: Window | None, *, join: bool) -> str:
    """The kind of a window, as the support table names it."""
    match window:
        case None:
            return "table side of a join"
        case TimeWindow() if join:
            return "time window of a join side"
        case TupleWindow() if join:
            return "tuple window of a join side"
        case TimeWindow(size, step):
            return "tumbling time window" if size == step else _overlap(size, step) + " time window"
        case TupleWindow(size, step):
            return "tumbling tuple window" if size == step else _overlap(size, step) + " tuple window"
        case _:
            raise TypeError(f"unknown window {type(window).__name__}")


def _overlap(size: int, step: int) -> str:
    return "sliding" if step < size else "sampling"


WINDOWS = frozenset(
    [f"{how} {what} window" for how in ("tumbling", "sliding", "sampling") for what in ("time", "tuple")]
    + ["table side of a join", "time window of a join side", "tuple window of a join side"]
)


def find_constructs(plan: AuthorizedPlan) -> list[Construct]:
    """What the plan uses, each once, sources first."""
    found = (construct for node in walk(plan.root) for construct in _of_node(node))
    return list(dict.fromkeys(found))


def _of_node(node: Node) -> Iterator[Construct]:
    yield Construct(Part.OPERATOR, type(node).__name__)
    yield from (_of_type(each.type) for each in node.fields)
    if isinstance(node, Aggregate):
        yield Construct(Part.WINDOW, name_window(node.window, join=False))
        yield from (Construct(Part.AGGREGATE, call.function.value) for call in node.calls)
    if isinstance(node, Join):
        for window in (node.left_window, node.right_window):
            yield Construct(Part.WINDOW, name_window(window, join=True))
    for expr in node_expressions(node):
        yield from (construct for part in walk_expr(expr) for construct in _of_expression(part))


def _of_type(of: Type) -> Construct:
    return Construct(Part.TYPE, of.kind.value)


def _of_expression(expr: Expr) -> Iterator[Construct]:
    yield Construct(Part.EXPRESSION, type(expr).__name__)
    if isinstance(expr, Call):
        yield Construct(Part.FUNCTION, expr.function.lower())
    if isinstance(expr, Literal | Column):
        yield _of_type(expr.type)


def node_expressions(node: Node) -> tuple[Expr, ...]:
    """The expressions that a node evaluates itself. An unknown node has none that anybody could have checked."""
    match node:
        case Select() | Join():
            return (node.predicate,)
        case Project():
            return tuple(item.expr for item in node.items)
        case Aggregate():
            arguments = [call.arg for call in node.calls if call.arg is not None]
            return (*arguments, *(item.expr for item in node.group_by))
        case Unfold():
            return tuple(case.when for case in node.cases)
        case Shield():
            return (node.who,)
        case RaisedShield():
            return (node.shield.who,)
        case Source() | Union():
            return ()
        case _:
            return ()


def check(plan: AuthorizedPlan, abilities: Abilities) -> list[Diagnostic]:
    """A diagnostic for each construct of the plan that the target does not know; empty when it can be translated."""
    return [
        Diagnostic(UNSUPPORTED, f"{abilities.target} cannot express the {construct}")
        for construct in find_constructs(plan)
        if not abilities.has(construct)
    ]


def require(plan: AuthorizedPlan, abilities: Abilities) -> None:
    """Refuse the plan unless the target knows all of it."""
    problems = check(plan, abilities)
    if problems:
        raise DiagnosticError(problems)


def support_table(targets: Iterable[Abilities]) -> str:
    """What each target knows, as a Markdown table; notes follow it."""
    columns = sorted(targets, key=lambda each: each.target)
    lines = ["| | " + " | ".join(each.target for each in columns) + " |", "|---|" + "---|" * len(columns)]
    for construct in _known_constructs(columns):
        marks = " | ".join(_mark(each, construct) for each in columns)
        lines.append(f"| {construct} | {marks} |")
    notes = [f"- {each.target}, {what}: {note}" for each in columns for what, note in each.notes.items()]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _mark(abilities: Abilities, construct: Construct) -> str:
    if not abilities.has(construct):
        return "no"
    return "yes, see below" if construct in abilities.notes else "yes"


def _known_constructs(targets: list[Abilities]) -> list[Construct]:
    return [
        Construct(part, name)
        for part in Part
        for name in sorted({name for each in targets for name in each.known.get(part, ())})
    ]

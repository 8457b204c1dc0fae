"""A small world for hand-worked cases: times in seconds, two streams with a common key, a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sluicegate.expr.nodes import NULL, TRUE, Column, Compare, Expr, FactRef, Literal, Op
from sluicegate.expr.types import DOUBLE, INT, STRING, TIMESTAMP, Type
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
    result_type,
)
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import (
    AggRight,
    During,
    Fact,
    Grant,
    LeastWindow,
    Privilege,
    Role,
    Stream,
    StreamRef,
    Subject,
    User,
)
from sluicegate.testing.oracle import ModelResult, expected

SECOND = 1_000_000
ATTRIBUTES: dict[str, tuple[tuple[str, Type], ...]] = {
    "S": (("ts", TIMESTAMP), ("k", INT), ("g", STRING), ("x", DOUBLE)),
    "T": (("ts", TIMESTAMP), ("k", INT), ("y", DOUBLE)),
    "D": (("k", INT), ("name", STRING)),
}
STREAMS = {name: Stream(name, of, None if name == "D" else "ts") for name, of in ATTRIBUTES.items()}
EVERYTHING = {name: " ".join(each for each, _ in of) for name, of in ATTRIBUTES.items()}
ROLES = {"senior": Role("senior", ("junior",)), "junior": Role("junior"), "other": Role("other")}


def column(path: str) -> Column:
    """`s.k` of a source whose alias begins with its stream's letter, or of a stream by name."""
    alias, name = path.split(".")
    stream = alias[0].upper()
    return Column(alias, name, dict(ATTRIBUTES[stream])[name])


def compare(left: str, op: str, right: Any) -> Expr:
    side = column(left)
    if isinstance(right, Expr):
        return Compare(Op(op), side, right)
    if isinstance(right, str) and "." in right:
        return Compare(Op(op), side, column(right))
    return Compare(Op(op), side, Literal(right * SECOND if side.of == TIMESTAMP else right, side.of))


def refs(on: str) -> tuple[StreamRef, ...]:
    """`S`, `S T`, or with aliases `S:sa S:sb`."""
    pairs = (word.split(":") for word in on.split())
    return tuple(StreamRef(pair[0], pair[-1]) for pair in pairs)


def named(on: str, names: str) -> tuple[Column, ...]:
    """Attributes by name; qualified where the grant has several streams."""
    alone = refs(on)[0].alias
    found = []
    for name in names.split():
        path = name if "." in name else f"{alone}.{name}"
        found.append(column(path))
    return tuple(found)


def read(name: str, on: str, attributes: str | None = None, where: Expr = TRUE, **more: Any) -> Grant:
    subject = more.pop("to", Subject("junior"))
    shown = named(on, EVERYTHING[on] if attributes is None else attributes)
    return Grant(name, subject, Privilege.READ, refs(on), shown, (), where, **more)


def aggregate_grant(name: str, on: str, rights: str, where: Expr = TRUE, **more: Any) -> Grant:
    """`rights` as `SUM:x COUNT:*`."""
    listed = []
    for word in rights.split():
        function, _, attribute = word.partition(":")
        of = None if attribute == "*" else named(on, attribute)[0]
        listed.append(AggRight(AggFunction(function.replace("_", " ")), of))
    for option in ("by", "narrow_by"):
        if option in more:
            more[option] = named(on, more[option])
    return Grant(name, Subject("junior"), Privilege.AGGREGATE, refs(on), (), tuple(listed), where, **more)


def least(size: int, step: int = 0) -> LeastWindow:
    return LeastWindow(size * SECOND, step * SECOND)


def during(lower: int | Expr | None, upper: int | Expr | None) -> During:
    bounds = (
        NULL if each is None else each if isinstance(each, Expr) else Literal(each * SECOND, TIMESTAMP)
        for each in (lower, upper)
    )
    return During(*bounds)


def fact(name: str) -> FactRef:
    return FactRef(name, (Literal("a", STRING),), TIMESTAMP)


def set_fact(name: str, seconds: int, public: bool = False) -> Fact:
    return Fact(name, ("a",), Literal(seconds * SECOND, TIMESTAMP), public)


def catalog(*grants: Grant, facts: Iterable[Fact] = (), **user: Any) -> Catalog:
    profile = tuple(user.pop("profile", {"g": Literal("a", STRING)}).items())
    who = User("u", user.pop("roles", ("senior",)), profile, **user)
    known = {(each.name, each.args): each for each in facts}
    return Catalog(1, STREAMS, ROLES, {"u": who}, known, {grant.name: grant for grant in grants})


def source(alias: str) -> Source:
    stream = STREAMS[alias[0].upper()]
    return Source(stream.name, alias, stream.attributes, stream.event_time)


def select(node: Node, *predicate: Any) -> Select:
    return Select(node, predicate[0] if len(predicate) == 1 else compare(*predicate))


def project(node: Node, **items: Any) -> Project:
    """`name="s.k"` or `name=expression`, under the qualifier `p`."""
    made = []
    for name, given in items.items():
        expr = given if isinstance(given, Expr) else find(node, given)
        made.append(Item(Field("p", name, expr.type), expr))
    return Project(node, tuple(made))


def find(node: Node, path: str) -> Column:
    return next(each.column for each in node.fields if f"{each.qualifier}.{each.name}" == path)


def seconds(size: int, step: int | None = None) -> TimeWindow:
    return TimeWindow(size * SECOND, (size if step is None else step) * SECOND)


def rows(size: int, step: int = 1) -> TupleWindow:
    return TupleWindow(size, step)


def fold(node: Node, window: Any, by: str = "", qualifier: str = "a", **calls: str) -> Aggregate:
    """`name="SUM:s.x"`; keys keep their attribute's name."""
    made = []
    for name, text in calls.items():
        function, _, path = text.partition(":")
        arg = None if path == "*" else find(node, path)
        kind = AggFunction(function.replace("_", " "))
        made.append(AggCall(kind, arg, Field(qualifier, name, result_type(kind, arg.of if arg else None))))
    keys = [find(node, path) for path in by.split()]
    items = tuple(Item(Field(qualifier, key.name, key.of), key) for key in keys)
    return Aggregate(node, tuple(made), window, items)


def join(left: Node, right: Node, *on: Any, size: Any = None, other: Any = None) -> Join:
    predicate = (
        TRUE if not on else on[0] if len(on) == 1 else Compare(Op.EQ, find(left, on[0]), find(right, on[1]))
    )
    left_window = size if size is not None else seconds(100, 0)
    right_window = other if other is not None else left_window
    return Join(left, right, predicate, left_window, right_window)


def tuples(stream: str, *given: tuple[Any, ...]) -> list[dict[str, Any]]:
    made = []
    for values in given:
        row = dict(zip((name for name, _ in ATTRIBUTES[stream]), values, strict=False))
        if row.get("ts") is not None:
            row["ts"] *= SECOND
        made.append(row)
    return made


def ask(known: Catalog, root: Node, united: bool = False, **data: list[dict[str, Any]]) -> ModelResult:
    outputs = tuple(each for each in root.fields if not each.hidden)
    return expected(known, "u", root, outputs, data, united)


def get(
    known: Catalog, root: Node, united: bool = False, **data: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows in a fixed order, window bounds in seconds as `window`."""
    found = []
    for row in ask(known, root, united, **data).rows:
        start, end = row.pop("window_start", None), row.pop("window_end", None)
        found.append(row | ({} if start is None else {"window": (start // SECOND, end // SECOND)}))
    return sorted(found, key=lambda row: sorted((name, repr(value)) for name, value in row.items()))

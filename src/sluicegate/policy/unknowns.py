"""Facts that a decision may not know: the type is taken from where they stand, never from what they hold (R9).

    Pos <= target('a')     with `target` set to 5, to 5.5, or not set:   Pos <= target('a'):DOUBLE

A fact has the type of its value, and none while it is not set. A solver that saw it could tell these apart.
"""

from __future__ import annotations

from sluicegate.expr.functions import FUNCTIONS
from sluicegate.expr.nodes import (
    And,
    Arith,
    Call,
    Case,
    Cast,
    Compare,
    Expr,
    FactRef,
    In,
    Like,
    Literal,
    Not,
    Or,
    walk,
)
from sluicegate.expr.rebuild import transform
from sluicegate.expr.types import (
    BOOLEAN,
    DOUBLE,
    INTERVAL,
    NUMERIC,
    POLYGON,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Kind,
    Type,
    set_of,
)

_ON_PLACES = frozenset({"distance_km", "distance_nm", "within"})
_Key = tuple[str, tuple[Expr, ...]]


def hide_types(expr: Expr, number: Type = DOUBLE) -> Expr:
    """The same expression, each fact in it with the type that its places ask for; `number` where that is a number."""
    if not any(isinstance(node, FactRef) for node in walk(expr)):
        return expr
    wanted: dict[_Key, Type] = {}
    _ask(expr, BOOLEAN, wanted)

    def change(node: Expr) -> Expr | None:
        match node:
            case FactRef(name, args):
                of = wanted.get((name, args), DOUBLE)
                return FactRef(name, args, number if of == DOUBLE else of)
            case Call(name, args, of) if name in FUNCTIONS:
                made = tuple(transform(arg, change) for arg in args)
                # a result's type is that of its arguments for some functions
                return Call(name, made, FUNCTIONS[name].result_type([arg.type for arg in made]) or of)
            case _:
                return None

    return transform(expr, change)


def _ask(expr: Expr, of: Type, wanted: dict[_Key, Type]) -> None:
    """Note what is asked of every fact below; UNKNOWN asks nothing."""
    match expr:
        case FactRef(name, args):
            if of != UNKNOWN:
                wanted.setdefault((name, args), DOUBLE if of in NUMERIC else of)
        case And(args) | Or(args):
            for arg in args:
                _ask(arg, BOOLEAN, wanted)
        case Not(arg):
            _ask(arg, BOOLEAN, wanted)
        case Compare(_, left, right):
            _ask_alike((left, right), wanted)
        case In(arg, items):
            _ask_alike((arg, *items), wanted)
        case Like(arg):
            _ask(arg, STRING, wanted)
        case Arith(_, left, right):
            _ask_arith(left, right, of, wanted)
        case Case(whens, otherwise):
            for when, _ in whens:
                _ask(when, BOOLEAN, wanted)
            _ask_alike((*(then for _, then in whens), otherwise), wanted, of)
        case Call("is_member", (arg, group)):
            of_arg = _plain(arg)
            _ask(group, set_of(DOUBLE if of_arg in NUMERIC or of_arg == UNKNOWN else of_arg), wanted)
            _ask(arg, UNKNOWN, wanted)
        case Call(name, (lon, lat, polygon)) if name in _ON_PLACES:
            _ask_alike((lon, lat, Literal(0.0, DOUBLE)), wanted)
            _ask(polygon, POLYGON, wanted)
        case Call(_, args):
            _ask_alike(args, wanted)
        case Cast(arg, _):
            _ask(arg, UNKNOWN, wanted)
        case _:
            for child in expr.children:
                _ask(child, UNKNOWN, wanted)


def _ask_alike(parts: tuple[Expr, ...], wanted: dict[_Key, Type], of: Type = UNKNOWN) -> None:
    """What is compared, or stands for another, has one type: that of a part without facts."""
    known = next((each for each in map(_plain, parts) if each != UNKNOWN), of)
    for part in parts:
        _ask(part, known, wanted)


def _ask_arith(left: Expr, right: Expr, of: Type, wanted: dict[_Key, Type]) -> None:
    of_left, of_right = _plain(left), _plain(right)
    if TIMESTAMP in (of, of_left, of_right) or INTERVAL in (of, of_left, of_right):
        _ask(left, INTERVAL if of_right == TIMESTAMP and of == TIMESTAMP else TIMESTAMP, wanted)
        _ask(right, TIMESTAMP if of == INTERVAL else INTERVAL, wanted)
        return
    _ask(left, DOUBLE, wanted)
    _ask(right, DOUBLE, wanted)


def _plain(expr: Expr) -> Type:
    """The type of an expression if no fact has a say in it."""
    if any(isinstance(node, FactRef) for node in walk(expr)):
        return _fixed(expr)
    if isinstance(expr, Literal) and expr.value is None:
        return UNKNOWN
    return UNKNOWN if expr.type.kind is Kind.UNKNOWN else expr.type


def _fixed(expr: Expr) -> Type:
    match expr:
        case Cast(_, to):
            return to
        case Arith(_, left, right):
            known = {_plain(left), _plain(right)}
            if TIMESTAMP in known:
                return TIMESTAMP
            return DOUBLE if known & NUMERIC else UNKNOWN
        case _:
            return expr.type if expr.type == BOOLEAN and not isinstance(expr, FactRef) else UNKNOWN

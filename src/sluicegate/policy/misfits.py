"""What a profile puts into a predicate where its type has no place: NULL there, so no access (R7).

    ts >= self.since     with `since` = 1, a number:   NULL

`self.x` has no type before it is bound, so nothing refuses it when the grant is read; and as bare values a number and
a time could be compared.
"""

from __future__ import annotations

from sluicegate.expr.functions import builtin
from sluicegate.expr.nodes import Arith, Call, Cast, Compare, Expr, In, Like, Literal, arith_type
from sluicegate.expr.rebuild import map_children
from sluicegate.expr.types import BOOLEAN, UNKNOWN, Kind, Type, comparable
from sluicegate.expr.values import castable


def drop_misfits(expr: Expr) -> Expr:
    """The expression with NULL for each part whose operands do not fit each other."""
    made = map_children(expr, drop_misfits)
    match made:
        case Compare(_, left, right) if not comparable(left.type, right.type):
            return Literal(None, BOOLEAN)
        case In(arg, items):
            return In(
                arg, tuple(each if comparable(arg.type, each.type) else _nothing(UNKNOWN) for each in items)
            )
        case Like(arg) if arg.type.kind not in (Kind.STRING, Kind.UNKNOWN):
            return Literal(None, BOOLEAN)
        case Arith(op, left, right) if arith_type(op, left.type, right.type) is None:
            return _nothing(UNKNOWN)
        case Cast(arg, to) if not castable(arg.type, to):
            return _nothing(to)
        case Call(name, args, of):
            function = builtin(name)
            result = None if function is None else function.result_type(tuple(arg.type for arg in args))
            return _nothing(of) if result is None else Call(name, args, result)
        case _:
            return made


def _nothing(of: Type) -> Literal:
    return Literal(None, of)

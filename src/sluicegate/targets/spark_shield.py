# Every name and literal in the SQL made here comes out of `spark_text`, quoted, or is a number.
# ruff: noqa: S608
"""The shield in Spark's SQL: tuples meet the verdicts on the policy class that each of them names (R13–R15).

The table of verdicts has a row for each (`who`, `class`) that lets anything through: `m0`, `m1`, … are the roles that may
see the stream's attributes, and `s<j>_m0`, … what the j-th punctuation of the server leaves of them where it covers a tuple.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluicegate.expr.nodes import FALSE, TRUE, Column, Compare, Expr, Literal, Op, Or, Scalar, conjoin
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Kind, Type
from sluicegate.graph.operators import POLICY, Node, RaisedShield, Shield, allowed_field, roles_field
from sluicegate.policy.punctuation import Anything, Constant, Nothing, OneOf, Pattern, Range
from sluicegate.targets.spark_text import list_items, quote_name

if TYPE_CHECKING:
    from sluicegate.targets.spark_operators import Context

CLASS, WHO, PASSING = "h_policy", "who", "h_roles"
NO_WHO = -1
_NUMBERS = frozenset({Kind.INT, Kind.BIGINT, Kind.DOUBLE})


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts on a stream's tuples: their table, the attribute that patterns match, the server's tuple patterns."""

    table: str
    key: str
    patterns: tuple[Pattern, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    """For a plan with constants: the number in `who` that each text has."""
    met: bool = False
    """Whether the table has a row for each query, with its subscription, and not for each principal."""


def write_shield(node: Shield, ctx: Context) -> str:
    """One look into the verdicts for a tuple; one that finds none, or no role, does not pass."""
    return _write(node, node, f"i.{CLASS}", ctx)


def write_raised(node: RaisedShield, ctx: Context) -> str:
    """The same, for rows that tuples became part of."""
    return _write(node, node.shield, f"i.{ctx.names.of(node.policy)}", ctx)


def _write(node: Shield | RaisedShield, shield: Shield, policy: str, ctx: Context) -> str:
    judged = ctx.verdicts[shield.input.stream]
    narrowed = {
        name: _narrow(at, node, shield, judged, ctx) for at, (name, _) in enumerate(shield.input.attributes)
    }
    passing = f"{_passing(shield, narrowed)} AS {PASSING}"
    own = {each.name: each.column for each in shield.input.fields}
    flags = [
        f"{narrowed[name]} <> 0 AS {ctx.names.of(allowed_field(own[name]).column)}" for name in shield.told
    ]
    judging = f"SELECT {list_items(['i.*', passing, *flags])} FROM {ctx.judge(node, shield, policy)}"
    items = [f"i.{ctx.names.of(each.column)}" for each in node.fields[:-1]]
    items.append(ctx.name(f"i.{PASSING}", roles_field(shield.input.alias).column))
    return f"SELECT {list_items([*items, *ctx.pass_on(node)])} FROM ({judging}) AS i WHERE i.{PASSING} <> 0"


def _passing(node: Shield, masks: Mapping[str, str]) -> str:
    if node.needed:
        return "(" + " & ".join(masks[name] for name in node.needed) + ")"
    return "(" + " | ".join(masks[name] for name in node.told or masks) + ")"


def _narrow(at: int, node: Node, shield: Shield, judged: Judged, ctx: Context) -> str:
    """What the tuple's policy allows of an attribute, less what the server takes away."""
    key = next(each.column for each in shield.input.fields if each.name == judged.key)
    writer = ctx.writer(node)
    parts = [f"i.m{at}"]
    for number, pattern in enumerate(judged.patterns):
        covered = writer.write_truth(cover(pattern, key))
        parts.append(f"(CASE WHEN {covered} THEN i.s{number}_m{at} ELSE -1L END)")
    return "(" + " & ".join(parts) + ")" if len(parts) > 1 else parts[0]


def cover(pattern: Pattern, key: Column) -> Expr:
    """Whether the pattern holds the key, as `policy.elements.matches` says; NULL where the key is."""
    match pattern:
        case Nothing():
            return FALSE
        case Anything():
            # a key that is NULL is held by no pattern
            return Compare(Op.EQ, key, key)
        case Constant(value):
            return _compare(Op.EQ, key, value)
        case Range(low, high, closed):
            above, below = (Op.GE, Op.LE) if closed else (Op.GT, Op.LT)
            return conjoin(_compare(above, key, low), _compare(below, key, high))
        case OneOf(values):
            found = [_compare(Op.EQ, key, value) for value in values]
            return Or(tuple(found)) if len(found) > 1 else found[0]
        case _:
            raise TypeError(f"unknown pattern {type(pattern).__name__}")


def _compare(op: Op, key: Column, value: Scalar) -> Expr:
    """What cannot be compared is not held. A key of another kind counts as held: the server's rules then narrow (R7)."""
    if key.of.kind not in _NUMBERS and key.of not in (STRING, BOOLEAN, TIMESTAMP):
        return TRUE
    of = TIMESTAMP if key.of == TIMESTAMP and type(value) is int else _type_of(value)
    alike = key.of == of or (key.of.kind in _NUMBERS and of.kind in _NUMBERS)
    return Compare(op, key, Literal(value, of)) if alike else FALSE


def _type_of(value: Scalar) -> Type:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return BIGINT
        case float():
            return DOUBLE
        case str():
            return STRING
        case _:
            raise TypeError(f"unknown value {type(value).__name__}")


def list_masks(node: Shield, judged: Judged) -> list[str]:
    """The columns of the verdicts that the shield needs."""
    used = (*node.needed, *node.told) or tuple(name for name, _ in node.input.attributes)
    places = [at for at, (name, _) in enumerate(node.input.attributes) if name in used]
    return [
        *(f"m{at}" for at in places),
        *(f"s{number}_m{at}" for number in range(len(judged.patterns)) for at in places),
    ]


def carry_class(column: str = POLICY) -> str:
    """The class of a tuple, for the shield above its source."""
    return f"i.{quote_name(column)} AS {CLASS}"

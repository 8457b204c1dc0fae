"""What is learned about expressions that are not encoded: their value at points, and on which side of it others lie.

`x + y` of doubles rises with both, so that its value at one point bounds it on two quarters of the plane. Every lemma holds on all rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, product

import z3

from sluicegate.expr.functions import lookup
from sluicegate.expr.like import read_pattern
from sluicegate.expr.nodes import Arith, ArithOp, Call, Cast, Expr, Like, Literal, Polygon, Value, walk
from sluicegate.expr.solve.confirm import evaluate_with
from sluicegate.expr.solve.domains import DOMAINS
from sluicegate.expr.solve.encode import Z3, Encoder, NotEncodableError
from sluicegate.expr.solve.intervals import BASE
from sluicegate.expr.types import DOUBLE, INTEGER, NUMERIC, Kind
from sluicegate.expr.values import conform

_MOST_POINTS = 48
_PLAIN_VALUES: Mapping[Kind, tuple[Value, ...]] = {
    Kind.BOOLEAN: (True, False),
    Kind.INT: (0, 1, -1),
    Kind.BIGINT: (0, 1, -1, 2**53, 2**60),
    Kind.DOUBLE: (0.0, 1.0, -1.0, 1e300),
    Kind.STRING: ("", "a"),
    Kind.TIMESTAMP: (0, 1_767_225_600_000_000),
}


def learn(encoder: Encoder, node: Expr, values: Mapping[Expr, Value]) -> Z3 | None:
    """What the value of an opaque node at these values of columns and unknowns says; None if nothing can be said."""
    args = [child for child in node.children if not isinstance(child, Literal)]
    result = evaluate_with(node, values)
    try:
        inputs = {arg: evaluate_with(arg, values) for arg in args}
        here = encoder.all(*(encoder.is_value(arg, value) for arg, value in inputs.items()))
        lemma = z3.Implies(here, encoder.is_value(node, result))
        directions = _directions(node)
        if directions is None or result is None or None in inputs.values():
            return lemma
        return z3.And(lemma, *_sides(encoder, node, result, inputs, directions))
    except NotEncodableError:
        return None


def _sides(
    encoder: Encoder, node: Expr, result: Value, inputs: Mapping[Expr, Value], rising: Mapping[Expr, bool]
) -> Iterator[Z3]:
    null = encoder.scalar(node).null
    for below in (True, False):
        side = encoder.all(
            *(encoder.bound(arg, value, rising[arg] is below) for arg, value in inputs.items())
        )
        yield z3.Implies(z3.And(side, z3.Not(null)), encoder.bound(node, result, below))


def _directions(node: Expr) -> Mapping[Expr, bool] | None:
    """Whether the node rises or falls with each argument that is not constant; None if it does neither."""
    match node:
        case Cast(arg, to) if arg.type in NUMERIC and to in NUMERIC:
            return {arg: True}
        case Arith(ArithOp.ADD, left, right):
            return {left: True, right: True}
        case Arith(ArithOp.SUB, left, right) if left != right:
            return {left: True, right: False}
        case Arith(ArithOp.MUL, arg, Literal(factor)) | Arith(ArithOp.MUL, Literal(factor), arg):
            return {arg: factor >= 0} if isinstance(factor, int | float) else None
        case Arith(ArithOp.DIV, arg, Literal(factor)) if isinstance(factor, int | float) and factor:
            return {arg: factor > 0}
        case Call("floor" | "ceil" | "round", (arg,)):
            return {arg: True}
        case _:
            return None


def describe(encoder: Encoder, node: Expr) -> Iterator[Z3]:
    """What is known about an opaque node at once: where it is NULL."""
    function = lookup(node.function) if isinstance(node, Call) else None
    strict = isinstance(node, Arith | Cast | Like) or (function is not None and function.null_in_null_out)
    args = [child for child in node.children if not isinstance(child, Literal) and child.type.kind in DOMAINS]
    null = encoder.scalar(node).null
    if strict:
        yield from (z3.Implies(encoder.scalar(arg).null, null) for arg in args)
    match node:
        case Cast(arg, to) if arg.type in INTEGER and to == DOUBLE:
            yield null == encoder.scalar(arg).null
        case Arith(ArithOp.ADD | ArithOp.SUB, left, right) if left.type == right.type == DOUBLE:
            half = sys.float_info.max / 2
            small = [encoder.bound(arg, limit, limit > 0) for arg in (left, right) for limit in (half, -half)]
            yield z3.Implies(encoder.all(*small), z3.Not(null))
        case _:
            return


_NEVER_OVERFLOWS = 2.0**970
"""Half the distance from the greatest double to the next, which there is none of: less than this is rounded away."""


def relate(encoder: Encoder, nodes: Iterable[Expr]) -> Iterator[Z3]:
    """Sums of one expression with several constants, in order: `x - 5.0 <= x + 5.0`."""
    sums: dict[Expr, list[tuple[float, Expr]]] = {}
    for node in nodes:
        match node:
            case Arith(ArithOp.ADD, arg, Literal(int() | float() as number)) | Arith(
                ArithOp.ADD, Literal(int() | float() as number), arg
            ):
                sums.setdefault(arg, []).append((float(number), node))
            case Arith(ArithOp.SUB, arg, Literal(int() | float() as number)):
                sums.setdefault(arg, []).append((-float(number), node))
            case _:
                continue
    for arg, found in sums.items():
        yield from _order_sums(encoder, arg, sorted(found, key=lambda pair: pair[0]))


def _order_sums(encoder: Encoder, arg: Expr, found: list[tuple[float, Expr]]) -> Iterator[Z3]:
    base = encoder.scalar(arg)
    for number, node in found:
        if abs(number) < _NEVER_OVERFLOWS:
            yield encoder.scalar(node).null == base.null
    for (_, low), (_, high) in pairwise(found):
        one, two = encoder.scalar(low), encoder.scalar(high)
        yield z3.Or(one.null, two.null, one.value <= two.value)


def sample_points(pred: Expr, node: Expr) -> Iterator[Mapping[Expr, Value]]:
    """Values for the columns and unknowns of an opaque node at which it is worth knowing."""
    bases = list(dict.fromkeys(part for part in walk(node) if isinstance(part, BASE)))
    width = round(144 ** (1 / max(1, len(bases))))
    choices = [_sample_values(pred, node, base.type.kind)[:width] for base in bases]
    # the first values of each come from the node's own neighbourhood, so combinations of those go first
    combined = sorted(product(*map(enumerate, choices)), key=lambda pairs: sum(index for index, _ in pairs))
    for pairs in combined[:_MOST_POINTS]:
        yield dict(zip(bases, (value for _, value in pairs), strict=True))
    if isinstance(node, Call) and len(bases) >= 2 and node.args[:2] == tuple(bases[:2]):
        for lon, lat in _sample_places(node):
            yield dict(zip(bases, (lon, lat), strict=False))


def _sample_values(pred: Expr, node: Expr, kind: Kind) -> list[Value]:
    found: dict[Value, None] = {}
    for part in (*walk(node), *walk(pred)):
        match part:
            case Literal(value, of) if of.kind is kind or (
                of.kind is Kind.INT and kind in (Kind.BIGINT, Kind.DOUBLE)
            ):
                found.update(dict.fromkeys(_near(conform(value, of), kind)))
            case Like(_, pattern) if kind is Kind.STRING:
                segments = ["".join(char or "a" for char in segment) for segment in read_pattern(pattern)]
                found.update(dict.fromkeys(filling.join(segments) for filling in ("", "a", "b")))
            case _:
                pass
    found.update(dict.fromkeys(_PLAIN_VALUES.get(kind, ())))
    return list(found)


def _near(value: Value, kind: Kind) -> Iterator[Value]:
    """A constant and its neighbours, where comparisons with it change."""
    if value is None:
        return
    if kind is Kind.DOUBLE and isinstance(value, int | float):
        number = float(value)
        yield from (
            number,
            sys.float_info.max if number == sys.float_info.max else DOMAINS[kind].after(number),
        )
        yield -DOMAINS[kind].after(-number)
    elif kind in (Kind.INT, Kind.BIGINT) and isinstance(value, int):
        yield from (value, value + 1, value - 1)
    else:
        yield value


def _sample_places(node: Call) -> Iterator[tuple[float, float]]:
    """In, at and far from the polygons of a call."""
    for arg in node.args:
        if isinstance(arg, Literal) and isinstance(arg.value, Polygon):
            for part in arg.value.parts[:3]:
                ring = part[0]
                lon, lat = (sum(axis) / len(ring) for axis in zip(*ring, strict=True))
                yield from ((lon, lat), (lon + 180 if lon < 0 else lon - 180, -lat), *ring[:8])
                yield from ((lon, max(-90.0, min(90.0, lat + step))) for step in (0.5, 1, 2, 5, 10, 30))

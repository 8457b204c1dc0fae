"""The protection-object form of a query graph (seed 000, Definition 4.1): streams, attributes, predicates.

Any subgraph reads as a view π(attributes) σ(predicates) of the product of its streams; grants have the same form, and
that is how the two are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column, Expr, columns, conjuncts
from sluicegate.expr.rebuild import substitute
from sluicegate.graph.operators import Aggregate, Join, Node, Project, Select, Source, Union

Mapping_ = dict[Column, Expr]


@dataclass(frozen=True, slots=True)
class ProtectionObject:
    """Columns and predicates speak of the sources' attributes; what an aggregate computes stands for its argument."""

    streams: tuple[str, ...]
    """The multiset of source streams, sorted."""
    attributes: frozenset[Column]
    predicates: tuple[Expr, ...]


def protection_object(root: Node) -> ProtectionObject:
    """The object that the subgraph below `root` denotes."""
    streams, predicates, outputs = _read(root)
    used = frozenset(column for expr in outputs.values() for column in columns(expr))
    return ProtectionObject(tuple(sorted(streams)), used, tuple(dict.fromkeys(predicates)))


def _read(node: Node) -> tuple[list[str], list[Expr], Mapping_]:
    """Streams, predicates and, for each output column, what it is made of."""
    match node:
        case Source():
            return [node.stream], [], {each.column: each.column for each in node.fields}
        case Select(input=inner, predicate=predicate):
            streams, predicates, outputs = _read(inner)
            return streams, [*predicates, *_over_sources(predicate, outputs)], outputs
        case Project(input=inner, items=items):
            streams, predicates, outputs = _read(inner)
            kept = {
                each.field.column: substitute(each.expr, outputs) for each in items if not each.field.hidden
            }
            return streams, predicates, kept
        case Join(left=left, right=right, predicate=predicate):
            one, other = _read(left), _read(right)
            outputs = {**one[2], **other[2]}
            return one[0] + other[0], [*one[1], *other[1], *_over_sources(predicate, outputs)], outputs
        case Aggregate():
            return _aggregate(node)
        case Union(branches=branches, outputs=fields):
            return _union([_read(branch) for branch in branches], [each.column for each in fields])
        case _:
            raise InvariantError(f"a query has no {type(node).__name__}")


def _over_sources(predicate: Expr, outputs: Mapping_) -> list[Expr]:
    return [substitute(part, outputs) for part in conjuncts(predicate)]


def _aggregate(node: Aggregate) -> tuple[list[str], list[Expr], Mapping_]:
    """ATTs ∩ what is grouped by and aggregated; COUNT(*) adds no attribute."""
    streams, predicates, outputs = _read(node.input)
    made = {item.field.column: substitute(item.expr, outputs) for item in node.group_by}
    for call in node.calls:
        if call.arg is not None:
            made[call.field.column] = substitute(call.arg, outputs)
    return streams, predicates, made


def _union(
    parts: list[tuple[list[str], list[Expr], Mapping_]], fields: list[Column]
) -> tuple[list[str], list[Expr], Mapping_]:
    """A branch's own object says more; of the whole only the streams and attributes are sure."""
    streams = [stream for part in parts for stream in part[0]]
    outputs: Mapping_ = {}
    for _, _, made in parts:
        for field, expr in zip(fields, made.values(), strict=False):
            outputs.setdefault(field, expr)
            outputs[Column(f"∪{len(outputs)}", field.name, field.of)] = expr
    return streams, [], outputs

"""Whole random cases from a seed, for the fuzzer and the property tests: who asks what of which data, under which grants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from sluicegate.expr.nodes import Value
from sluicegate.expr.text import to_text
from sluicegate.graph.operators import (
    AggFunction,
    Aggregate,
    Field,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    walk,
)
from sluicegate.graph.windows import TupleWindow
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Grant, User
from sluicegate.testing.case_grants import random_grants
from sluicegate.testing.case_queries import QueryMaker
from sluicegate.testing.case_worlds import random_world


@dataclass(frozen=True)
class Case:
    """A question to the model and to whatever it judges."""

    catalog: Catalog
    user: str
    root: Node
    outputs: tuple[Field, ...]
    united: bool
    data: Mapping[str, Sequence[Mapping[str, Value]]]


def random_case(rng: Random) -> Case:
    """A small case; the same generator state gives the same case."""
    world = random_world(rng)
    grants = random_grants(rng, world)
    root, outputs = QueryMaker(rng, world, grants).query()
    users = {"u": _leave_unsettled(world.user, len(grants)), "v": User("v")}
    catalog = Catalog(1, world.streams, world.roles, users, world.facts, grants)
    if len(grants) % 4 == 1:
        catalog = catalog.with_claimed(frozenset({"pg"}))
    united = can_unite(root) and rng.random() < 0.4
    return Case(catalog, world.user.name, root, outputs, united, world.data)


def _leave_unsettled(user: User, number: int) -> User:
    """Some of those with one role hold another that their session has not activated, and some have an attribute of their
    sign-in; nothing is drawn for it."""
    inactive = ("ra",) if user.roles == ("rb",) and number % 3 else ()
    return replace(user, inactive=inactive, varying=("pk",) if number % 4 == 2 else ())


def can_unite(root: Node) -> bool:
    """Whether UNITED has something to do and is not refused (R4)."""
    refused = (AggFunction.AVG, AggFunction.FIRST, AggFunction.LAST)
    found = [node for node in walk(root) if isinstance(node, Aggregate)]
    return bool(found) and not any(
        isinstance(node.window, TupleWindow) or any(call.function in refused for call in node.calls)
        for node in found
    )


def describe(case: Case) -> str:
    """All of a case in lines: what is needed to work it by hand, then the graph as Python writes it."""
    catalog = case.catalog
    lines = [f"stream {stream}" for stream in catalog.streams.values()]
    lines += [f"role {role}" for role in catalog.roles.values()]
    lines += [f"{user}" for user in catalog.users.values()]
    lines += [f"{fact}" for fact in catalog.facts.values()]
    lines += [_describe_grant(grant) for grant in catalog.grants.values()]
    for name, rows in case.data.items():
        lines += [f"{name}[{at}] {dict(row)}" for at, row in enumerate(rows)]
    lines.append(f"query of {case.user}{', united' if case.united else ''}:")
    lines += _describe_node(case.root, 1)
    lines.append(f"outputs: {', '.join(field.name for field in case.outputs)}")
    lines.append(f"{case.root!r}")
    return "\n".join(lines)


def _describe_grant(grant: Grant) -> str:
    rights = [
        f"{right.function.value}({to_text(right.attribute) if right.attribute else '*'})"
        for right in grant.rights
    ]
    parts = [
        f"grant {grant.name} {grant.privilege.value}",
        f"({', '.join([*map(to_text, grant.attributes), *rights])})",
        f"on {', '.join(f'{ref.stream} as {ref.alias}' for ref in grant.streams)}",
        f"where {to_text(grant.predicate)}",
        f"to {'user ' if grant.subject.is_user else ''}{grant.subject.name}",
    ]
    if grant.during is not None:
        parts.append(f"during [{to_text(grant.during.lower)}, {to_text(grant.during.upper)}]")
    if grant.by or grant.narrow_by:
        parts.append(f"by ({', '.join(map(to_text, grant.by))})")
        parts.append(f"narrow by ({', '.join(map(to_text, grant.narrow_by))})")
    if grant.least is not None:
        parts.append(f"{grant.least}")
    if grant.min_group:
        parts.append(f"min group {grant.min_group}")
    return " ".join([*parts, "(closed)"] if grant.closed else parts)


def _describe_node(node: Node, depth: int) -> Iterator[str]:
    yield "  " * depth + _headline(node)
    for each in node.inputs:
        yield from _describe_node(each, depth + 1)


def _headline(node: Node) -> str:
    match node:
        case Source(stream=stream, alias=alias):
            return f"source {stream} as {alias}"
        case Select(predicate=predicate):
            return f"select {to_text(predicate)}"
        case Project(items=items):
            named = (f"{to_text(item.expr)} as {item.field.qualifier}.{item.field.name}" for item in items)
            return f"project {', '.join(named)}"
        case Aggregate(calls=calls, window=window, group_by=keys):
            named = (
                f"{call.function.value}({to_text(call.arg) if call.arg else '*'}) as {call.field.name}"
                for call in calls
            )
            by = ", ".join(f"{to_text(item.expr)} as {item.field.name}" for item in keys)
            return f"aggregate {', '.join(named)} by ({by}) {window}"
        case Join(predicate=predicate, left_window=left, right_window=right):
            return f"join on {to_text(predicate)} {left} {right}"
        case Union(outputs=outputs):
            return f"union as {', '.join(f'{field.qualifier}.{field.name}' for field in outputs)}"
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")

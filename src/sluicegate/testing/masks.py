"""The input of a punctuated query as the interpreter takes it: each tuple with what its policy allows those who ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluicegate.expr.nodes import Literal
from sluicegate.graph.interpret import POLICY
from sluicegate.graph.operators import Shield, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.classes import make_class
from sluicegate.policy.verdict import mask_attributes, servers_covering
from sluicegate.policy.who import read_who
from sluicegate.testing.oracle_elements import govern
from sluicegate.testing.oracle_policies import SP, read_element

Data = Mapping[str, Sequence[Mapping[str, Any]]]


def add_masks(catalog: Catalog, plan: AuthorizedPlan, data: Data) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Without punctuations; which policy a tuple has is the model's word (R13), what it allows is `policy.verdict`'s."""
    asked: dict[str, set[str]] = {}
    for node in walk(plan.root):
        if isinstance(node, Shield) and isinstance(node.who, Literal):
            asked.setdefault(node.input.stream, set()).add(str(node.who.value))
    return {name: _add(catalog, name, asked.get(name, set()), rows) for name, rows in data.items()}


def _add(
    catalog: Catalog, name: str, asked: Iterable[str], rows: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    stream = catalog.streams[name]
    if stream.punctuated_by is None:
        return rows
    elements = [read_element(stream, row) for row in rows]
    attributes = [each for each, _ in stream.attributes]
    made = []
    for row, element, governed in zip(rows, elements, govern(stream, elements), strict=True):
        if SP in row or governed is None:
            continue
        masks = {}
        if governed.reason is None:
            policy = make_class(governed.covering, immutable=governed.immutable)
            for text in asked:
                who = read_who(text)
                servers = servers_covering(who.servers, element.key)
                masks[text] = mask_attributes(policy, servers, who.standing, attributes, option=who.option)
        made.append({**row, POLICY: masks})
    return made

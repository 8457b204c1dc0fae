"""A network for people and programs: lines of text, and JSON.

op-3c01…   serves Q1, Q2   common prefix
    σ s1.k > 3
    from in-9f2b… through a switch for Q1, Q2 (initial)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sluicegate.graph.pretty import describe
from sluicegate.rewrite.sharing.idents import name_kind, shorten
from sluicegate.rewrite.sharing.model import Edge, Network, Operator, Switch, SwitchKind


def write_network(network: Network, switches: Collection[Switch]) -> str:
    """Every operator with whom it serves and what feeds it, inputs first, then the queries' outputs."""
    at = _by_edge(switches)
    lines: list[str] = []
    for each in network.operators.values():
        mark = "   common prefix" if each.is_common and not each.is_input else ""
        lines.append(f"{each.ident}   serves {_list(each.queries)}{mark}")
        lines += [f"    {line}" for line in describe(each.node, hidden=True)]
        lines += [_from(Edge(below, each.ident), at) for below in dict.fromkeys(each.inputs)]
    for query, output in sorted(network.outputs.items()):
        lines += [f"{query}", _from(Edge(output.ident, query, True), at)]
    return shorten("\n".join(lines) + "\n")


def _from(edge: Edge, at: dict[Edge, list[Switch]]) -> str:
    through = [f"through a switch for {_list(each.queries)} ({each.kind.value})" for each in at.get(edge, [])]
    return " ".join([f"    from {edge.below}", *through])


def _by_edge(switches: Iterable[Switch]) -> dict[Edge, list[Switch]]:
    found: dict[Edge, list[Switch]] = {}
    for each in switches:
        found.setdefault(each.edge, []).append(each)
    return found


def _list(queries: Iterable[str]) -> str:
    return ", ".join(sorted(queries))


def network_json(
    network: Network, switches: Collection[Switch], opened: Collection[str] | None = None
) -> dict[str, Any]:
    """N = (V, E, L) and its switches; with the queries that are `opened`, also what runs. Equal networks, equal JSON."""
    operators = [_operator_json(each, opened) for each in network.operators.values()]
    return {
        "operators": sorted(operators, key=lambda each: str(each["id"])),
        "edges": sorted((_edge_json(each) for each in network.edges), key=_by_ends),
        "switches": sorted((_switch_json(each, opened) for each in switches), key=_by_ends),
        "outputs": {query: network.outputs[query].ident for query in sorted(network.outputs)},
        "counts": count_parts(network, switches),
    }


def _by_ends(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["from"], entry["to"], entry.get("kind", "")


def _operator_json(each: Operator, opened: Collection[str] | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": each.ident,
        "kind": name_kind(each.node),
        "text": [shorten(line) for line in describe(each.node, hidden=True)],
        "inputs": list(each.inputs),
        "queries": sorted(each.queries),
        "common_prefix": each.is_common and not each.is_input,
    }
    return made if opened is None else made | {"runs": not each.queries.isdisjoint(opened)}


def _edge_json(edge: Edge) -> dict[str, Any]:
    return {"from": edge.below, "to": edge.above, "to_readers": edge.to_readers}


def _switch_json(switch: Switch, opened: Collection[str] | None) -> dict[str, Any]:
    made = {**_edge_json(switch.edge), "kind": switch.kind.value, "queries": sorted(switch.queries)}
    return made if opened is None else made | {"open": not switch.queries.isdisjoint(opened)}


def count_parts(network: Network, switches: Collection[Switch]) -> dict[str, int]:
    """Operators without the inputs, as the paper counts them."""
    found = [each for each in network.operators.values() if not each.is_input]
    counts = {
        "inputs": len(network.operators) - len(found),
        "operators": len(found),
        "common_prefix": sum(each.is_common for each in found),
        "queries": len(network.outputs),
    }
    kinds = {kind: sum(each.kind is kind for each in switches) for kind in SwitchKind}
    return counts | {f"{kind.value}_switches": count for kind, count in kinds.items()}

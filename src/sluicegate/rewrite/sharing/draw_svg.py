"""A network as SVG: inputs at the bottom, readers on top, each operator above what feeds it, switches on the edges.

Of its own making, without a library. Names and predicates are text in it, never markup (bypass 35).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from sluicegate.graph.pretty import describe
from sluicegate.rewrite.sharing.idents import shorten
from sluicegate.rewrite.sharing.model import Edge, Network, Switch, SwitchKind

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 210, 46, 26, 58, 24
LONGEST = 34
_FILL = {"input": "#eef1f4", "common": "#fde8c8", "own": "#ffffff", "readers": "#e1f0e4"}
_DOT = {SwitchKind.INITIAL: "#1f6f8b", SwitchKind.IN_NETWORK: "#c8553d", SwitchKind.TERMINAL: "#3d7a4a"}


@dataclass(frozen=True, slots=True)
class _Box:
    key: str
    layer: int
    title: str
    lines: tuple[str, ...]
    fill: str
    dimmed: bool


def draw_network(
    network: Network, switches: Collection[Switch], opened: Collection[str] | None = None
) -> str:
    """The picture; with the queries that are `opened`, what does not run is pale and closed switches are hollow."""
    boxes = _find_boxes(network, opened)
    at = _place(network, boxes)
    width = MARGIN * 2 + max((x + WIDTH for x, _ in at.values()), default=0)
    height = MARGIN * 2 + max((y + HEIGHT for _, y in at.values()), default=0)
    parts = [_draw_edge(edge, at) for edge in network.edges]
    parts += [_draw_switch(each, at, number, opened) for each, number in _number(switches)]
    parts += [_draw_box(each, at[each.key]) for each in boxes]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11">'
    )
    return "\n".join([head, "<title>shared operators and privacy switches</title>", *parts, "</svg>"]) + "\n"


def _find_boxes(network: Network, opened: Collection[str] | None) -> list[_Box]:
    layers: dict[str, int] = {}
    boxes = []
    for each in network.operators.values():
        layers[each.ident] = max((layers[below] + 1 for below in each.inputs), default=0)
        fill = "input" if each.is_input else "common" if each.is_common else "own"
        dimmed = opened is not None and each.queries.isdisjoint(opened)
        lines = (shorten(describe(each.node)[0]), ", ".join(sorted(each.queries)))
        boxes.append(_Box(_key(each.ident), layers[each.ident], shorten(each.ident), lines, fill, dimmed))
    top = max(layers.values(), default=0) + 1
    for query in sorted(network.outputs):
        dimmed = opened is not None and query not in opened
        boxes.append(_Box(_key(query, True), top, f"readers of {query}", (), "readers", dimmed))
    return boxes


def _key(name: str, readers: bool = False) -> str:
    return f"{'out' if readers else 'op'}:{name}"


def _place(network: Network, boxes: Iterable[_Box]) -> dict[str, tuple[int, int]]:
    """Layer by layer from below; in a layer, by the middle of what feeds a box, so that few edges cross."""
    rows: dict[int, list[_Box]] = {}
    for each in boxes:
        rows.setdefault(each.layer, []).append(each)
    feeds: dict[str, list[str]] = {}
    for edge in network.edges:
        feeds.setdefault(_key(edge.above, edge.to_readers), []).append(_key(edge.below))
    order: dict[str, float] = {}
    most = max(map(len, rows.values()), default=0)
    found: dict[str, tuple[int, int]] = {}
    for layer in sorted(rows):
        row = sorted(rows[layer], key=lambda each: (_middle(feeds.get(each.key, []), order), each.key))
        left = (most - len(row)) / 2
        for number, each in enumerate(row):
            order[each.key] = left + number
            y = (max(rows) - layer) * (HEIGHT + GAP_Y)
            found[each.key] = (MARGIN + int((left + number) * (WIDTH + GAP_X)), MARGIN + y)
    return found


def _middle(below: list[str], order: Mapping[str, float]) -> float:
    known = [order[each] for each in below if each in order]
    return sum(known) / len(known) if known else 0.0


def _ends(edge: Edge, at: Mapping[str, tuple[int, int]]) -> tuple[float, float, float, float]:
    (x1, y1), (x2, y2) = at[_key(edge.below)], at[_key(edge.above, edge.to_readers)]
    return x1 + WIDTH / 2, y1, x2 + WIDTH / 2, y2 + HEIGHT


def _draw_edge(edge: Edge, at: Mapping[str, tuple[int, int]]) -> str:
    x1, y1, x2, y2 = _ends(edge, at)
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="#8895a0"/>'


def _number(switches: Iterable[Switch]) -> list[tuple[Switch, int]]:
    """Each with how many stand on its edge already."""
    seen: dict[Edge, int] = {}
    found = []
    for each in switches:
        found.append((each, seen.get(each.edge, 0)))
        seen[each.edge] = seen.get(each.edge, 0) + 1
    return found


def _draw_switch(
    switch: Switch, at: Mapping[str, tuple[int, int]], number: int, opened: Collection[str] | None
) -> str:
    x1, y1, x2, y2 = _ends(switch.edge, at)
    part = 0.3 + 0.25 * number
    x, y = x1 + (x2 - x1) * part, y1 + (y2 - y1) * part
    shut = opened is not None and switch.queries.isdisjoint(opened)
    colour = _DOT[switch.kind]
    label = f"{switch.kind.value} switch for {', '.join(sorted(switch.queries))}{', closed' if shut else ''}"
    fill = "#ffffff" if shut else colour
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="6" fill="{fill}" stroke="{colour}" stroke-width="2">'
        f"<title>{escape(label)}</title></circle>"
    )


def _draw_box(box: _Box, place: tuple[int, int]) -> str:
    x, y = place
    texts = [(box.title, "bold"), *((line, "normal") for line in box.lines)]
    shown = [
        f'<text x="{x + WIDTH // 2}" y="{y + 14 + 13 * at}" text-anchor="middle" font-weight="{weight}">'
        f"{escape(_cut(text))}</text>"
        for at, (text, weight) in enumerate(texts)
    ]
    whole = escape("\n".join(text for text, _ in texts))
    rect = (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{_FILL[box.fill]}" '
        f'stroke="#55606a"/>'
    )
    pale = ' opacity="0.35"' if box.dimmed else ""
    return f"<g{pale}><title>{whole}</title>{rect}{''.join(shown)}</g>"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

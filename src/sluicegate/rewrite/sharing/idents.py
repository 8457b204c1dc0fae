"""Names of operators, made of what they mean: equal ones have one name, in every process and every network.

Whoever shares an operator gets its rows, and part of a name is made of what users write: names are whole digests, in which no
two meanings can be made to meet. People are shown the beginning.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column
from sluicegate.graph.json_expr import column_json, type_json
from sluicegate.graph.operators import (
    AggCall,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Shield,
    Source,
    Unfold,
    Union,
)
from sluicegate.graph.windows import TimeWindow, Window
from sluicegate.rewrite.sharing.terms import write_key

_KINDS: dict[type[Node], str] = {
    Source: "input",
    Shield: "shield",
    Select: "select",
    Project: "project",
    Aggregate: "aggregate",
    Join: "join",
    Union: "union",
    Unfold: "unfold",
}
SHOWN = 12
_NAME = re.compile(r"(\b(?:op|in)-|~)([0-9a-f]{64})\b")


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def shorten(text: str) -> str:
    """A text for people: names in it by their beginning."""
    return _NAME.sub(lambda found: found[1] + found[2][:SHOWN], text)


def name_kind(node: Node) -> str:
    """`select`, `join`, …; an operator that is not known is refused."""
    kind = _KINDS.get(type(node))
    if kind is None:
        raise InvariantError(f"a network has no {type(node).__name__}")
    return kind


class Idents:
    """Digests of canonical nodes, each computed once."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Node, str]] = {}
        self._texts: dict[str, str] = {}

    def digest(self, node: Node) -> str:
        """Of the whole graph below: two nodes have one only if they give the same rows under the same names."""
        known = self._found.get(id(node))
        if known is None:
            below = [self.digest(each) for each in node.inputs]
            text = json.dumps([name_kind(node), _describe(node), below], sort_keys=True)
            # the node is kept, so that its id stays its own
            known = self._found[id(node)] = (node, hash_text(text))
            if self._texts.setdefault(known[1], text) != text:
                raise InvariantError(f"two {name_kind(node)} operators that differ have one name")
        return known[1]

    def ident(self, node: Node) -> str:
        """The name of whatever gives these rows, by whichever operator."""
        return f"{'in' if isinstance(node, Source) else 'op'}-{self.digest(node)}"

    def check_same(self, one: Node, other: Node) -> None:
        """Raises where two nodes do not mean the same, whatever they are called."""
        if self.digest(one) != self.digest(other):
            raise InvariantError(f"two {name_kind(one)} operators that differ have one name")

    def skeleton(self, node: Node) -> str:
        """What is left without filters: the order of a join's sides goes by it, whatever is filtered later."""
        match node:
            case Select(input=inner):
                return self.skeleton(inner)
            case Join(left_window=left, right_window=right):
                sides = [self.skeleton(each) for each in node.inputs]
                return hash_text(json.dumps(["join", sides, _window(left), _window(right)]))
            case Project(input=inner) if _is_renaming(node):
                return self.skeleton(inner)
            case _:
                return self.digest(node)


def _is_renaming(node: Project) -> bool:
    return len(node.items) == len(node.input.fields) and all(
        isinstance(each.expr, Column) for each in node.items
    )


def _describe(node: Node) -> object:
    """The operator's own parameters. For whom a shield judges is among them: two principals never share one."""
    match node:
        case Source():
            attributes = [[name, type_json(of)] for name, of in node.attributes]
            return [node.stream, node.alias, attributes, node.event_time]
        case Shield():
            return [node.needed, node.told, write_key(node.who)]
        case Select():
            return write_key(node.predicate)
        case Project():
            return _items(node.items)
        case Aggregate():
            calls = [_call(each) for each in node.calls]
            return [calls, _window(node.window), _items(node.group_by), _columns(node.partition)]
        case Join():
            windows = [_window(node.left_window), _window(node.right_window)]
            parts = [_columns(node.left_partition), _columns(node.right_partition)]
            return [write_key(node.predicate), windows, parts]
        case Union():
            return [_field(each) for each in node.outputs]
        case Unfold():
            cases = [[write_key(each.when), _columns(each.shown)] for each in node.cases]
            return [_columns(node.variable), cases]
        case _:
            raise InvariantError(f"a network has no {type(node).__name__}")


def _columns(columns: Iterable[Column]) -> list[object]:
    return [column_json(each) for each in columns]


def _field(field: Field) -> object:
    return column_json(field.column)


def _items(items: Iterable[Item]) -> list[object]:
    return [[_field(each.field), write_key(each.expr)] for each in items]


def _call(call: AggCall) -> object:
    return [call.function.value, None if call.arg is None else write_key(call.arg), _field(call.field)]


def _window(window: Window | None) -> object:
    if window is None:
        return None
    return ["time" if isinstance(window, TimeWindow) else "rows", window.size, window.step]

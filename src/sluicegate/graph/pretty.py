"""Draw a graph as text for people: σ π Σ ⋈ ∪, inputs below what they feed, a shared node drawn once.

π SID
└─ σ Health.BPressure > 160
   └─ σ Health.Platoon = 'X'   ◂ own_platoon
      └─ Health
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sluicegate.expr.nodes import Column
from sluicegate.expr.text import to_text
from sluicegate.graph.operators import (
    AggCall,
    Aggregate,
    Item,
    Join,
    Node,
    Project,
    RaisedShield,
    Select,
    Shield,
    Source,
    Unfold,
    UnfoldCase,
    Union,
    walk,
)
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window, format_duration

MARK = "◂"


def draw(root: Node, *, hidden: bool = False) -> str:
    """The graph as a tree; `hidden` also shows the rewriter's own columns."""
    uses = Counter(id(below) for node in walk(root) for below in node.inputs)
    shared = [node for node in walk(root) if uses[id(node)] > 1 and not isinstance(node, Source)]
    drawing = _Drawing(hidden, {id(node): number + 1 for number, node in enumerate(shared)})
    drawing.add(root, "", "")
    return "\n".join(drawing.lines) + "\n"


@dataclass
class _Drawing:
    hidden: bool
    shared: dict[int, int]
    lines: list[str] = field(default_factory=list)
    drawn: set[int] = field(default_factory=set)

    def add(self, node: Node, lead: str, below: str) -> None:
        number = self.shared.get(id(node))
        label = f"#{number}: " if number else ""
        if id(node) in self.drawn and number:
            self.lines.append(f"{lead}#{number}, drawn above")
            return
        self.drawn.add(id(node))
        first, *more = describe(node, hidden=self.hidden)
        self.lines.append(f"{lead}{label}{first}{_mark(node)}")
        last = len(node.inputs) - 1
        self.lines += [f"{below}{'│' if last >= 0 else ' '}    {line}" for line in more]
        for at, child in enumerate(node.inputs):
            turn, pad = ("└─ ", "   ") if at == last else ("├─ ", "│  ")
            self.add(child, below + turn, below + pad)


def _mark(node: Node) -> str:
    by = node.by if isinstance(node, Select | Project | Aggregate) else ()
    return f"   {MARK} {', '.join(by)}" if by else ""


def describe(node: Node, *, hidden: bool = False) -> list[str]:
    """What a node does: a line, and more where it has parts of its own."""
    match node:
        case Source():
            alias = f" as {node.alias}" if node.alias != node.stream else ""
            return [f"{node.stream}{alias}{'' if node.event_time else ' (table)'}"]
        case Shield():
            return [_shield(node)]
        case RaisedShield():
            return [f"of {node.shield.input.alias}: {_shield(node.shield)}"]
        case Select():
            return [f"σ {to_text(node.predicate)}"]
        case Project():
            return [f"π {_items(node.items, hidden)}"]
        case Aggregate():
            return [_aggregate(node, hidden)]
        case Join():
            return [f"⋈ {to_text(node.predicate)}{_join_windows(node)}"]
        case Union():
            return ["∪ " + _names([each.column for each in node.outputs], hidden)]
        case Unfold():
            return ["show each row as its grants allow:", *(_case(case) for case in node.cases)]
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _shield(node: Shield) -> str:
    needed = f" needs {', '.join(node.needed)}" if node.needed else ""
    told = f"{';' if needed else ''} leaves out where hidden {', '.join(node.told)}" if node.told else ""
    return f"shield: the policy that each tuple names{':' if needed or told else ''}{needed}{told}"


def _names(columns: list[Column], hidden: bool) -> str:
    shown = [_name(column) for column in columns if hidden or not column.hidden]
    return ", ".join(shown) or "nothing shown"


def _name(column: Column) -> str:
    return f"{column.qualifier}.{column.name}" if column.hidden else column.name


def _items(items: tuple[Item, ...], hidden: bool) -> str:
    shown = [_item(item) for item in items if hidden or not item.field.hidden]
    return ", ".join(shown) or "nothing shown"


def _item(item: Item) -> str:
    text, name = to_text(item.expr), _name(item.field.column)
    if isinstance(item.expr, Column) and item.expr.name == item.field.name:
        return text
    return f"{text} as {name}"


def _aggregate(node: Aggregate, hidden: bool) -> str:
    calls = [_call(call) for call in node.calls if hidden or not call.field.hidden]
    parts = [f"Σ {', '.join(calls) or 'nothing shown'} over {write_window(node.window)}"]
    if node.group_by:
        parts.append(f"by {_items(node.group_by, hidden)}")
    if node.partition and hidden:
        parts.append(f"apart for each {', '.join(map(_name, node.partition))}")
    return " ".join(parts)


def _call(call: AggCall) -> str:
    word, _, rest = call.function.value.partition(" ")
    argument = "*" if call.arg is None else to_text(call.arg)
    text = f"{word}({rest + ' ' if rest else ''}{argument})"
    return text if text.casefold() == call.field.name.casefold() else f"{text} as {_name(call.field.column)}"


def write_window(window: Window | None) -> str:
    """`1 hour / 10 minutes`, `10 rows / 2 rows`; the size alone where the step says nothing more."""
    match window:
        case None:
            return "all"
        case TimeWindow(size, step):
            sizes = [format_duration(each) for each in (size, step)]
        case TupleWindow(size, step):
            sizes = [f"{each} row{'' if each == 1 else 's'}" for each in (size, step)]
        case _:
            raise TypeError(f"unknown window {type(window).__name__}")
    return sizes[0] if step in (0, size) else " / ".join(sizes)


def _join_windows(node: Join) -> str:
    return f"   [{write_window(node.left_window)}; {write_window(node.right_window)}]"


def _case(case: UnfoldCase) -> str:
    shown = ", ".join(_name(column) for column in case.shown) or "nothing more"
    by = f"   {MARK} {', '.join(case.grants)}" if case.grants else ""
    return f"{shown} where {to_text(case.when)}{by}"

"""The last of the policy passes: the united plan of a whole query, or none where nothing is authorized."""

from __future__ import annotations

from sluicegate.expr.labels import LABEL_NAMES
from sluicegate.expr.nodes import FALSE, TRUE, Call, Column, disjoin
from sluicegate.expr.types import BOOLEAN, STRING
from sluicegate.graph.operators import Field, Item, Node, Project, Select
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.policy.bind import Binder
from sluicegate.rewrite.blocks import Block
from sluicegate.rewrite.candidates import Candidates
from sluicegate.rewrite.passes.set_usage import Usage
from sluicegate.rewrite.passes.unite_views import Uniter
from sluicegate.rewrite.shielding import make_shields
from sluicegate.rewrite.ways import Way, bounds


def unite(
    block: Block, usage: Usage, candidates: Candidates, binder: Binder, united: bool
) -> AuthorizedPlan | None:
    """All that the candidates allow, as one plan."""
    shields = make_shields(block, usage, binder)
    way = Uniter(binder, usage, candidates, shields, united).block(block)
    return None if way is None else _plan(block, way)


def _plan(block: Block, way: Way) -> AuthorizedPlan | None:
    """The outputs that are left under their names; a row of which nothing is left is not released (R1)."""
    left = [
        (item.field, output)
        for item, output in zip(block.items, way.outputs, strict=True)
        if output.expr is not None and output.shown != FALSE
    ]
    if not left:
        return None
    node: Node = way.node
    if all(output.shown != TRUE for _, output in left):
        node = Select(node, disjoin(*(output.shown for _, output in left)))
    items: list[Item] = []
    outputs: list[OutputColumn] = []
    for field, output in left:
        made = Field("", field.name, field.type)
        items.append(Item(made, output.expr or FALSE))
        shown: Column | None = None
        if output.shown != TRUE:
            companion = Field("#shown", field.name, BOOLEAN)
            items.append(Item(companion, output.shown))
            shown = companion.column
        outputs.append(OutputColumn(field.name, made.column, shown))
    label: Column | None = None
    if way.label is not None:
        label = Column("#label", "", STRING)
        items.append(Item(Field("#label", "", STRING), Call(LABEL_NAMES, (way.label,), STRING)))
    return AuthorizedPlan(Project(node, (*items, *bounds(node))), tuple(outputs), label)

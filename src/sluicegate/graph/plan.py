"""What the rewriter hands to interpreters and targets: a graph, the columns that become output, the label's column."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column
from sluicegate.graph.operators import WINDOW_START, Node

GRANT_NAME = "_grant"
START_NAME = "window_start"
END_NAME = "window_end"


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """An output attribute. Where `shown` is not true the row lacks the attribute, which is not the same as NULL (R1)."""

    name: str
    column: Column
    shown: Column | None = None


@dataclass(frozen=True, slots=True)
class AuthorizedPlan:
    """A query as a principal may have it. `label` holds the name of the grant that gave an aggregate's row (R4)."""

    root: Node
    outputs: tuple[OutputColumn, ...]
    label: Column | None = None

    def __post_init__(self) -> None:
        known = {each.column for each in self.root.fields}
        used = [column for output in self.outputs for column in (output.column, output.shown)]
        for column in (*used, self.label):
            if column is not None and column not in known:
                raise InvariantError(
                    f"the plan's output `{column.qualifier}.{column.name}` is not in its graph"
                )

    @property
    def windowed(self) -> bool:
        """Whether rows may carry the bounds of a window."""
        return any(each.column == WINDOW_START for each in self.root.fields)

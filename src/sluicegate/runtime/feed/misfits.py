"""What the layouts of a source share: names of columns, and how a value that does not fit is told."""

from __future__ import annotations

from sluicegate.expr.types import Type
from sluicegate.targets.spark_text import quote_text

PROBLEM, RAW = "_problem", "_raw"
LONGEST_RAW = 4096


def write_misfit(name: str, of: Type) -> str:
    """Why a row is malformed, as SQL text; never with a value."""
    return quote_text(f"`{name}` is not a {of}")

"""Roles that policies allow, as bits of one number, and the internal function on them: what several have in common (R15)."""

from __future__ import annotations

from functools import reduce
from operator import and_

from sluicegate.expr.nodes import Value

COMMON_ROLES = "#common_roles"
ALL_ROLES = -1
"""Of rows that no policy governs: every bit."""


def common_roles(*masks: Value) -> int | None:
    """The bits that all have; NULL where one is not known, which is no access (R7)."""
    known = [each for each in masks if isinstance(each, int)]
    return reduce(and_, known) if known and len(known) == len(masks) else None


def common_roles_sql(args: list[str]) -> str:
    """Both engines write it alike."""
    return "(" + " & ".join(args) + ")"

"""What the solver may answer. Unknown is a value of its own, and means no wherever access depends on it (R7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from sluicegate.expr.nodes import Column, Expr, Value


class Verdict(Enum):
    SAT = "satisfiable"
    UNSAT = "unsatisfiable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sat:
    """A row on which the predicate is TRUE, confirmed by the evaluator, and values for `self.x` and facts."""

    row: Mapping[Column, Value] = field(default_factory=dict)
    unknowns: Mapping[Expr, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unsat:
    """No row makes the predicate TRUE."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither was shown."""

    reason: str


Answer: TypeAlias = Sat | Unsat | Unknown

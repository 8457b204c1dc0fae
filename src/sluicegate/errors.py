"""Diagnostics: one class, a table of stable codes, and the exceptions that carry them.

A message is lower case without a full stop, user words stand in backticks, and help is apart from it.
Each code has a page in `docs/errors/`, made from this table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sluicegate.source import Span


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Diagnostic:
    """One finding: what is wrong, where, and what to do about it."""

    code: str
    message: str
    span: Span | None = None
    help: str | None = None
    severity: Severity = Severity.ERROR

    def render(self) -> str:
        place = f"{self.span}: " if self.span else ""
        lines = [f"{place}{self.severity.value}[{self.code}]: {self.message}"]
        if self.span is not None:
            lines += ["  " + line for line in self.span.underlined().splitlines()]
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class SluicegateError(Exception):
    """Base of all that this package raises on purpose."""


class DiagnosticError(SluicegateError):
    """Bad input: one or more diagnostics, at least one of them an error."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(diagnostic.render() for diagnostic in self.diagnostics))


class InvariantError(SluicegateError):
    """A pass broke an invariant: a fault of ours; nothing is let through."""

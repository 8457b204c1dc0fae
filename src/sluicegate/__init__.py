"""Who may see what of a data stream.

import sluicegate

gate = sluicegate.open("examples/soldiers")
gate.explain("paul", "SELECT SID FROM Health").decision
gate.authorize("paul", "SELECT SID FROM Health").translate("duckdb")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate.api import Authorized, Denied, Gate, check, open
    from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError, SluicegateError

__all__ = [
    "Authorized",
    "Denied",
    "Diagnostic",
    "DiagnosticError",
    "Gate",
    "InvariantError",
    "SluicegateError",
    "check",
    "open",
]

__version__ = "0.1.0"

_ERRORS = frozenset({"Diagnostic", "DiagnosticError", "InvariantError", "SluicegateError"})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: every module of the package imports this one."""
    if name not in __all__:
        raise AttributeError(f"module 'sluicegate' has no attribute {name!r}")
    from importlib import import_module

    module = import_module("sluicegate.errors" if name in _ERRORS else "sluicegate.api")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

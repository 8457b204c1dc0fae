"""Diagnostics of feeds; their codes are in `targets.feed_codes`."""

from __future__ import annotations

from sluicegate.errors import Diagnostic, DiagnosticError


def refuse_feed(code: str, message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, help=help_)])

"""Switches that turned, for the audit log."""

from __future__ import annotations

from sluicegate.service.authorization.state import Turned
from sluicegate.service.store import Event

ACTOR = "authorization"
"""Who is shown to have turned a switch because a proof changed."""


def write_event(turned: Turned, version: int) -> Event:
    """Whose switch, why, and in which streams it was told."""
    who = ", ".join(turned.users) or "everybody"
    action = "switch-open" if turned.positive else "switch-close"
    return Event(
        ACTOR, action, f"{turned.query} {who}", version, decision=turned.reason, notices=turned.streams
    )

"""The gateway's client: `Client(url).sign_in(…)`, `.query(…).rows()`. It needs `httpx` and nothing of the engine."""

from __future__ import annotations

from sluicegate.client.client import Client, Pushed, Session
from sluicegate.client.errors import (
    ClientError,
    GapError,
    GapWarning,
    RefusedError,
    RevokedError,
    UnreachableError,
    UnsafeAddressError,
    WithdrawnError,
)
from sluicegate.client.events import Closed, Event, Gap, Notice, Revoked, Rows, Withdrawn
from sluicegate.client.handle import Handle
from sluicegate.client.tokens import IssuedToken, Tokens

__all__ = [
    "Client",
    "ClientError",
    "Closed",
    "Event",
    "Gap",
    "GapError",
    "GapWarning",
    "Handle",
    "IssuedToken",
    "Notice",
    "Pushed",
    "RefusedError",
    "Revoked",
    "RevokedError",
    "Rows",
    "Session",
    "Tokens",
    "UnreachableError",
    "UnsafeAddressError",
    "Withdrawn",
    "WithdrawnError",
]

"""What goes wrong between a client and its gateway. No message holds a password, a token or a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluicegate.client.events import Gap, Revoked, Withdrawn
from sluicegate.errors import SluicegateError


class ClientError(SluicegateError):
    """Base of all that the client raises: a code of docs/errors, and words for people."""

    def __init__(self, code: str, message: str, help_: str | None = None) -> None:
        super().__init__(f"{message} [{code}]")
        self.code, self.message, self.help = code, message, help_


class RefusedError(ClientError):
    """The gateway's answer was an error. `places` say where in the text that was sent: line, column, start, end, text."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        help_: str | None = None,
        places: Sequence[Mapping[str, Any]] = (),
        retry_seconds: float | None = None,
        request: str = "",
    ) -> None:
        super().__init__(code, message, help_)
        self.status, self.places = status, tuple(places)
        self.retry_seconds, self.request = retry_seconds, request

    @property
    def passes(self) -> bool:
        """Whether the same request may be answered a little later."""
        return self.status in {408, 429, 502, 503, 504}


class UnreachableError(ClientError):
    """No answer: not there, too late, or not of a gateway."""


class UnsafeAddressError(ClientError):
    """Nothing is sent to such an address."""


class GapError(ClientError):
    """Results were lost; reading on goes on behind them."""

    def __init__(self, gap: Gap) -> None:
        super().__init__("gap", "some results before the next rows are lost")
        self.gap = gap


class WithdrawnError(ClientError):
    """No grant is left for the query (R12); it has ended."""

    def __init__(self, event: Withdrawn) -> None:
        super().__init__("withdrawn", event.reason)
        self.reason = event.reason


class RevokedError(ClientError):
    """The reader's session ended, or its right to be there, under this version; nothing follows (R10)."""

    def __init__(self, event: Revoked) -> None:
        super().__init__("revoked", f"the session has ended: {event.reason or 'no reason told'}")
        self.version, self.reason = event.version, event.reason


class GapWarning(UserWarning):
    """A table lacks results that were lost before they were read."""

"""What `sluicegate proxy` can be told. None of it widens what anybody may see: gateways decide, each time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Gateways in order, by their addresses; what a request may cost."""

    gateways: tuple[str, ...]
    most_handles: int = 10_000
    """Handles, and places of streams, that are remembered; the ones longest not asked for go first."""
    most_open: int = 2_000
    """Answers that are passed on at the same time."""
    most_text_bytes: int = 1_048_576
    most_body_bytes: int = 1_048_576
    most_answer_bytes: int = 16_777_216
    """Of an answer that is read whole; results are not."""
    body_seconds: float = 30.0
    client_rate: float = 400.0
    client_burst: float = 800.0
    connect_seconds: float = 5.0
    answer_seconds: float = 90.0
    """How long a gateway may say nothing: more than a request may wait there, or a heartbeat takes to come."""

"""Streams that are `GOVERNED BY PROVIDER`: the policies of their tuples alone decide, and no grant is asked for (R14)."""

from __future__ import annotations

from sluicegate.expr.nodes import Column
from sluicegate.policy.model import Grant, Privilege, Stream, StreamRef, Subject

PROVIDER = "#provider:"
"""Begins the names of what stands for the provider: never shown as a grant."""


def provider_grant(stream: Stream, user: str) -> Grant:
    """What lets the user ask for all of the stream; the shield above its source then decides on each tuple."""
    attributes = tuple(Column(stream.name, name, of) for name, of in stream.attributes)
    refs = (StreamRef(stream.name, stream.name),)
    return Grant(PROVIDER + stream.name, Subject(user, is_user=True), Privilege.READ, refs, attributes)


def is_provider(name: str) -> bool:
    """Whether a grant of this name stands for a provider."""
    return name.startswith(PROVIDER)

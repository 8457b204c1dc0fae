"""What `check` warns of in punctuations that the catalog holds: the server's (`CREATE SP`), and those that ON RESULT states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import matches
from sluicegate.policy.model import Privilege, Stream
from sluicegate.policy.punctuation import (
    Constant,
    DataDescription,
    Nothing,
    OneOf,
    Pattern,
    Restriction,
)
from sluicegate.policy.verdict import ROLE_MODEL, USER_MODELS

PUNCTUATION_LINT_CODES: dict[str, str] = {
    "idle-punctuation": "a punctuation that describes no tuple, attribute or stream that there is",
    "unknown-subject": "a punctuation names a role or a user that the catalog does not have",
    "idle-grant": "a grant to read what the policies of tuples alone decide about",
}


@dataclass(frozen=True, slots=True)
class Warned:
    """A finding, and on what: its kind and name."""

    code: str
    kind: str
    name: str
    message: str
    help: str | None = None


def find_idle(catalog: Catalog) -> Iterator[Warned]:
    """By name: the server's punctuations, what results state, grants that decide nothing."""
    for name, each in sorted(catalog.punctuations.items()):
        stream = catalog.streams[each.stream]
        for code, message in _check(catalog, stream, each.ddp, each.srp):
            yield Warned(code, "punctuation", name, f"punctuation `{name}` {message}")
    for name, stream in sorted(catalog.streams.items()):
        for stated in stream.stated:
            for code, message in _check(catalog, stream, stated.ddp, stated.srp):
                yield Warned(code, "stream", name, f"ON RESULT of `{name}` {message}")
    for name, grant in sorted(catalog.grants.items()):
        governed = sorted(set(grant.stream_names) & catalog.governed.keys())
        if governed and grant.privilege is not Privilege.APPEND:
            message = (
                f"grant `{name}` decides nothing: `{governed[0]}` is governed by the policies of its tuples"
            )
            yield Warned("idle-grant", "grant", name, message)


def _check(
    catalog: Catalog, stream: Stream, ddp: DataDescription, srp: Restriction
) -> Iterator[tuple[str, str]]:
    if not matches(ddp.streams, stream.name):
        yield "idle-punctuation", f"is into `{stream.name}`, and describes other streams"
    if ddp.tuples in (Nothing(), OneOf(())):
        yield "idle-punctuation", "describes no tuple"
    known = {name for name, _ in stream.attributes}
    for name in sorted(_list_names(ddp.attributes) - known):
        yield "idle-punctuation", f"describes `{name}`, which `{stream.name}` has not"
    yield from _check_subjects(catalog, srp)


def _check_subjects(catalog: Catalog, srp: Restriction) -> Iterator[tuple[str, str]]:
    """What the model is, is warned of where it is written."""
    named = _list_names(srp.subjects)
    if srp.model == ROLE_MODEL:
        for name in sorted(named - catalog.roles.keys()):
            yield "unknown-subject", f"names the role `{name}`, which does not exist"
    elif srp.model in USER_MODELS:
        for name in sorted(named - catalog.users.keys()):
            yield "unknown-subject", f"names the user `{name}`, who does not exist"


def _list_names(pattern: Pattern) -> frozenset[str]:
    match pattern:
        case Constant(str(name)):
            return frozenset({name})
        case OneOf(values):
            return frozenset(each for each in values if isinstance(each, str))
        case _:
            return frozenset()

"""The policies that a named result states for its tuples (`ON RESULT`, R15): those of all are one, so that verdicts need no data."""

from __future__ import annotations

from sluicegate.policy.catalog import Catalog
from sluicegate.policy.classes import PolicyClass, make_class
from sluicegate.policy.elements import covers_stream
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import Anything
from sluicegate.policy.verdict import mask_attributes, servers_on, standing_of
from sluicegate.policy.who import Who


def class_of(stream: Stream) -> PolicyClass:
    """The class of all tuples of a named result with an ON RESULT."""
    covering = (
        each for each in stream.stated if covers_stream(each, stream.name) and each.ddp.tuples == Anything()
    )
    return make_class(covering, immutable=any(each.immutable for each in stream.stated))


def mask_stated(stream: Stream, who: Who) -> dict[str, int]:
    """For each attribute the roles that may see it, or pass it on where that is asked."""
    names = [name for name, _ in stream.attributes]
    return mask_attributes(class_of(stream), who.servers, who.standing, names, option=who.option)


def list_stated(catalog: Catalog, stream: Stream, user: str, *, option: bool = False) -> frozenset[str]:
    """The attributes that the user may see by what is stated, or with `option` pass on."""
    who = Who(standing_of(catalog, user), servers_on(catalog, stream.name), option)
    return frozenset(name for name, mask in mask_stated(stream, who).items() if mask)

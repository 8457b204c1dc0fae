"""How feeds carry a punctuated stream: its tuples and its punctuations in one sequence, in order of arrival.

    _sp         the punctuation: in JSON an object, in columns its JSON text; missing or NULL for a tuple
    _sp_ts      the ts of the policy that the tuple names
    _sp_count   how many punctuations that policy has

Who sent an element is never for the element to say. It is the principal that pushed it; of a feed with a source, the
stream's owner, who declared it, unless the option `sender_column` names the column that the source authenticates: then an
element without one is nobody's, and denied. Of a topic whose records are signed it is who signed. A topic's partitions are
the stream's; every other feed is one partition.
"""

from __future__ import annotations

from dataclasses import replace

from sluicegate.expr.types import BIGINT, STRING, TIMESTAMP
from sluicegate.language.kafka_options import KAFKA_FORMAT
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.codes import refuse_feed

SP, SP_TS, SP_COUNT = "_sp", "_sp_ts", "_sp_count"
SENDER, PARTITION = "_sender", "_partition"
SENDER_OPTION = "sender_column"
CARRIED = ((SP, STRING), (SP_TS, TIMESTAMP), (SP_COUNT, BIGINT))
_RESERVED = frozenset({SP, SP_TS, SP_COUNT, SENDER, PARTITION, "_policy"})


def carry(stream: Stream) -> Stream:
    """The stream with what its elements have beside its attributes; one that is not punctuated as it is."""
    if stream.punctuated_by is None:
        return stream
    names = [name for name, _ in stream.attributes]
    for name in sorted(_RESERVED & set(names)):
        message = f"the attribute `{name}` of `{stream.name}` has a name that punctuated streams use"
        raise refuse_feed("feed-schema", message)
    sender = find_sender_column(stream)
    more = () if sender is None or sender in names else ((sender, STRING),)
    return replace(stream, attributes=(*stream.attributes, *CARRIED, *more))


def find_sender_column(stream: Stream) -> str | None:
    """The column that says who sent an element, if the declaration names one."""
    found = dict(stream.options).get(SENDER_OPTION)
    if found in (SP, SP_TS, SP_COUNT, PARTITION):
        raise refuse_feed("feed-schema", f"the senders of `{stream.name}` cannot be in `{found}`")
    return found


def find_trusted(stream: Stream) -> str | None:
    """The sender of all elements of a feed whose rows do not say: its owner, or, without one, nobody in particular.

    Who may write to a topic speaks for the owner only where that was declared.
    """
    if stream.format == KAFKA_FORMAT and dict(stream.options).get("sender") != "topic":
        return None
    return (stream.owner or "") if find_sender_column(stream) is None else None

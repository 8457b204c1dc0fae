"""Options of Spark's reader and writer for topics: what a declaration names, what it names by name only, and what always holds."""

from __future__ import annotations

from collections.abc import Mapping

from sluicegate.language.kafka_options import KAFKA_FORMAT, TOPIC, KafkaTopic, read_kafka
from sluicegate.policy.model import Stream
from sluicegate.runtime.kafka.login import sign_in

AT_ONCE = 500_000
"""Records of one batch at most: what lies in a topic for long must not come in one piece.

With a tuple and `MOST_SAID` punctuations each they are fewer rows than a batch has numbers for (2^24).
"""
JUDGED_AT_ONCE = 2_000
"""Of a punctuated stream, unless it is declared: the shield collects them, and with `LONGEST_JUDGED` bytes each they must fit into
Spark's usual gigabyte, where they are several times at once."""
MOST_HEADERS, MOST_SAID = 100, 16
"""Of one record; `MOST_SAID` are punctuations."""
LONGEST_JUDGED = 80 * 1024
"""Bytes of a record of a punctuated stream: its key, value and headers."""
_USUAL: Mapping[str, str] = {
    "startingOffsets": "latest",
    "includeHeaders": "true",
    # a transaction counts whole or not at all
    "kafka.isolation.level": "read_committed",
}
_MOST, _LEAST = "maxOffsetsPerTrigger", "minOffsetsPerTrigger"
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp")
_CLIENT = ("kafka.bootstrap.", "kafka.security.", "kafka.sasl.", "kafka.ssl.", "kafka.client.id")


def resolve_reader(topic: KafkaTopic, judged: bool = False) -> dict[str, str]:
    """With the secrets, which are looked up now; `judged` where the stream is punctuated."""
    usual = dict(_USUAL)
    if any(topic.passes(name) is not None for name in _STARTS):
        del usual["startingOffsets"]
    most = min(int(topic.passes(_MOST) or (JUDGED_AT_ONCE if judged else AT_ONCE)), AT_ONCE)
    least = topic.passes(_LEAST)
    return {
        **usual,
        **dict(topic.passed),
        _MOST: str(most),
        **({} if least is None else {_LEAST: str(min(int(least), most))}),
        TOPIC: topic.topic,
        "failOnDataLoss": str(topic.stops_on_loss).lower(),
        **sign_in(topic),
    }


def resolve_writer(options: Mapping[str, str]) -> dict[str, str]:
    """How a topic is reached, in the words of streams out of topics, as a writer takes it; with the secrets."""
    declared = read_kafka(Stream("", (), format=KAFKA_FORMAT, options=((TOPIC, "any"), *options.items())))
    return {**select_client(dict(declared.passed)), **sign_in(declared)}


def select_client(options: Mapping[str, str]) -> dict[str, str]:
    """Those that every client of a broker needs."""
    return {name: value for name, value in options.items() if name.startswith(_CLIENT)}

"""Options of Spark's reader and writer for topics: what a declaration names, what it names by name only, and what always holds."""

from __future__ import annotations

from collections.abc import Mapping

from sluicegate.language.kafka_options import KAFKA_FORMAT, TOPIC, KafkaTopic, read_kafka
from sluicegate.policy.model import Stream
from sluicegate.runtime.kafka.login import sign_in

AT_ONCE = "500000"
"""Records of one batch, unless the declaration says how many: what lies in a topic for long must not come in one piece."""
_USUAL: Mapping[str, str] = {
    "startingOffsets": "latest",
    "maxOffsetsPerTrigger": AT_ONCE,
    "includeHeaders": "true",
    # a transaction counts whole or not at all
    "kafka.isolation.level": "read_committed",
}
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp")
_CLIENT = ("kafka.bootstrap.", "kafka.security.", "kafka.sasl.", "kafka.ssl.", "kafka.client.id")


def resolve_reader(topic: KafkaTopic) -> dict[str, str]:
    """With the secrets, which are looked up now."""
    usual = dict(_USUAL)
    if any(topic.passes(name) is not None for name in _STARTS):
        del usual["startingOffsets"]
    return {
        **usual,
        **dict(topic.passed),
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

"""A topic as a streaming frame: what the declaration names, the secrets that it names, and what holds for every topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.language.check_kafka import check_kafka_stream
from sluicegate.language.kafka_options import read_kafka
from sluicegate.policy.model import Stream
from sluicegate.runtime.connectors import require_connectors
from sluicegate.runtime.feed.carriage import carry
from sluicegate.runtime.kafka.messages import plan_messages
from sluicegate.runtime.kafka.options import resolve_reader, select_client
from sluicegate.runtime.kafka.records import Records
from sluicegate.runtime.kafka.signatures import load_sender_keys
from sluicegate.runtime.kafka.topic import TopicWatch
from sluicegate.runtime.session import HIDDEN, REDACTED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class OpenTopic:
    frame: DataFrame
    records: Records
    watch: TopicWatch


def open_topic(spark: SparkSession, stream: Stream) -> OpenTopic:
    """The frame of a topic's records; nothing is read yet."""
    require_connectors()
    check_kafka_stream(stream, None)
    topic = read_kafka(stream)
    # files and secrets first: what is missing is told before a broker is asked
    plan_messages(carry(stream), topic.messages, [name for name, _ in topic.parts])
    records = Records(topic, load_sender_keys(topic.sender_secrets) if topic.sender_secrets else None)
    options = resolve_reader(topic, stream.punctuated_by is not None)
    # also in a session that is not of our making
    spark.conf.set(REDACTED, HIDDEN)
    frame = spark.readStream.format("kafka").options(**options).load()
    # last: it holds a client, which nobody closes where this fails
    watch = TopicWatch(spark, stream.name, topic.topic, select_client(options), topic.stops_on_loss)
    return OpenTopic(frame, records, watch)

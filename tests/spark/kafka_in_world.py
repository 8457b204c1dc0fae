"""Records put into topics of a test's broker, and what a feed makes of them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.expr.types import Type
from sluicegate.policy.model import Stream
from sluicegate.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Put:
    """A record for a partition."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int = 0
    time: int = 1_700_000_000_000


@dataclass
class Topic:
    """A topic of its own, filled with records in order."""

    servers: str
    client: dict[str, Any] = field(default_factory=dict)
    name: str = field(default_factory=lambda: f"t-{uuid.uuid4().hex[:12]}")

    @property
    def _settings(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.servers, "log_level": 0, **self.client}

    def make(self, partitions: int = 1, **config: str) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient(self._settings)
        # records of tests are old, and stay
        made = NewTopic(self.name, partitions, 1, config={"retention.ms": "-1", **config})
        admin.create_topics([made])[self.name].result(30)

    def grow(self, partitions: int) -> None:
        from confluent_kafka.admin import AdminClient, NewPartitions

        admin = AdminClient(self._settings)
        admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result(30)

    def drop(self) -> None:
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(self._settings)
        admin.delete_topics([self.name])[self.name].result(30)

    def fill(self, records: Sequence[Put], transaction: bool | None = None) -> None:
        """`transaction`: whether one that they are in is committed; None for none."""
        from confluent_kafka import Producer

        own = {} if transaction is None else {"transactional.id": uuid.uuid4().hex}
        producer = Producer({**self._settings, "linger.ms": 5, "message.max.bytes": 20_000_000, **own})
        if transaction is not None:
            producer.init_transactions(30)
            producer.begin_transaction()
        for each in records:
            producer.produce(
                self.name,
                each.value,
                each.key,
                each.partition,
                timestamp=each.time,
                headers=list(each.headers),
            )
        assert producer.flush(30) == 0
        if transaction is not None:
            (producer.commit_transaction if transaction else producer.abort_transaction)(30)


def make_topic(broker: Broker, partitions: int = 1, **config: str) -> Topic:
    topic = Topic(broker.servers)
    topic.make(partitions, **config)
    return topic


def declare(
    topic: Topic, attributes: Sequence[tuple[str, Type]], event_time: str | None = None, **options: str
) -> Stream:
    given = {
        "subscribe": topic.name,
        "kafka.bootstrap.servers": topic.servers,
        "startingOffsets": "earliest",
        **options,
    }
    named = tuple((name.replace("__", "."), value) for name, value in given.items())
    return Stream("S", tuple(attributes), event_time, format="kafka", options=named)


def run(spark: SparkSession, stream: Stream, folder: Path, **more: Any) -> Any:
    """All that is there, and no more."""
    from sluicegate.runtime.feed.ingest import AVAILABLE_NOW, Ingest

    ingest = Ingest(spark, stream, folder, AVAILABLE_NOW, **more)
    ingest.start()
    assert ingest.wait(60)
    ingest.stop()
    return ingest


def read_rows(log: Any) -> list[tuple[Any, ...]]:
    """The attributes of each row, in order, times as microseconds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: list[tuple[Any, ...]] = []
    for batch in log.batches():
        table = pq.read_table(batch.path).sort_by("_offset")
        columns = [table[name] for name, _ in log.stream.attributes]
        plain = [each.cast(pa.int64()) if pa.types.is_timestamp(each.type) else each for each in columns]
        found += zip(*(each.to_pylist() for each in plain), strict=True)
    return found


def read_reasons(log: Any) -> list[str]:
    from sluicegate.runtime.feed.dead_letters import read_dead_letters

    return [each.reason for each in read_dead_letters(log)]

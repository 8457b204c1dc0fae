"""Which topic it is that is read: one that was deleted and made anew under its name is another one.

Offsets alone do not tell them apart once the new one has as many records; the broker's number for the topic does. It is
asked before each batch is appended, and kept beside the log. A loss has a code of its own, and is not tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.errors import DiagnosticError
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.log_files import read_json, write_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGER = logging.getLogger(__name__)
_NAME = "topic.json"
_TO_BEGIN, _TO_GO_ON = 15_000, 60_000
"""Milliseconds: whoever opens a feed waits, and a broker that is restarted comes back."""
_REASONS = (
    (("KAFKA_DATA_LOSS", "OffsetOutOfRange", "failOnDataLoss"), "lost"),
    (("UnknownTopicOrPartition", "UnknownTopicId"), "gone"),
    (("AuthenticationException", "AuthorizationException", "SslAuthentication"), "refused"),
    (("TimeoutException", "DisconnectException", "No resolvable bootstrap"), "silent"),
)
"""Names in what Spark and Kafka say, and what it means; nothing else of their text is used."""
_HELP = "declare the stream with another `startingOffsets`, or `on_loss = 'continue'`: it then has a log of its own"


class TopicWatch:
    """Asks the broker for the topic; made when the feed opens."""

    def __init__(
        self, spark: SparkSession, stream: str, topic: str, client: Mapping[str, str], stops: bool
    ) -> None:
        self._stream, self._topic, self._stops = stream, topic, stops
        self._known: str | None = None
        jvm: Any = spark._jvm
        self._jvm = jvm
        settings = jvm.java.util.Properties()
        for name, value in client.items():
            settings.put(name.removeprefix("kafka."), value)
        self._asked = jvm.java.util.ArrayList()
        self._asked.add(topic)
        self._options = jvm.org.apache.kafka.clients.admin.DescribeTopicsOptions()
        try:
            self._admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        except Exception as error:  # noqa: BLE001 — py4j's own; Java's text may carry settings
            raise self._refuse(error) from None

    def begin(self, folder: Path, goes_on: bool) -> None:
        """Learn which topic it is; `goes_on` where some of it was read before, in this process or another."""
        found, path = self._find(_TO_BEGIN), folder / _NAME
        if goes_on and self._stops and path.exists() and read_json(path).get("id") != found:
            raise self._refuse_other()
        write_json(path, {"topic": self._topic, "id": found})
        self._known = found

    def check(self) -> None:
        """Raises where what was just read may be of another topic than what was read before."""
        if self._stops and self._find(_TO_GO_ON) != self._known:
            raise self._refuse_other()

    def explain(self, error: Exception) -> DiagnosticError | None:
        """What a failure of Spark or Kafka means, in our words; None where that is not known."""
        text = str(error)
        for names, what in _REASONS:
            if any(name in text for name in names):
                return self._say(what)
        return None

    def close(self) -> None:
        """Also what it was asked and has not answered yet fails."""
        try:
            self._admin.close(self._jvm.java.time.Duration.ZERO)
        except Exception as error:
            _LOGGER.debug("a client of %s does not close", self._topic, exc_info=error)

    def _find(self, patience: int) -> str:
        try:
            options = self._options.timeoutMs(patience)
            found = self._admin.describeTopics(self._asked, options).allTopicNames().get()
            return str(found.get(self._topic).topicId().toString())
        except Exception as error:  # noqa: BLE001 — py4j's own; Java's text may carry settings
            raise self._refuse(error) from None

    def _refuse(self, error: Exception) -> DiagnosticError:
        return self.explain(error) or self._say("silent")

    def _refuse_other(self) -> DiagnosticError:
        message = f"the topic `{self._topic}` of `{self._stream}` was deleted and made anew"
        return refuse_feed("feed-lost", message, _HELP)

    def _say(self, what: str) -> DiagnosticError:
        topic = f"the topic `{self._topic}` of `{self._stream}`"
        message = {
            "lost": f"records of {topic} were deleted before they were read, or it was made anew",
            "gone": f"{topic} does not exist, or its account may not see it",
            "refused": f"the broker of {topic} refuses the account, or its certificate is not accepted",
            "silent": f"no broker of {topic} answers",
        }[what]
        if what == "lost":
            return refuse_feed("feed-lost", message, _HELP)
        return refuse_feed("feed-failed", message)

"""`FROM kafka`: what the options of a stream out of a topic say; what is not listed here is refused.

Options go to Spark's reader and Kafka's client only by name: none that runs code, reads other files of the host or holds a
password. Secrets are named, and found by the process that reads the topic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.secret_names import SECRET_NAME, blank_around
from sluicegate.policy.model import Stream
from sluicegate.source import Span

KAFKA_FORMAT = "kafka"
TOPIC, SERVERS = "subscribe", "kafka.bootstrap.servers"
HEADER = "headers."
"""Before the name of a header, in an option that says which attribute has its value."""
_NUMBER = r"[0-9]{1,12}"
_NAME = r"[A-Za-z0-9._-]{1,200}"
_PASSED = {
    TOPIC: r"[A-Za-z0-9._-]{1,249}",
    SERVERS: r"[^\s,/@:]+:[0-9]{1,5}(?:,[^\s,/@:]+:[0-9]{1,5})*|\[[0-9A-Fa-f:]+\]:[0-9]{1,5}",
    "kafka.security.protocol": "PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN|SCRAM-SHA-256|SCRAM-SHA-512",
    "kafka.isolation.level": "read_committed",
    "kafka.group.id": _NAME,
    "groupIdPrefix": _NAME,
    "kafka.client.id": _NAME,
    "kafka.client.rack": _NAME,
    "startingOffsets": r"earliest|latest|\{.*\}",
    "startingTimestamp": _NUMBER,
    "startingOffsetsByTimestamp": r"\{.*\}",
    "startingOffsetsByTimestampStrategy": "error|latest",
    "maxTriggerDelay": r"[0-9]{1,6}(?:ms|s|m|h)",
    **dict.fromkeys(
        (
            "maxOffsetsPerTrigger",
            "minOffsetsPerTrigger",
            "fetchOffset.numRetries",
            "fetchOffset.retryIntervalMs",
            "kafkaConsumer.pollTimeoutMs",
            "kafka.default.api.timeout.ms",
            "kafka.fetch.max.bytes",
            "kafka.fetch.max.wait.ms",
            "kafka.fetch.min.bytes",
            "kafka.max.partition.fetch.bytes",
            "kafka.max.poll.records",
            "kafka.reconnect.backoff.max.ms",
            "kafka.reconnect.backoff.ms",
            "kafka.request.timeout.ms",
            "kafka.retry.backoff.ms",
            "kafka.session.timeout.ms",
        ),
        _NUMBER,
    ),
}
"""What Spark's reader is given as it is, and the form that each must have."""
_OWN = {
    "format": "json|avro|protobuf",
    "wire": "plain|registry",
    "schema": ".+",
    "schemas": ".+",
    "descriptors": ".+",
    "message": r"[A-Za-z_][A-Za-z0-9_.]*",
    "times": "seconds|millis|micros",
    "sender": "topic|signed",
    "sender_column": ".+",
    "sender_secrets": SECRET_NAME.pattern,
    "username": r"[^\x00-\x1f]+",
    "secret": SECRET_NAME.pattern,
    "truststore": r".+\.(?:pem|crt|jks|p12|pfx)",
    "truststore_secret": SECRET_NAME.pattern,
    "keystore": r".+\.(?:pem|jks|p12|pfx)",
    "keystore_secret": SECRET_NAME.pattern,
    "on_loss": "stop|continue",
    "key": ".+",
    "timestamp": ".+",
    "partition": ".+",
    "offset": ".+",
}
_NAMED = frozenset({"secret", "sender_secrets", "truststore_secret", "keystore_secret"})
_SECRETS = re.compile(r"passw|jaas|credential|token|secret|ssl\.\w+\.(?:key|cert)|private", re.IGNORECASE)
_HELP = "name it, `secret = 'topics'`, and give it to the process as SLUICEGATE_SECRET_TOPICS"
RECORD_PARTS = ("key", "timestamp", "partition", "offset")
"""Options that say which attribute has a part of the record that is not its value."""


@dataclass(frozen=True, slots=True)
class KafkaTls:
    """Files by their paths, their passwords by the names of secrets."""

    truststore: str | None = None
    truststore_secret: str | None = None
    keystore: str | None = None
    keystore_secret: str | None = None


@dataclass(frozen=True, slots=True)
class KafkaMessages:
    """How values are written."""

    format: str = "json"
    registry: bool = False
    """Whether a zero byte and the number of a schema stand before each."""
    schema: str | None = None
    schemas: str | None = None
    """A folder of `<number>.avsc`."""
    descriptors: str | None = None
    message: str | None = None
    times: str | None = None
    """What the whole numbers in a TIMESTAMP count, since 1970."""


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic, how it is reached, and what of a record becomes what of the stream."""

    topic: str
    servers: str
    passed: tuple[tuple[str, str], ...]
    """Options of Spark's reader, as they were written."""
    username: str | None
    secret: str | None
    tls: KafkaTls
    messages: KafkaMessages
    parts: tuple[tuple[str, str], ...]
    """An attribute, and which part of the record it has: one of `RECORD_PARTS`, or `headers.` and a name."""
    sender: str | None
    """`topic`, `signed`, `column`, or None where it was not declared."""
    sender_secrets: str | None
    stops_on_loss: bool

    def passes(self, name: str) -> str | None:
        return dict(self.passed).get(name)


def read_kafka(stream: Stream, span: Span | None = None) -> KafkaTopic:
    """The options of a stream `FROM kafka`; `feed-option` where one is not as it must be."""
    given = dict(stream.options)
    for name, value in given.items():
        _check_option(name, value, span)
    for name in (TOPIC, SERVERS):
        if name not in given:
            refuse_option(f"the option `{name}` of `{stream.name}` is missing", span)
    sender = given.get("sender") or ("column" if "sender_column" in given else None)
    parts = [(given[name], name) for name in RECORD_PARTS if name in given]
    parts += [(value, name) for name, value in given.items() if name.startswith(HEADER)]
    return KafkaTopic(
        given[TOPIC],
        given[SERVERS],
        tuple((name, value) for name, value in stream.options if name in _PASSED and name != TOPIC),
        given.get("username"),
        given.get("secret"),
        KafkaTls(
            *(given.get(name) for name in ("truststore", "truststore_secret", "keystore", "keystore_secret"))
        ),
        _read_messages(given),
        tuple(parts),
        sender,
        given.get("sender_secrets"),
        given.get("on_loss", "stop") == "stop",
    )


def _read_messages(given: Mapping[str, str]) -> KafkaMessages:
    return KafkaMessages(
        given.get("format", "json"),
        given.get("wire") == "registry",
        given.get("schema"),
        given.get("schemas"),
        given.get("descriptors"),
        given.get("message"),
        given.get("times"),
    )


def _check_option(name: str, value: str, span: Span | None) -> None:
    form = _PASSED.get(name) or _OWN.get(name)
    if name.startswith(HEADER) and len(name) > len(HEADER):
        form = ".+"
    if form is None:
        _refuse_unknown(name, span)
    if name in _NAMED and not SECRET_NAME.fullmatch(value):
        _refuse_secret("the name of a secret is letters, digits and `_`", span)
    if "\0" in value or not re.fullmatch(form, value):
        refuse_option(f"the option `{name}` of `{KAFKA_FORMAT}` is not written so", blank_around(span))


def _refuse_unknown(name: str, span: Span | None) -> NoReturn:
    if _SECRETS.search(name):
        _refuse_secret(f"`{name}` would put a secret into the catalog's text", span)
    help_ = "it stops at a loss unless `on_loss = 'continue'` is written"
    if name != "failOnDataLoss":
        help_ = f"it has {', '.join(sorted({*_PASSED, *_OWN, HEADER + 'NAME'}))}"
    refuse_option(f"`{KAFKA_FORMAT}` has no option `{name}`", blank_around(span), help_)


def refuse_option(message: str, span: Span | None, help_: str | None = None) -> NoReturn:
    raise DiagnosticError([Diagnostic("feed-option", message, span, help_)])


def _refuse_secret(message: str, span: Span | None) -> NoReturn:
    raise DiagnosticError([Diagnostic("feed-secret", message, blank_around(span), _HELP)])

"""Whether a declaration `FROM kafka` can be fed: options that belong together, parts of records, senders."""

from __future__ import annotations

from typing import NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.types import BIGINT, INT, STRING, TIMESTAMP, Type
from sluicegate.language.kafka_options import (
    HEADER,
    KAFKA_FORMAT,
    KafkaMessages,
    KafkaTopic,
    read_kafka,
    refuse_option,
)
from sluicegate.policy.model import Stream
from sluicegate.source import Span

_HOLDS: dict[str, tuple[Type, ...]] = {
    "timestamp": (TIMESTAMP,),
    "partition": (INT, BIGINT),
    "offset": (BIGINT,),
}
_NAMED_POLICY: dict[str, Type] = {"_sp_ts": TIMESTAMP, "_sp_count": BIGINT}
"""What a tuple of a punctuated stream says beside its attributes; a header may say it."""
_STARTS = ("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")
OWN_HEADERS = ("sp", "sg-sender", "sg-signature")


def check_kafka_stream(stream: Stream, span: Span | None) -> None:
    """Refuse what cannot be fed."""
    if stream.format != KAFKA_FORMAT:
        return
    found = read_kafka(stream, span)
    _check_login(found, span)
    _check_messages(found.messages, span)
    _check_parts(stream, found, span)
    _check_sender(stream, found, span)
    given = [name for name in _STARTS if found.passes(name) is not None]
    if len(given) > 1:
        refuse_option(f"`{given[0]}` and `{given[1]}` both say where to begin", span)


def _check_login(found: KafkaTopic, span: Span | None) -> None:
    protocol = found.passes("kafka.security.protocol") or "PLAINTEXT"
    mechanism = found.passes("kafka.sasl.mechanism")
    signs_in = protocol.startswith("SASL")
    if signs_in != bool(mechanism and found.username and found.secret):
        message = "a protocol with SASL goes with `kafka.sasl.mechanism`, `username` and `secret`"
        refuse_option(message, span)
    if not signs_in and (mechanism or found.username or found.secret):
        refuse_option(f"`{protocol}` has no account that signs in", span, "write SASL_SSL")
    if mechanism == "PLAIN" and protocol != "SASL_SSL":
        refuse_option("`PLAIN` sends the password as it is", span, "write SASL_SSL, or SCRAM-SHA-512")
    tls = found.tls
    if (tls.truststore or tls.keystore) and not protocol.endswith("SSL"):
        refuse_option(f"`{protocol}` has no certificates", span, "write SSL or SASL_SSL")
    if (tls.truststore_secret and not tls.truststore) or (tls.keystore_secret and not tls.keystore):
        refuse_option("the secret of a file that is not named", span)


def _check_messages(found: KafkaMessages, span: Span | None) -> None:
    wanted = {
        ("json", False): frozenset[str](),
        ("avro", False): frozenset({"schema"}),
        ("avro", True): frozenset({"schemas"}),
        ("protobuf", False): frozenset({"descriptors", "message"}),
        ("protobuf", True): frozenset({"descriptors", "message"}),
    }.get((found.format, found.registry))
    if wanted is None:
        refuse_option("`wire = 'registry'` goes with `avro` and `protobuf`", span)
    for name in ("schema", "schemas", "descriptors", "message"):
        given = getattr(found, name) is not None
        if given != (name in wanted):
            what = "needs" if name in wanted else "has no"
            refuse_option(f"the format `{found.format}`, as it is written, {what} `{name}`", span)
    if found.times is not None and found.format == "json":
        refuse_option("times in JSON are texts", span, "leave `times` out")


def _check_parts(stream: Stream, found: KafkaTopic, span: Span | None) -> None:
    seen: set[str] = set()
    for attribute, part in found.parts:
        of = _find_type(stream, attribute)
        if of is None:
            refuse_option(f"`{part}` names `{attribute}`, which `{stream.name}` has not", span)
        if attribute in seen:
            refuse_option(f"two parts of a record are `{attribute}`", span)
        seen.add(attribute)
        if of not in _HOLDS.get(part, (of,)):
            refuse_option(f"`{attribute}` is a {of}, which `{part}` never is", span)
        if attribute in _NAMED_POLICY and not part.startswith(HEADER):
            refuse_option(f"`{attribute}` can be a header, or in the value", span)
        if part.removeprefix(HEADER) in OWN_HEADERS:
            refuse_option(f"the header `{part.removeprefix(HEADER)}` is not an attribute's", span)


def _find_type(stream: Stream, attribute: str) -> Type | None:
    found = stream.type_of(attribute)
    if found is not None or stream.punctuated_by is None:
        return found
    if attribute == dict(stream.options).get("sender_column"):
        return STRING
    return _NAMED_POLICY.get(attribute)


def _check_sender(stream: Stream, found: KafkaTopic, span: Span | None) -> None:
    options = dict(stream.options)
    if "sender" in options and "sender_column" in options:
        refuse_option("`sender` and `sender_column` both say who sent an element", span)
    if (found.sender == "signed") != (found.sender_secrets is not None):
        refuse_option("`sender = 'signed'` goes with `sender_secrets`", span)
    if stream.punctuated_by is not None and found.sender is None:
        message = f"nothing says who sends the punctuations of `{stream.name}` (R14)"
        help_ = "write `sender = 'signed'`, or, where those who may write to the topic are trusted, `sender = 'topic'`"
        _refuse_sender(message, span, help_)


def _refuse_sender(message: str, span: Span | None, help_: str) -> NoReturn:
    raise DiagnosticError([Diagnostic("feed-sender", message, span, help_)])

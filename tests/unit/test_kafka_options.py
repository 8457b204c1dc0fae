"""`FROM kafka` in a catalog: what can be declared, what is refused where it is written, and what is signed."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.kafka_options import read_kafka
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.feed.carriage import find_trusted
from sluicegate.runtime.kafka.login import sign_in
from sluicegate.runtime.kafka.options import (
    AT_ONCE,
    JUDGED_AT_ONCE,
    LONGEST_JUDGED,
    MOST_SAID,
    resolve_reader,
    resolve_writer,
)
from sluicegate.runtime.kafka.signatures import load_sender_keys, sign_record
from sluicegate.source import SourceText

PLACE = "subscribe = 'ships', kafka.bootstrap.servers = 'a:9092,b:9092'"
SASL = "kafka.security.protocol = 'SASL_SSL', kafka.sasl.mechanism = 'SCRAM-SHA-512', username = 'u', secret = 'topics'"


def _load(options: str, more: str = "") -> Catalog:
    text = f"CREATE USER o;\nCREATE STREAM S (t TIMESTAMP, k INT, s STRING) TIMESTAMP BY t OWNER o {more}\n  FROM kafka OPTIONS ({options});"
    return read_catalog(text)


def _refusal(options: str, more: str = "") -> Diagnostic:
    with pytest.raises(DiagnosticError) as refused:
        _load(options, more)
    return refused.value.diagnostics[0]


@pytest.mark.parametrize(
    ("options", "more", "code", "word"),
    [
        ("subscribe = 'ships'", "", "feed-option", "`kafka.bootstrap.servers` of `S` is missing"),
        (f"{PLACE}, subscribePattern = '.*'", "", "feed-option", "`subscribePattern`"),
        (f"{PLACE}, failOnDataLoss = 'false'", "", "feed-option", "`failOnDataLoss`"),
        (f"{PLACE}, minPartitions = '4'", "", "feed-option", "`minPartitions`"),
        (f"{PLACE}, kafka.isolation.level = 'read_uncommitted'", "", "feed-option", "`kafka.isolation.level`"),
        (f"{PLACE}, Kafka.Isolation.Level = 'read_committed'", "", "feed-option", "no option"),
        (f"{PLACE}, kafka.interceptor.classes = 'x.Y'", "", "feed-option", "`kafka.interceptor.classes`"),
        (f"{PLACE}, kafka.config.providers = 'file'", "", "feed-option", "`kafka.config.providers`"),
        (f"{PLACE}, kafka.metric.reporters = 'x.Y'", "", "feed-option", "`kafka.metric.reporters`"),
        (f"{PLACE}, kafka.sasl.client.callback.handler.class = 'x'", "", "feed-option", "handler"),
        (f"{PLACE}, kafka.sasl.mechanism = 'OAUTHBEARER'", "", "feed-option", "`kafka.sasl.mechanism`"),
        (f"{PLACE}, kafka.ssl.endpoint.identification.algorithm = ''", "", "feed-option", "identification"),
        (f"{PLACE}, maxOffsetsPerTrigger = 'geheim'", "", "feed-option", "`maxOffsetsPerTrigger`"),
        (f"{PLACE}, kafka.sasl.jaas.config = 'x password=\"geheim\";'", "", "feed-secret", "jaas"),
        (f"{PLACE}, password = 'geheim'", "", "feed-secret", "`password`"),
        (f"{PLACE}, kafka.ssl.keystore.password = 'geheim'", "", "feed-secret", "password"),
        (f"{PLACE}, kafka.ssl.keystore.key = 'geheim'", "", "feed-secret", "key"),
        (f"{PLACE}, secret = 'ge heim'", "", "feed-secret", "name of a secret"),
        (f"{PLACE}, username = 'u', secret = 'x'", "", "feed-option", "no account"),
        (f"{PLACE}, {SASL}".replace("SASL_SSL", "SASL_PLAINTEXT").replace("SCRAM-SHA-512", "PLAIN"), "", "feed-option", "PLAIN"),
        (f"{PLACE}, {SASL}".replace(", secret = 'topics'", ""), "", "feed-option", "`secret`"),
        (f"{PLACE}, truststore = '/etc/ca.pem'", "", "feed-option", "no certificates"),
        (f"{PLACE}, truststore = '/etc/passwd'", "", "feed-option", "`truststore`"),
        (f"{PLACE}, format = 'avro'", "", "feed-option", "needs `schema`"),
        (f"{PLACE}, wire = 'registry'", "", "feed-option", "registry"),
        (f"{PLACE}, format = 'protobuf', descriptors = 'd'", "", "feed-option", "needs `message`"),
        (f"{PLACE}, times = 'millis'", "", "feed-option", "texts"),
        (f"{PLACE}, key = 'other'", "", "feed-option", "`key` names `other`"),
        (f"{PLACE}, key = 's', headers.x = 's'", "", "feed-option", "two parts"),
        (f"{PLACE}, offset = 'k'", "", "feed-option", "`k` is a INT"),
        (f"{PLACE}, timestamp = 's'", "", "feed-option", "`s` is a STRING"),
        (f"{PLACE}, headers.sp = 's'", "", "feed-option", "`sp`"),
        (f"{PLACE}, headers.x = '_sp_ts'", "", "feed-option", "has not"),
        (f"{PLACE}, sender = 'signed'", "", "feed-option", "sender_secrets"),
        (f"{PLACE}, sender = 'topic', sender_column = 's'", "", "feed-option", "both"),
        (f"{PLACE}, startingTimestamp = '5', startingOffsets = 'latest'", "", "feed-option", "both"),
        (PLACE, "PUNCTUATED BY k", "feed-sender", "R14"),
    ],
)  # fmt: skip
def test_declarations_that_are_refused(options: str, more: str, code: str, word: str) -> None:
    """With their place, and with nothing of a text that may hold a secret."""
    found = _refusal(options, more)
    assert found.code == code
    assert word in found.message
    assert found.span is not None
    assert found.span.text == "kafka"
    if "geheim" in options:
        assert "geheim" not in found.span.source.text + found.message + str(found.help)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (f"({PLACE}, kafka.sasl.jaas.config = 'x password=\"geheim\";')", "feed-secret"),
        (f"({PLACE}, password = 'geheim')", "feed-secret"),
        (f"({PLACE}, secret = 'geheim!')", "feed-secret"),
        (f"({PLACE}, maxOffsetsPerTrigger = 'geheim')", "feed-option"),
        (f"({PLACE}, username = 'geheim')", "feed-option"),
        ("(password = 'geheim', password = 'x')", "name-twice"),
        ("(password = 'geheim' more)", "syntax"),
        ("(password 'geheim')", "syntax"),
        ("(password = geheim)", "syntax"),
        ("(password = geheimé)", "unexpected-character"),
        ("(password = 12geheim)", "unexpected-character"),
        ("(password = 'geheim)", "unterminated"),
        ("password = 'geheim'", "syntax"),
        ("(x = 'geheim') TIMESTAMP BY nothing", "unknown-attribute"),
        ("(x = 'geheim') OWNER nobody", "unknown-user"),
        ("(x = 'geheim') WRONG", "syntax"),
        ("(x = 'a', -- password = 'geheim'\n y = 'geheim') WRONG", "syntax"),
    ],
)
@pytest.mark.parametrize(
    "begin", ["ALTER STREAM S FROM kafka", "CREATE STREAM T (t TIMESTAMP, k INT) FROM kafka"]
)
def test_no_diagnostic_shows_a_value_of_options(begin: str, options: str, code: str) -> None:
    text = f"CREATE STREAM S (t TIMESTAMP, k INT) TIMESTAMP BY t; {begin} OPTIONS {options};"
    with pytest.raises(DiagnosticError) as refused:
        read_catalog(text)
    found = refused.value.diagnostics[0]
    assert found.code == code
    assert found.span is not None
    assert "geheim" not in str(refused.value)
    assert "geheim" not in found.span.shown
    if code.startswith("feed-"):
        assert found.span.text == "kafka"


def test_what_is_no_value_of_options_is_shown() -> None:
    text = "SELECT options, x FROM P WHERE options = 'a' AND p.options IN ('b') -- OPTIONS of c"
    assert SourceText("<query>", text.split(" --")[0]).shown.text == text.split(" --")[0]
    text = "CREATE STREAM S (t INT) FROM f OPTIONS (a = 'x', b.c = 5, 'd' = 'y;)') OWNER o; SET FACT f = 'z';"
    shown = (
        "CREATE STREAM S (t INT) FROM f OPTIONS (a = ***, b.c = *, *** = *****) OWNER o; SET FACT f = 'z';"
    )
    assert SourceText("<catalog>", text).shown.text == shown


def test_what_a_declaration_says() -> None:
    options = (
        f"{PLACE}, {SASL}, maxOffsetsPerTrigger = 100, startingOffsets = '{{\"ships\":{{\"0\":5}}}}', on_loss = 'continue', "
        "key = 's', 'headers.x-y' = 'k', headers.named = '_sp_ts', sender = 'signed', sender_secrets = 'devices'"
    )
    found = read_kafka(_load(options, "PUNCTUATED BY k").streams["S"])
    assert (found.topic, found.sender, found.stops_on_loss) == ("ships", "signed", False)
    assert found.parts == (("s", "key"), ("k", "headers.x-y"), ("_sp_ts", "headers.named"))
    assert _load(f"{PLACE}, sender_column = 'who', headers.who = 'who'", "PUNCTUATED BY k").streams["S"]


def test_secrets_become_options_when_a_feed_opens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stream = _load(
        f"{PLACE}, {SASL}, truststore = '{tmp_path}/ca.p12', truststore_secret = 'stores'"
    ).streams["S"]
    topic = read_kafka(stream)
    with pytest.raises(DiagnosticError, match="there is no secret `topics`"):
        sign_in(topic)
    monkeypatch.setenv("SLUICEGATE_SECRET_TOPICS", 'a"b\\c')
    monkeypatch.setenv("SLUICEGATE_SECRET_STORES", "stores-word")
    with pytest.raises(DiagnosticError, match="is not there"):
        sign_in(topic)
    (tmp_path / "ca.p12").touch()
    found = resolve_reader(topic)
    assert found["kafka.sasl.jaas.config"].endswith('required username="u" password="a\\"b\\\\c";')
    assert found["kafka.ssl.truststore.type"] == "PKCS12"
    assert found["kafka.ssl.truststore.password"] == "stores-word"
    assert (found["kafka.isolation.level"], found["failOnDataLoss"]) == ("read_committed", "true")
    assert "secret" not in found
    assert 'a"b' not in repr(stream)
    written = resolve_writer({name: value for name, value in stream.options if name != "subscribe"})
    assert written.items() <= found.items()
    assert {"startingOffsets", "subscribe"}.isdisjoint(written)
    monkeypatch.setenv("SLUICEGATE_SECRET_TOPICS", "geheim\nmore")
    with pytest.raises(DiagnosticError, match="cannot be sent to a broker") as refused:
        sign_in(topic)
    assert "geheim" not in str(refused.value)


def test_a_batch_is_bounded() -> None:
    """Whatever producers send: fewer rows than there are numbers, and what the shield collects far below a gigabyte."""
    assert AT_ONCE * (MOST_SAID + 1) < 1 << 24
    # beside its bytes an element has its place, its reason, and numbers
    assert JUDGED_AT_ONCE * (LONGEST_JUDGED + (MOST_SAID + 1) * 1_000) < 1 << 28
    given = f"{PLACE}, sender = 'topic', minOffsetsPerTrigger = 600000"
    for limit, wanted, judged in (("", 500_000, 2_000), ("70", 70, 70), ("9000000", 500_000, 500_000)):
        more = f", maxOffsetsPerTrigger = {limit}" if limit else ""
        topic = read_kafka(_load(given + more).streams["S"])
        found = [resolve_reader(topic, each) for each in (False, True)]
        assert [int(each["maxOffsetsPerTrigger"]) for each in found] == [wanted, judged]
        assert [int(each["minOffsetsPerTrigger"]) for each in found] == [wanted, judged]


@pytest.mark.parametrize(
    ("more", "trusted"),
    [("", None), (", sender = 'topic'", "o"), (", sender_column = 's'", None),
     (", sender = 'signed', sender_secrets = 'd'", None)],
)  # fmt: skip
def test_a_topic_speaks_for_its_owner_only_where_declared(more: str, trusted: str | None) -> None:
    """Queries' punctuations, too."""
    assert find_trusted(_load(PLACE + more).streams["S"]) == trusted


def test_no_client_is_left_where_a_topic_does_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    from sluicegate.runtime.kafka import open_topic

    made: list[object] = []
    monkeypatch.setattr(open_topic, "require_connectors", lambda: None)
    monkeypatch.setattr(open_topic, "TopicWatch", lambda *given: made.append(given))
    spark = MagicMock()
    spark.readStream.format().options().load.side_effect = ValueError("not now")
    with pytest.raises(ValueError, match="not now"):
        open_topic.open_topic(spark, _load(PLACE).streams["S"])
    assert not made


def test_a_producer_signs_what_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = sign_record("ann", b"k" * 20, "t", 12, None, b"v", [("sp", b"{}")])
    text = b"".join(
        b"\xff" * 8 if each is None else len(each).to_bytes(8, "big") + each
        for each in (b"sluicegate-2", b"t", b"12", None, b"v", b"sp", b"{}", b"sg-sender", b"ann")
    )
    signature = hmac.new(b"k" * 20, text, hashlib.sha256).hexdigest().encode()
    assert headers == [("sp", b"{}"), ("sg-sender", b"ann"), ("sg-signature", signature)]
    monkeypatch.setenv("SLUICEGATE_SECRET_D", f"spiffe:ann:{'k' * 20}\n\nbob:{'k' * 100}\nbob:{'o' * 16}\n")
    found = load_sender_keys("d")
    assert {name: len(blocks) for name, blocks in found.items()} == {"spiffe:ann": 1, "bob": 2}
    inner, outer = found["bob"][0]
    again = hashlib.sha256(outer + hashlib.sha256(inner + b"x").digest()).digest()
    assert again == hmac.digest(b"k" * 100, b"x", hashlib.sha256)
    for bad in ("ann:geheim", "geheimgeheimgeheim", ":geheimgeheimgeheim", "\n"):
        monkeypatch.setenv("SLUICEGATE_SECRET_D", bad)
        with pytest.raises(DiagnosticError, match="`sender:key`") as refused:
            load_sender_keys("d")
        assert "geheim" not in str(refused.value)

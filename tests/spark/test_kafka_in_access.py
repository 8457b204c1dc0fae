"""Brokers that ask who reads, topics that are not what they were: told in our words, with nothing of a secret anywhere."""

from __future__ import annotations

import datetime
import ipaddress
import logging
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import INT
from sluicegate.testing.broker import GET_BROKER, Broker, has_broker
from spark.kafka_in_world import Put, Topic, declare, make_topic, read_rows, run

pytest.importorskip("confluent_kafka")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = 'pass"word\\of-the-reader'
OTHER = "of-the-plain-one-0123"


class Guarded(Broker):
    """With a second listener, for those who sign in, by TLS."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with socket.socket() as probe:
            probe.bind((self.host, 0))
            self.guarded = int(probe.getsockname()[1])
        self.certificate = folder / "broker.pem"
        _make_certificate(self.certificate)

    def _properties(self) -> dict[str, str]:
        usual, own = super()._properties(), f"SECURE://{self.host}:{self.guarded}"
        plain = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_plain="{OTHER}";'
        return {
            **usual,
            "listeners": f"{usual['listeners']},{own}",
            "advertised.listeners": f"{usual['advertised.listeners']},{own}",
            "listener.security.protocol.map": f"{usual['listener.security.protocol.map']},SECURE:SASL_SSL",
            "listener.name.secure.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.secure.plain.sasl.jaas.config": plain,
            "listener.name.secure.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": str(self.certificate),
        }


def _make_certificate(path: Path) -> None:
    """The key and its certificate, for the loopback address."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
    signed = made.add_extension(address, False).sign(key, hashes.SHA256())
    kinds = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    certificate = signed.public_bytes(serialization.Encoding.PEM)
    path.write_bytes(key.private_bytes(*kinds) + certificate)
    path.with_name("trusted.pem").write_bytes(certificate)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    if not has_broker():
        pytest.skip(f"there is no Kafka broker; to run these tests: {GET_BROKER}")
    from confluent_kafka import admin

    made = Guarded(tmp_path_factory.mktemp("guarded") / "broker")
    made.start()
    credential = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_512, 4096)
    asked = [admin.UserScramCredentialUpsertion("reader", credential, SECRET.encode())]
    client = admin.AdminClient({"bootstrap.servers": made.servers, "log_level": 0})
    client.alter_user_scram_credentials(asked)["reader"].result(30)
    yield made
    made.remove()


def test_secrets_are_found_by_name_and_kept_nowhere(
    spark: SparkSession,
    guarded: Guarded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SLUICEGATE_SECRET_READER", SECRET)
    monkeypatch.setenv("SLUICEGATE_SECRET_WRONG", wrong := "not-the-one-0123")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "plain").write_text(OTHER + "\n")
    monkeypatch.setenv("SLUICEGATE_SECRETS", str(tmp_path / "secrets"))
    topic = make_topic(guarded)
    topic.fill([Put(b'{"n": 1}')])
    reached = Topic(f"127.0.0.1:{guarded.guarded}", name=topic.name)
    options = {
        "kafka__security__protocol": "SASL_SSL",
        "kafka__sasl__mechanism": "SCRAM-SHA-512",
        "username": "reader",
        "secret": "reader",
        "truststore": str(guarded.certificate.with_name("trusted.pem")),
    }
    stream = declare(reached, [("n", INT)], **options)
    state = tmp_path / "state"
    ingest = run(spark, stream, state)
    assert ingest.failure is None
    assert read_rows(ingest.log) == [(1,)]
    by_plain = options | {"kafka__sasl__mechanism": "PLAIN", "username": "plain", "secret": "plain"}
    assert read_rows(run(spark, declare(reached, [("n", INT)], **by_plain), state).log) == [(1,)]
    for change, told in (
        ({"secret": "wrong"}, "refuses the account, or its certificate is not accepted"),
        (
            {"truststore": _other_certificate(tmp_path)},
            "refuses the account, or its certificate is not accepted",
        ),
        ({"secret": "absent"}, "there is no secret `absent`"),
    ):
        with pytest.raises(DiagnosticError, match=told):
            run(spark, declare(reached, [("n", INT)], **options | change), state)
    _show_plan(spark, stream)
    shown = capfd.readouterr()
    texts = shown.out + shown.err + caplog.text
    assert "redacted" in texts
    for secret in (SECRET, SECRET.split("\\")[1], OTHER, wrong):
        assert secret not in texts
        for path in state.rglob("*"):
            assert path.is_dir() or secret.encode() not in path.read_bytes(), path


def _other_certificate(folder: Path) -> str:
    (folder / "other").mkdir()
    _make_certificate(folder / "other" / "broker.pem")
    return str(folder / "other" / "trusted.pem")


def _show_plan(spark: SparkSession, stream: Any) -> None:
    from sluicegate.runtime.feed.decode import decode
    from sluicegate.runtime.feed.open_feed import open_feed

    feed = open_feed(spark, stream)
    decode(feed.frame, stream, feed.layout, feed.read).explain("extended")
    assert feed.watch is not None
    feed.watch.close()


def _wait_for(what: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_a_topic_that_was_made_anew_is_another_one(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """New partitions are followed. Of a topic with the same name nothing is taken, unless that is declared."""
    from sluicegate.runtime.feed.ingest import Ingest

    topic = make_topic(broker)
    topic.fill([Put(b'{"n": 1}'), Put(b'{"n": 2}')])
    stream = declare(topic, [("n", INT)])
    careless = declare(topic, [("n", INT)], on_loss="continue")
    feeds = [Ingest(spark, each, tmp_path, "100 milliseconds") for each in (stream, careless)]
    for each in feeds:
        each.start()
    topic.grow(2)
    topic.fill([Put(b'{"n": 3}', partition=1)])

    def read(feed: Any) -> list[int]:
        return sorted(number for (number,) in read_rows(feed.log))

    _wait_for(lambda: all(read(each) == [1, 2, 3] for each in feeds))
    topic.drop()
    _wait_for(lambda: _is_made(topic, 2))
    topic.fill([Put(b'{"n": %d}' % number, partition=number % 2) for number in range(10, 30)])
    assert feeds[0].wait(60)
    told = feeds[0].failure
    assert told is not None
    assert any(word in told for word in ("made anew", "does not exist"))
    assert read(feeds[0]) == [1, 2, 3]

    def go_on() -> bool:
        topic.fill([Put(b'{"n": 99}')])
        return 99 in read(feeds[1])

    _wait_for(go_on)
    for each in feeds:
        each.stop()
    with pytest.raises(DiagnosticError, match="was deleted and made anew") as refused:
        run(spark, stream, tmp_path)
    assert refused.value.diagnostics[0].code == "feed-lost"
    with pytest.raises(DiagnosticError, match="does not exist, or its account may not see it"):
        run(spark, declare(replace(topic, name="nowhere"), [("n", INT)]), tmp_path)


def _is_made(topic: Topic, partitions: int) -> bool:
    """Deleting takes the broker a moment."""
    from confluent_kafka import KafkaException

    try:
        topic.make(partitions)
    except KafkaException:
        return False
    return True

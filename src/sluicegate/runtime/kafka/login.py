"""How the process signs in at a broker: secrets are found by their names when a feed opens, and kept nowhere."""

from __future__ import annotations

import logging
from pathlib import Path

from sluicegate.language.kafka_options import KafkaTopic
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.table.databases import find_secret

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_STORES = {".pem": "PEM", ".crt": "PEM", ".jks": "JKS", ".p12": "PKCS12", ".pfx": "PKCS12"}


def sign_in(topic: KafkaTopic) -> dict[str, str]:
    """Settings of Kafka's client that hold secrets, or say where certificates are."""
    hush_bridge()
    found: dict[str, str] = {}
    if topic.username is not None:
        module = _MODULES[topic.passes("kafka.sasl.mechanism") or ""]
        password = find_secret(topic.secret) or ""
        found["kafka.sasl.jaas.config"] = (
            f"{module} required username={_quote(topic.username)} password={_quote(password)};"
        )
    tls = topic.tls
    for what, path, secret in (
        ("truststore", tls.truststore, tls.truststore_secret),
        ("keystore", tls.keystore, tls.keystore_secret),
    ):
        if path is not None:
            found |= _open_store(what, Path(path), find_secret(secret))
    return found


def hush_bridge() -> None:
    """What is sent to Java has secrets in it from now on; the bridge writes all of it, where its debugging is logged."""
    for name in ("py4j", "py4j.clientserver", "py4j.java_gateway"):
        logger = logging.getLogger(name)
        if logger.getEffectiveLevel() < logging.INFO:
            logger.setLevel(logging.INFO)


def _open_store(what: str, path: Path, password: str | None) -> dict[str, str]:
    if not path.is_file():
        raise refuse_feed("feed-option", f"the {what} `{path}` is not there")
    kind = _STORES[path.suffix]
    found = {f"kafka.ssl.{what}.location": str(path.resolve()), f"kafka.ssl.{what}.type": kind}
    if password is not None and kind != "PEM":
        found[f"kafka.ssl.{what}.password"] = password
    if password is not None and what == "keystore":
        found["kafka.ssl.key.password"] = password
    return found


def _quote(text: str) -> str:
    """A text of the login's little language; one that could not be written in it would be shown by its parser."""
    if not text.isprintable():
        raise refuse_feed("feed-secret", "a secret has characters that cannot be sent to a broker")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

"""The jars that Spark reads and writes topics with: fetched at setup, each known by its name and checksum, or not loaded.

Spark 4.3's own connector is not published yet where the others are; that of 4.2 with these runs on 4.3, which the tests of
topics show.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from sluicegate.errors import Diagnostic, DiagnosticError

CONNECTORS: Mapping[str, str] = {
    "commons-pool2-2.13.1.jar": "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    "kafka-clients-3.9.2.jar": "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    "spark-avro_2.13-4.1.1.jar": "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
    "spark-sql-kafka-0-10_2.13-4.2.0.jar": "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    "spark-token-provider-kafka-0-10_2.13-4.0.0.jar": (
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767"
    ),
}
"""The SHA-256 of each."""
FOLDER_VARIABLE = "SLUICEGATE_CONNECTORS"
GET_CONNECTORS = "scripts/kafka.sh connectors"


def connector_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where the jars are looked for: `SLUICEGATE_CONNECTORS`, else a folder of the environment that runs this."""
    named = (os.environ if environ is None else environ).get(FOLDER_VARIABLE)
    return Path(named) if named else Path(sys.prefix, "share", "sluicegate", "connectors")


def find_connectors(folder: Path | None = None) -> tuple[Path, ...]:
    """All of the jars, or none where one is missing; one that differs from what is known is refused."""
    place = folder or connector_folder()
    found = tuple(place / name for name in CONNECTORS)
    if not all(path.is_file() for path in found):
        return ()
    for path in found:
        if hashlib.sha256(path.read_bytes()).hexdigest() != CONNECTORS[path.name]:
            message = f"`{path.name}` is not the file that it should be"
            raise DiagnosticError([Diagnostic("connector-changed", message, help=GET_CONNECTORS)])
    return found


def require_connectors() -> None:
    """Refuse what needs topics where the jars are not there."""
    if not find_connectors():
        message = "topics need Spark's connector for Kafka, which is not installed"
        raise DiagnosticError([Diagnostic("no-connector", message, help=GET_CONNECTORS)])

"""One Kafka broker for all tests of a process that ask for it; without it they skip, and say how to have them run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sluicegate.testing.broker import GET_BROKER, Broker, has_broker

SKIPPED = f"there is no Kafka broker; to run these tests: {GET_BROKER}"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if not has_broker():
        pytest.skip(SKIPPED)
    made = Broker(tmp_path_factory.mktemp("kafka") / "broker")
    made.start()
    yield made
    made.remove()

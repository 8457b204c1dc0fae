"""Feeds that stopped by themselves are tried again, less and less often, and no others."""

from __future__ import annotations

import logging
import time

import pytest

from sluicegate.runtime import reviving
from sluicegate.runtime.feed.ingest import Ingest
from sluicegate.runtime.reviving import Reviver


class Failing(Ingest):
    """Fails so many times more; a failure that has a name does not pass."""

    def __init__(self, failures: int, passing: bool = True) -> None:
        self.failures, self.passing, self.tries = failures, passing, 0

    @property
    def may_pass(self) -> bool:
        return self.failures > 0 and self.passing

    def restart(self) -> None:
        self.tries += 1
        self.failures -= 1


def test_what_may_pass_is_tried_until_it_has(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reviving, "SHORTEST", 0.01)
    monkeypatch.setattr(reviving, "_BEAT", 0.005)
    feeds = {"a": Failing(3), "b": Failing(1, passing=False), "c": Failing(0)}
    with caplog.at_level(logging.WARNING):
        reviver = Reviver(lambda: feeds)
        until = time.monotonic() + 30
        while feeds["a"].may_pass and time.monotonic() < until:
            time.sleep(0.01)
        reviver.stop()
    assert [each.tries for each in feeds.values()] == [3, 0, 0]
    told = [each.getMessage().rpartition("in ")[2] for each in caplog.records]
    assert told == ["0.01 s", "0.02 s", "0.04 s"]

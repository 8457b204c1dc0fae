"""Networks of plans that are kept from tick to tick, asked for by several threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from sluicegate.runtime.network import shared
from sluicegate.runtime.network.shared import Networks


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_several_threads_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_KEPT", 1)
    monkeypatch.setattr(shared, "build_network", lambda plans: list(plans))
    networks = Networks()

    def ask(name: str) -> bool:
        member: Any = SimpleNamespace(name=name, plan=None)
        return all(networks.build([member]) == [name] for _ in range(20_000))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, "abcd"))


def test_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    monkeypatch.setattr(shared, "_KEPT", 2)
    monkeypatch.setattr(shared, "build_network", lambda plans: built.append("".join(plans)))
    networks = Networks()
    for name in "abacab":
        member: Any = SimpleNamespace(name=name, plan=None)
        networks.build([member])
    assert "".join(built) == "abcb"

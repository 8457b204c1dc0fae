"""A gateway with a shared query, and a clock that tests set."""

from __future__ import annotations

import time
from typing import Any

import httpx

from service.gateway_world import CATALOG, World
from sluicegate.runtime.feed.said import Said
from sluicegate.service.identity.clock import Now

DAY = 86_400
SHARED = (
    CATALOG
    + """
CREATE USER eve ROLES (Observer);
CREATE ROLE Nurse; CREATE USER nan ROLES (Nurse, Doctor) SET (team = 'A');
"""
)
TEXT = "SELECT id, x FROM P"


class HandClock:
    """The machine's clock, and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead = 0

    def now(self) -> Now:
        return Now(time.time_ns() // 1000 + self.ahead, time.monotonic_ns() // 1000 + self.ahead)

    def pass_seconds(self, seconds: float) -> None:
        self.ahead += round(seconds * 1e6)


def share(world: World, name: str = "Q", text: str = TEXT, by: str = "root") -> None:
    answer = world.post(by, "/v1/shared", {"name": name, "query": text})
    assert answer.status_code == 201, answer.text


def admit(world: World, name: str = "Q", by: str = "root", **whom: str) -> None:
    answer = world.post(by, f"/v1/shared/{name}/policies", whom)
    assert answer.status_code == 200, answer.text


def subscribe(world: World, user: str, name: str = "Q", seconds: float = DAY) -> str:
    answer = world.post(user, f"/v1/shared/{name}/subscriptions", {"expires_in": seconds})
    assert answer.status_code == 201, answer.text
    assert answer.json()["is_open"], answer.text
    return str(answer.json()["handle"])


def renew(world: World, user: str, name: str = "Q", seconds: float = DAY) -> httpx.Response:
    return world.call(user, "PUT", f"/v1/shared/{name}/subscriptions", json={"expires_in": seconds})


def give_badge(world: World, user: str, seconds: float = DAY, method: str = "POST") -> httpx.Response:
    body = {"name": "badge", "user": user, "expires_in": seconds}
    return world.call("root", method, "/v1/credentials", json=body)


def take_badge(world: World, user: str) -> httpx.Response:
    return world.call("root", "DELETE", "/v1/credentials", params={"name": "badge", "user": user})


def find(world: World, user: str, name: str = "Q") -> dict[str, Any]:
    """The user's own subscription, as it is told of it."""
    found = world.get(user, "/v1/subscriptions").json()["subscriptions"]
    return dict(next(each for each in found if each["query"] == name and each["user"] == user))


def audited(world: World, action: str) -> list[dict[str, Any]]:
    return list(world.get("root", f"/v1/audit?action={action}").json()["events"])


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json()["error"]["code"])


def drop_first_closings(found: list[Said]) -> list[Said]:
    """Without those that stand where a query starts: they close what may be open, at the time of the last word."""
    kept: list[Said] = []
    latest = 0
    for each in found:
        if each.positive or each.ts > latest:
            kept.append(each)
        latest = max(latest, each.ts)
    return kept

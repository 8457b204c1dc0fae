"""What the OpenAPI page says, tried by a machine that reads it: whatever it sends, the gateway does not fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from service.still_world import StillWorld, serve_still
from sluicegate.service.routes import ROUTES

schemathesis = pytest.importorskip("schemathesis")

SMALL = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
LIMITS = {
    "most_wait_seconds": 0.1,
    "caller_rate": 1e6,
    "caller_burst": 1e6,
    "client_rate": 1e6,
    "client_burst": 1e6,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillWorld]:
    with serve_still(tmp_path_factory.mktemp("openapi"), **LIMITS) as made:
        yield made


@pytest.fixture(scope="module")
def token(world: StillWorld) -> str:
    """Of an administrator, with every scope; not a session, which it could sign out of."""
    body = {"scopes": ["read", "grant", "push:*", "admin"], "expires_in": 3600}
    return str(world.post("root", "/v1/tokens", body).json()["token"])


def test_no_call_makes_the_gateway_fail(world: StillWorld, token: str) -> None:
    headers = {"authorization": f"Bearer {token}"}
    tried: set[str] = set()

    def call(case) -> None:  # type: ignore[no-untyped-def]  # schemathesis' own class
        answer = case.call(headers=headers, timeout=30)
        tried.add(f"{case.operation.method.upper()} {case.operation.path}")
        assert answer.status_code < 500, (case.operation.label, answer.status_code, answer.text)

    schema = schemathesis.openapi.from_url(world.url + "/openapi.json")
    for found in schema.get_all_operations():
        SMALL(given(found.ok().as_strategy())(call))()
    assert tried == {f"{route.method} {route.path}" for route in ROUTES}


def test_every_place_is_described_with_its_errors(world: StillWorld) -> None:
    described = world.get(None, "/openapi.json").json()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation["description" if "description" in operation else "summary"], (path, method)
            assert {"400", "401", "403", "429"} <= set(operation["responses"])

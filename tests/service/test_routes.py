"""Who may call what: every route and method for every kind of caller, from the table that the app is built from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute

from service.still_world import StillWorld, serve_still
from sluicegate.service.access import Need, Route
from sluicegate.service.routes import ROUTES

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
CALLERS = (
    "nobody",
    "stranger",
    "reader",
    "pusher",
    "granter",
    "owner",
    "administrator",
    "revoked",
    "metrics",
)
METRICS_TOKEN = "m" * 40
LET_IN = {
    Need.NOBODY: set(CALLERS),
    Need.CALLER: {"stranger", "reader", "pusher", "granter", "owner", "administrator"},
    Need.READ: {"stranger", "reader", "owner", "administrator"},
    Need.GRANT: {"stranger", "granter", "owner", "administrator"},
    Need.PUSH: {"stranger", "pusher", "owner", "administrator"},
    Need.OWNER: {"stranger", "reader", "owner", "administrator"},
    Need.ADMIN: {"administrator"},
    Need.METRICS: {"administrator", "metrics"},
}
"""Whom a route lets in; whose stream or query it is, is asked behind that."""
OUTSIDE = {"scope-missing", "administrators-only", "credentials-missing", "token-revoked", "token-malformed"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillWorld]:
    with serve_still(tmp_path_factory.mktemp("routes"), metrics_token=METRICS_TOKEN) as made:
        yield made


@pytest.fixture(scope="module")
def tokens(world: StillWorld) -> dict[str, str | None]:
    def make(user: str, *scopes: str) -> str:
        answer = world.post(user, "/v1/tokens", {"scopes": list(scopes), "expires_in": 600})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    revoked = make("ann", "read")
    ended = revoked.split("_")[1]
    assert world.call("ann", "DELETE", f"/v1/tokens/{ended}").status_code == 200
    return {
        "nobody": None,
        "stranger": world.token("nobody"),
        "reader": make("ann", "read"),
        "pusher": make("dev", "push:P"),
        "granter": make("owner", "grant"),
        "owner": world.token("owner"),
        "administrator": world.token("root"),
        "revoked": revoked,
        "metrics": METRICS_TOKEN,
    }


def _fill(path: str) -> str:
    return path.replace("{name}", "P").replace("{handle}", "f" * 32).replace("{id}", "0" * 24)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_lets_in_whom_the_table_says(
    world: StillWorld, tokens: dict[str, str | None], route: Route, caller: str
) -> None:
    text = tokens[caller]
    headers = {} if text is None else {"authorization": f"Bearer {text}"}
    # a body that no route takes: who is let in is told that, and changes nothing
    if (route.method, route.path) == ("POST", "/v1/sign-out"):
        if caller != "pusher":
            pytest.skip("it would end the session of those who are let in")
        expected = (403, "scope-missing")
    elif caller in LET_IN[route.need]:
        expected = None
    elif caller in ("nobody", "revoked", "metrics"):
        expected = (401, None)
    else:
        expected = (403, None)
    body = None if route.method == "GET" else {"nothing": "that is known"}
    answer = world.call(None, route.method, _fill(route.path), headers=headers, json=body)
    code = answer.json()["error"]["code"] if answer.status_code >= 400 else None
    if expected is None:
        assert code not in OUTSIDE, answer.text
        assert answer.status_code < 500 or code == "not-served"
    else:
        assert answer.status_code == expected[0], answer.text
        assert expected[1] in (None, code)


@pytest.mark.parametrize("path", sorted({route.path for route in ROUTES}))
def test_other_methods_are_refused(world: StillWorld, tokens: dict[str, str | None], path: str) -> None:
    known = {route.method for route in ROUTES if route.path == path}
    for method in set(METHODS) - known:
        answer = world.call("root", method, _fill(path))
        assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method-unknown")


def test_there_is_no_route_beside_the_table(world: StillWorld) -> None:
    from sluicegate.service.app import create_app

    app = create_app(world.gateway.settings, world.gateway)
    served = {
        (method, each.path) for each in app.routes if isinstance(each, APIRoute) for method in each.methods
    }
    assert served == {(route.method, route.path) for route in ROUTES}
    others = {getattr(each, "path", "") for each in app.routes if not isinstance(each, APIRoute)}
    assert others == {"/openapi.json"}


def test_every_error_has_a_documented_code(world: StillWorld) -> None:
    from sluicegate.service.codes import GATEWAY_CODES
    from sluicegate.service.refusals import STATUS

    answers = [
        world.get(None, "/nothing"),
        world.post("ann", "/v1/queries", {"wrong": 1}),
        world.get(None, "/v1/me"),
    ]
    assert [each.json()["error"]["code"] for each in answers] == [
        "place-unknown",
        "request-malformed",
        "credentials-missing",
    ]
    assert "internal" in GATEWAY_CODES
    assert all(400 <= status < 600 for status in STATUS.values())


def test_a_parse_error_has_its_place(world: StillWorld) -> None:
    query = "SELECT id FORM P"
    error = world.post("ann", "/v1/queries", {"query": query}).json()["error"]
    place = error["places"][0]
    assert query[place["start"] : place["end"]] == place["text"]
    assert (place["line"], place["column"]) == (1, place["start"] + 1)
    statement = "CREATE GRANT x READ (ts) ON Nothing TO Doctor;"
    error = world.post("owner", "/v1/catalog", {"statements": statement}).json()["error"]
    assert [each["text"] for each in error["places"]] == ["Nothing"]

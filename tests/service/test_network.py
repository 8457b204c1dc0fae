"""The running network at the gateway: what queries share, for administrators alone."""

from __future__ import annotations

from pathlib import Path

from service.still_world import serve_still


def test_the_network_of_what_runs(tmp_path: Path) -> None:
    with serve_still(tmp_path) as world:
        for user in ("ann", "bob"):
            world.register(user)
        answer = world.call("root", "GET", "/v1/network")
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert {each["user"] for each in found["queries"].values()} == {"ann", "bob"}
        assert all(each["open"] for each in found["queries"].values())
        inputs = [each for each in found["operators"] if each["kind"] == "input"]
        assert [sorted(each["queries"]) for each in inputs] == [sorted(found["queries"])]
        assert sum(each["kind"] == "terminal" for each in found["switches"]) == 2


def test_a_paused_query_is_closed(tmp_path: Path) -> None:
    with serve_still(tmp_path) as world:
        handle = world.register("ann")
        assert world.post("ann", f"/v1/queries/{handle}/pause", {}).status_code == 200
        found = world.call("root", "GET", "/v1/network").json()
        (query,) = found["queries"].values()
        assert (query["handle"], query["open"]) == (handle, False)
        assert not any(each["runs"] for each in found["operators"])


def test_it_can_be_drawn(tmp_path: Path) -> None:
    with serve_still(tmp_path) as world:
        world.register("ann")
        drawn = world.call("root", "GET", "/v1/network", headers={"Accept": "image/svg+xml"})
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert drawn.text.startswith("<svg")
        assert "script" not in drawn.text


def test_nobody_else_sees_it(tmp_path: Path) -> None:
    with serve_still(tmp_path) as world:
        answer = world.call("ann", "GET", "/v1/network")
        assert answer.json()["error"]["code"] == "administrators-only"

"""Queries in XML at the gateway, and its settings for merging."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.still_world import StillWorld, serve_still

QUERY = """<UserQuery>
  <Stream name="P"/>
  <Filter><FilterCondition>X > 1</FilterCondition></Filter>
  <Map><Attribute>ID</Attribute></Map>
</UserQuery>"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path) as made:
        yield made


def test_one_is_registered_read_and_found_again(world: StillWorld) -> None:
    answer = world.post("ann", "/v1/queries", {"query": QUERY}).json()
    assert [each["code"] for each in answer["notices"]][:2] == ["NAME", "NAME"]
    assert world.register("ann", QUERY.replace("\n", " ")) == answer["handle"]
    assert world.register("bob", QUERY) != answer["handle"]
    world.give(answer["handle"], ("a",))
    rows = world.get("ann", f"/v1/queries/{answer['handle']}/results").json()["rows"]
    assert [row["id"] for row in rows] == ["a"]


def test_one_of_a_stream_that_the_caller_may_not_know_is_told_as_one_that_is_not_there(
    world: StillWorld,
) -> None:
    told = []
    for stream in ("Hidden", "Absent"):
        answer = world.post("ann", "/v1/queries", {"query": QUERY.replace('"P"', f'"{stream}"')})
        error = {**answer.json()["error"], "request": ""}
        told.append((answer.status_code, str(error).replace(stream, "…")))
    assert told[0] == told[1]


def test_places_are_those_of_the_text(world: StillWorld) -> None:
    answer = world.post("ann", "/v1/queries", {"query": QUERY.replace("</Map>", "<Map>")})
    assert answer.status_code in (400, 422)
    assert "xml-unclosed" in answer.text


def test_parts_are_refused_where_the_settings_say_so(tmp_path: Path) -> None:
    with serve_still(tmp_path, on_partial="refuse") as world:
        assert world.post("ann", "/v1/queries", {"query": QUERY}).status_code == 403
        found = world.post("ann", "/v1/explain", {"query": QUERY}).json()
        assert (found["decision"], [each["code"] for each in found["notices"]][2:4]) == (
            "deny",
            ["DENY", "PR"],
        )

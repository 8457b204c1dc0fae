"""Named results over HTTP: made, granted, read, explained and ended by those who may, and known to nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from service.gateway_world import make_settings, open_gateway, p, serve
from service.still_world import StillWorld, serve_still

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINE = "CREATE STREAM Mine AS SELECT ts, id, x FROM P WHERE x > 1; CREATE GRANT mine READ (id) ON Mine TO USER nobody;"
READ = "SELECT id FROM Mine"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path) as made:
        yield made


def _codes(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def _ask(world: StillWorld, user: str, query: str = READ) -> httpx.Response:
    return world.post(user, "/v1/queries", {"query": query})


def test_a_result_is_its_makers_and_whom_the_maker_grants_it(world: StillWorld) -> None:
    world.change("CREATE STREAM Mine AS SELECT ts, id, x FROM P WHERE x > 1;", user="ann")
    streams = world.get("ann", "/v1/streams").json()["streams"]
    assert [each["is_owner"] for each in streams if each["name"] == "Mine"] == [True]
    assert _ask(world, "ann").status_code == 201
    assert _codes(_ask(world, "nobody")) == (400, "unknown-stream")
    # the owner of what it is made of, and its other readers, have no say in it
    for user in ("bob", "owner"):
        assert _codes(_ask(world, user)) == (400, "unknown-stream")
        told = world.post(
            user, "/v1/catalog", {"statements": "CREATE GRANT g READ (id) ON Mine TO USER bob;"}
        )
        assert told.status_code in (400, 403)
    world.change("CREATE GRANT mine READ (id) ON Mine TO USER nobody;", user="ann")
    assert _ask(world, "nobody").status_code == 201
    # nobody pushes into it
    assert world.post("dev", "/v1/streams/Mine", [p(1, "a")]).status_code == 403


def test_a_reader_is_told_of_its_own_grants_and_nothing_of_the_makers(world: StillWorld) -> None:
    world.change(MINE, user="ann")
    found = world.post("nobody", "/v1/explain", {"query": "SELECT id, x FROM Mine"})
    assert found.status_code == 200, found.text
    assert found.json()["decision"] == "partial"
    assert found.json()["grants"] == ["mine"]
    for hidden in ("team", "own", "'A'"):
        assert hidden not in found.text
    handle = _ask(world, "nobody").json()
    assert "team" not in str(handle)


@pytest.mark.parametrize(
    ("statements", "user", "reason"),
    [
        ("DROP GRANT own;", "root", "its owner may not see what it is made of"),
        ("ALTER USER ann DISABLE;", "root", "it has no owner who could see what it is made of"),
        ("DROP GRANT mine;", "ann", "no grant lets `nobody` see `Mine`"),
        ("DROP STREAM Mine CASCADE;", "ann", "a stream that the query reads was dropped"),
    ],
)
def test_readers_are_withdrawn_with_the_makers_right(
    world: StillWorld, statements: str, user: str, reason: str
) -> None:
    """R12: what lay unread is not handed over, and the reader is told why."""
    world.change(MINE, user="ann")
    handle = world.register("nobody", READ)
    world.give(handle, ("a",))
    preview = world.post(user, "/v1/catalog", {"statements": statements, "dry_run": True}).json()
    assert preview["withdrawn"] == 1
    world.change(statements, user=user)
    with world.follow("nobody", handle) as events:
        events.is_over.wait(20)
    assert events.names[-1] == "withdrawn"
    assert events.rows == []
    assert reason in str(events.found[-1])


def test_a_narrower_right_of_the_maker_is_a_new_version_for_its_readers(world: StillWorld) -> None:
    world.change(MINE, user="ann")
    handle = world.register("nobody", READ)
    found = world.change(
        "CREATE OR REPLACE GRANT own READ (ts, id, x) ON P WHERE team = self.team AND x > 5 TO Doctor;"
    )
    assert found["version"] > 0
    running = world.gateway.engine.find(handle)
    assert running is not None
    assert running.version == 2


def test_sharing_paused_below_a_result_ends_it(world: StillWorld) -> None:
    world.change(MINE, user="ann")
    handle = world.register("nobody", READ)
    assert world.post("owner", "/v1/streams/P/pause").status_code == 200
    assert world.gateway.engine.find(handle) is None
    assert _codes(_ask(world, "nobody")) == (409, "nothing-to-run")
    world.post("owner", "/v1/streams/P/resume")
    assert _ask(world, "nobody").status_code == 201


def test_owners_see_who_reads_through_a_result(world: StillWorld) -> None:
    world.change(MINE, user="ann")
    handle = world.register("nobody", READ)
    found = {}
    for user, stream in (("ann", "Mine"), ("owner", "P")):
        (found[user],) = world.get(user, f"/v1/streams/{stream}/sharing").json()["readers"]
    told = ("user", "handle", "query", "decision", "grants")
    assert [found["ann"][each] for each in told] == ["nobody", handle, READ, "permit", ["mine"]]
    # the query names a stream of another's, which is not the owner's to know
    assert [found["owner"][each] for each in told] == ["nobody", None, None, "permit", []]
    assert "Mine" not in str(found["owner"])
    entries: list[dict[str, Any]] = world.get("owner", "/v1/who?stream=P&attribute=id").json()["entries"]
    assert ("nobody", "Mine") in [(each["principal"], each["through"]) for each in entries]
    assert world.get("nobody", "/v1/who?stream=Mine").status_code == 403


def test_an_owner_is_not_told_what_a_query_names_besides_its_stream(world: StillWorld) -> None:
    world.change("CREATE GRANT hidden READ (*) ON Hidden TO USER ann;", user="root")
    query = "SELECT secret FROM Hidden [RANGE 1 MINUTE], P [RANGE 1 MINUTE] WHERE secret = id"
    handle = world.register("ann", query)
    (reader,) = world.get("owner", "/v1/streams/P/sharing").json()["readers"]
    assert (reader["user"], reader["handle"], reader["query"], reader["roles"]) == ("ann", None, None, None)
    assert (reader["decision"], reader["grants"]) == ("partial", ["own"])
    (whole,) = world.get("root", "/v1/streams/P/sharing").json()["readers"]
    assert whole["handle"] == handle
    assert "Hidden" in whole["query"]
    assert whole["grants"] == ["hidden", "own"]


TOLD = """CREATE STREAM Consult OWNER owner AS SELECT ts, id, team, x AS secret FROM P
ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL AND ATTRIBUTES:{ts, id}, SRP = frbac:Observer, SIGN = POSITIVE);"""


def test_what_a_result_states_makes_it_known_to_those_whom_it_names_alone(world: StillWorld) -> None:
    def shown(user: str) -> dict[str, list[str]]:
        found = world.get(user, "/v1/streams").json()["streams"]
        return {each["name"]: [part["name"] for part in each["attributes"]] for each in found}

    world.change(TOLD, user="root")
    assert "Consult" not in shown("nobody")
    assert "Consult" not in shown("ann")
    assert shown("olga")["Consult"] == ["ts", "id"]
    assert shown("owner")["Consult"] == ["ts", "id", "team", "secret"]
    assert "secret" in shown("root")["Consult"]


def test_explanations_follow_the_makers_right(world: StillWorld) -> None:
    """A kept decision is no longer true when what decides it for the maker changes."""
    world.change(MINE, user="ann")
    asked = {"query": READ}
    assert world.post("nobody", "/v1/explain", asked).json()["decision"] == "permit"
    world.change("DROP GRANT own;")
    assert world.post("nobody", "/v1/explain", asked).json()["decision"] == "empty"


@pytest.mark.spark
def test_a_result_is_read_live_and_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with serve(open_gateway(spark, settings)) as world:
        world.change(MINE, user="ann")
        handle = world.register("nobody", READ)
        with world.follow("nobody", handle) as events:
            world.push(p(1, "a", x=2.0), p(2, "b", x=0.5), p(3, "c", "B", 2.0), p(4, "d", x=3.0))
            assert events.wait_rows(2) == [{"id": "a"}, {"id": "d"}]
            cursor = events.cursor
    with serve(open_gateway(spark, settings)) as world:
        assert world.register("nobody", READ) == handle
        with world.follow("nobody", handle, cursor=cursor) as events:
            world.push(p(5, "e", x=2.0))
            assert events.wait_rows(1) == [{"id": "e"}]
            world.change("DROP GRANT own;")
            events.is_over.wait(20)
        assert events.names[-1] == "withdrawn"

"""Ways round what policies in XACML decide: decisions that outlive what they rest on, conditions of a user's own making, and
what a proxy would do for just anybody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.gateway_world import PASSWORD, QUERY, wait_until
from service.proxy_world import serve_proxy
from service.still_world import StillWorld, serve_still
from service.test_clock import SetClock
from service.xacml_world import CATALOG, ENVIRONMENT, SUBJECT, URN, between, create, policy, request
from service.xacml_world import STRING as TEXT
from sluicegate.expr.nodes import Literal
from sluicegate.expr.types import STRING
from sluicegate.language.load import read_catalog
from sluicegate.language.xacml.clock import is_overdue
from sluicegate.language.xacml.decisions import decide_stream
from sluicegate.runtime.network.seats import Seat
from sluicegate.service.gateway import Gateway
from sluicegate.service.proxy.naming import find_streams

RESULT = """
CREATE ROLE Reader; CREATE ROLE Maker; CREATE USER mia ROLES (Maker, Reader); CREATE USER rob ROLES (Reader);
CREATE STREAM R OWNER mia AS SELECT ts, id FROM P;
CREATE GRANT result READ (ts, id) ON R TO Reader;
"""
HOURS = create("makers", policy("makers", "Maker", condition=between("09:00:00Z", "16:59:59.999Z")))
READ_RESULT = "SELECT id FROM R"
READ_IDS = "SELECT id FROM P"
NAME = "x'OR'a'='a"


@pytest.fixture
def clock() -> SetClock:
    return SetClock(16, 58)


@pytest.fixture
def world(tmp_path: Path, clock: SetClock) -> Iterator[StillWorld]:
    with serve_still(tmp_path, CATALOG + RESULT + HOURS, clock) as made:
        yield made


def sign_in(world: StillWorld, user: str, *roles: str) -> str:
    asked = {"user": user, "password": PASSWORD, "roles": list(roles)}
    return str(httpx.post(f"{world.url}/v1/sign-in", json=asked).json()["token"])


def test_a_named_result_ends_when_what_a_policy_let_its_maker_read_is_paused(world: StillWorld) -> None:
    """No grant, user or version differs then: the pause alone does (R12, bypass 28)."""
    world.change("DROP GRANT plain;")
    handle = world.register("rob", READ_RESULT)
    assert world.post("owner", "/v1/streams/P/pause").status_code == 200
    assert world.gateway.engine.find(handle) is None
    assert world.post("rob", "/v1/queries", {"query": READ_RESULT}).status_code >= 400


@pytest.mark.parametrize(("user", "roles"), [("rob", ["Reader"]), ("mia", ["Maker", "Reader"])])
def test_a_named_result_ends_with_its_makers_hours_in_whatever_session_it_is_read(
    world: StillWorld, clock: SetClock, user: str, roles: list[str]
) -> None:
    """A maker decides as itself, not as the session that reads sits: not even where both are one user."""
    handle = world.register(sign_in(world, user, *roles), READ_RESULT)
    assert world.gateway.engine.find(handle) is not None
    clock.put(17, 0, 1)
    wait_until(lambda: world.gateway.engine.find(handle) is None, 5)


def test_a_makers_new_profile_counts_where_its_session_brings_one_of_its_own(world: StillWorld) -> None:
    """What a sign-in says of the reader says nothing of the maker, who may be the same user (R10).

    Once the two differ, the session must not have by its own result what its profile does not give it.
    """
    world.change(
        "CREATE STREAM Q (ts TIMESTAMP, team STRING) TIMESTAMP BY ts OWNER owner; ALTER USER mia SET (team = 'A');"
        "CREATE GRANT team READ (ts, team) ON Q WHERE team = self.team TO Maker;"
        "CREATE STREAM T OWNER mia AS SELECT ts, team FROM Q; CREATE GRANT mine READ (team) ON T TO Reader;"
    )
    seat = Seat("mia", frozenset({"Maker", "Reader"}), (("team", Literal("A", STRING)),))
    world.gateway.engine.register(seat, "SELECT team FROM T", "h1")
    assert world.gateway.engine.find("h1") is not None
    world.change("ALTER USER mia SET (team = 'B');")
    assert world.gateway.engine.find("h1") is None


def test_a_maker_does_not_read_its_result_without_the_role_that_it_is_made_with(world: StillWorld) -> None:
    refused = world.post(sign_in(world, "mia", "Reader"), "/v1/queries", {"query": READ_RESULT})
    assert refused.status_code >= 400
    assert "leaves some of it aside" in refused.json()["error"]["message"]
    made = {"statements": "CREATE STREAM Own AS SELECT ts, id FROM R;"}
    asked = world.post(sign_in(world, "mia", "Reader"), "/v1/catalog", made)
    assert (asked.status_code, asked.json()["error"]["code"]) == (403, "role-inactive")


def test_a_policy_that_reads_the_clock_is_in_force_at_this_moment_when_its_change_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog's moment may be hours old where nothing depended on it: R10 is not to wait for the next look."""
    monkeypatch.setattr(Gateway, "_follow_clock", lambda _: None)
    clock = SetClock(12)
    day = create("day", policy("day", "Nurse", condition=between("09:00:00Z", "16:59:59.999Z")))
    with serve_still(tmp_path, CATALOG + day + create("always", policy("always")), clock) as world:
        nurse, doctor = (world.register(each, READ_IDS) for each in ("bob", "ann"))
        world.call("bob", "DELETE", f"/v1/queries/{nurse}")
        assert world.gateway.engine.catalog.judged_at is not None
        clock.put(18)
        assert world.gateway.engine.find(doctor) is not None
        night = policy("night", effect="Deny", condition=between("17:00:00Z", "23:59:59Z"))
        world.change(create("night", night))
        assert world.gateway.engine.find(doctor) is None


def test_without_a_clock_a_policy_that_denies_by_it_permits_nothing() -> None:
    """Nothing is later than a bound where there is no time: that must not pass for being before it (R7)."""
    kind = "http://www.w3.org/2001/XMLSchema#time"
    late = (
        f'<Condition><Apply FunctionId="{URN}3.0:function:any-of"><Function'
        f' FunctionId="{URN}1.0:function:time-less-than"/><AttributeValue DataType="{kind}">17:00:00Z</AttributeValue>'
        f'<AttributeDesignator Category="{ENVIRONMENT}" AttributeId="{URN}1.0:environment:current-time"'
        f' DataType="{kind}" MustBePresent="false"/></Apply></Condition>'
    )
    denied = create("late", policy("late", effect="Deny", condition=late))
    catalog = read_catalog(CATALOG + create("doctors", policy("doctors")) + denied)
    hours = {hour: catalog.judge_at(hour * 3_600_000_000) for hour in (16, 18)}
    assert decide_stream(hours[16], "ann", "P").permitted
    assert not decide_stream(hours[18], "ann", "P").permitted
    assert not decide_stream(catalog, "ann", "P").permitted


def test_looking_at_the_clock_drives_no_decision_out_of_memory() -> None:
    """Four times a second, for every query that depends on it, at a moment that never comes again."""
    catalog = read_catalog(CATALOG + RESULT + HOURS).judge_at(0)
    is_overdue(catalog, "mia", ("P",), 1)
    kept = dict(catalog.policies._memory)
    assert kept
    for now in range(2, 50):
        is_overdue(catalog, "mia", ("P",), now)
    assert catalog.policies._memory == kept


def test_a_condition_that_was_converted_on_its_way_is_computed_all_the_same() -> None:
    """Texts read again as another type look as if they had been written so: somebody chooses a name (bypass 32)."""
    named = (
        f'<Apply FunctionId="{URN}1.0:function:string-one-and-only"><AttributeDesignator Category="{SUBJECT}"'
        f' AttributeId="{URN}1.0:subject:subject-id" DataType="{TEXT}" MustBePresent="true"/></Apply>'
    )
    parts = [f'<AttributeValue DataType="{TEXT}">{each}</AttributeValue>' for each in ("id='", "'")]
    whole = f'<Apply FunctionId="{URN}2.0:function:string-concatenate">{parts[0]}{named}{parts[1]}</Apply>'
    written = f'<AttributeValue DataType="{TEXT}">id = 1</AttributeValue>'
    read = f'<Apply FunctionId="{URN}3.0:function:anyURI-from-string">{whole}</Apply>'
    text = policy("own", filters=["id = 1"])
    assert written in text
    users = f'CREATE USER "{NAME}" ROLES (Doctor);'
    catalog = read_catalog(CATALOG + users + create("own", text.replace(written, read)))
    found = decide_stream(catalog, NAME, "P")
    assert found.grant is None
    assert "not computed" in found.reason


def test_the_proxy_reads_no_text_of_somebody_whom_no_gateway_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query of a megabyte takes many seconds to read: anybody could keep the proxy busy with a few."""
    read: list[bytes] = []

    def find(kind: str, body: bytes) -> frozenset[str]:
        read.append(body)
        return find_streams(kind, body)

    monkeypatch.setattr("sluicegate.service.proxy.routing.find_streams", find)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        serve_still(tmp_path / "one") as one,
        serve_still(tmp_path / "two") as two,
        serve_proxy(one, two) as proxy,
    ):
        for path in ("/v1/queries", "/v1/explain", "/v1/xacml/decide"):
            for user in (None, "ss_" + "0" * 60):
                assert proxy.post(user, path, {"query": QUERY}).status_code == 401
        assert not read
        assert proxy.post(one.token("ann"), "/v1/queries", {"query": QUERY}).status_code == 201
        assert read


def test_a_fragment_is_no_part_of_what_the_proxy_passes_on(tmp_path: Path) -> None:
    with serve_still(tmp_path) as gateway, serve_proxy(gateway) as proxy:
        host, port = proxy.url.removeprefix("http://").split(":")
        asked = (
            f"GET /v1/me?a#b HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            f"Authorization: Bearer {gateway.token('ann')}\r\n\r\n"
        )
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(asked.encode())
            assert connection.makefile("rb").readline().split()[1] == b"200"


def test_whoever_speaks_for_another_is_on_record(world: StillWorld) -> None:
    """Refused is not enough: it has to be seen (bypass 31)."""
    kind = {"content-type": "application/xacml+xml"}
    for path, action, code in (
        ("/v1/queries", "register", "xacml-subject"),
        ("/v1/xacml/decide", "xacml-decide", "xacml-others"),
    ):
        answer = world.call("bob", "POST", path, content=request("ann", "P"), headers=kind)
        assert answer.json()["error"]["code"] == code
        (event,) = world.get("root", "/v1/audit", params={"principal": "bob", "action": action}).json()[
            "events"
        ]
        assert (event["decision"], event["notices"]) == ("deny", [code])
        assert "ann" in event["subject"]

"""XACML at the gateway: requests decided for whom they may be, policies put and removed, queries inside requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.still_world import StillWorld, serve_still
from service.xacml_world import CATALOG, QUERY, STRING, URN, create, policy, request

XML, JSON = "application/xacml+xml", "application/xacml+json"
DOCTORS = policy("doctors", attributes=("ts", "id"), filters=("x > 5",))
HIDING = policy("hiding", "Nurse", "Hidden", "Deny")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillWorld]:
    text = CATALOG + create("doctors", DOCTORS) + create("hiding", HIDING)
    with serve_still(tmp_path_factory.mktemp("xacml"), text) as made:
        yield made


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path, CATALOG) as made:
        yield made


def decide(world: StillWorld, user: str, text: str, kind: str = XML) -> httpx.Response:
    return world.call(user, "POST", "/v1/xacml/decide", content=text, headers={"content-type": kind})


def tell(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return answer.text.split("<Decision>")[1].split("<")[0]


def put(
    world: StillWorld, text: str, user: str = "root", method: str = "PUT", **params: Any
) -> httpx.Response:
    return world.call(
        user, method, "/v1/policies", content=text, params=params, headers={"content-type": XML}
    )


def test_one_may_ask_about_oneself(shared: StillWorld) -> None:
    answer = decide(shared, "ann", request("ann", "P"))
    assert tell(answer) == "Permit"
    assert answer.headers["content-type"].startswith(XML)
    assert "stream-filter" in answer.text
    assert "x &gt; 5" in answer.text
    assert "doctors" not in answer.text
    assert tell(decide(shared, "bob", request("bob", "P"))) == "NotApplicable"
    assert tell(decide(shared, "ann", request("ann", "P", action="write"))) == "NotApplicable"


def test_the_json_profile_says_the_same(shared: StillWorld) -> None:
    asked = {
        "Request": {
            "AccessSubject": {"Attribute": [{"AttributeId": f"{URN}1.0:subject:subject-id", "Value": "ann"}]},
            "Resource": {"Attribute": [{"AttributeId": f"{URN}1.0:resource:resource-id", "Value": "P"}]},
            "Action": {"Attribute": [{"AttributeId": f"{URN}1.0:action:action-id", "Value": "read"}]},
        }
    }
    found = decide(shared, "ann", json.dumps(asked), JSON).json()["Response"][0]
    assert found["Decision"] == "Permit"
    assert len(found["Obligations"]) == 2


def test_about_others_only_the_owner_and_administrators_may_ask(shared: StillWorld) -> None:
    role = f'<Attribute AttributeId="{URN}2.0:subject:role" IncludeInResult="false"><AttributeValue DataType="{STRING}">Doctor</AttributeValue></Attribute>'
    for user, text in (
        ("bob", request("ann", "P")),
        ("bob", request("bob", "P", more=role)),
        ("owner", request("ann", "Hidden")),
        ("owner", request("ann", "Absent")),
    ):
        refused = decide(shared, user, text)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "xacml-others")
    for user in ("owner", "root"):
        assert tell(decide(shared, user, request("ann", "P"))) == "Permit"
        assert tell(decide(shared, user, request("bob", "P"))) == "NotApplicable"
        assert tell(decide(shared, user, request("bob", "P", more=role))) == "Permit"
    assert tell(decide(shared, "root", request("bob", "Hidden"))) == "Deny"


def test_a_stream_that_one_may_not_know_is_told_as_one_that_is_not_there(shared: StillWorld) -> None:
    hidden, absent = (decide(shared, "bob", request("bob", each)) for each in ("Hidden", "Absent"))
    assert hidden.text == absent.text
    assert tell(hidden) == "NotApplicable"


def test_what_is_no_request_is_answered_or_refused_by_the_standard(shared: StillWorld) -> None:
    assert tell(decide(shared, "ann", f'<Policy xmlns="{URN}3.0:core:schema:wd-17"/>')) == "Indeterminate"
    broken = decide(shared, "ann", "<Request")
    assert broken.status_code == 400
    bomb = '<!DOCTYPE a [<!ENTITY b "c">]><Request>&b;</Request>'
    assert decide(shared, "ann", bomb).status_code == 400
    assert decide(shared, "ann", "{}", "text/plain").json()["error"]["code"] == "xacml-content"


def test_decisions_are_audited(shared: StillWorld) -> None:
    decide(shared, "ann", request("ann", "P"))
    events = shared.get("root", "/v1/audit?action=xacml-decide&principal=ann").json()["events"]
    assert {(each["subject"], each["decision"]) for each in events} >= {("ann P", "Permit")}


def test_a_query_comes_inside_a_request(shared: StillWorld) -> None:
    inside = '<Content><UserQuery xmlns=""><Stream name="P"/><Map><Attribute>id</Attribute></Map></UserQuery></Content>'

    def ask(user: str, text: str) -> httpx.Response:
        return shared.call(user, "POST", "/v1/queries", content=text, headers={"content-type": XML})

    answer = ask("ann", request("ann", "P", inside))
    assert answer.status_code == 201, answer.text
    assert ask("ann", request("ann", "P", inside)).json()["handle"] == answer.json()["handle"]
    shared.give(answer.json()["handle"], ("a",))
    rows = shared.get("ann", f"/v1/queries/{answer.json()['handle']}/results").json()["rows"]
    assert [row["id"] for row in rows] == ["a"]
    other = ask("bob", request("ann", "P", inside))
    assert (other.status_code, other.json()["error"]["code"]) == (403, "xacml-subject")
    assert ask("bob", request("bob", "P", inside)).status_code == 400
    wrong = shared.call("ann", "POST", "/v1/queries", content="q", headers={"content-type": "text/plain"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "request-malformed")


def test_a_policy_is_put_checked_listed_replaced_and_removed(world: StillWorld) -> None:
    asked = {"query": "SELECT ts, id FROM P"}
    checked = put(world, DOCTORS, method="POST", dry_run=True)
    assert (checked.status_code, checked.json()["dry_run"]) == (200, True)
    assert world.get("root", "/v1/policies").json()["policies"] == []
    assert put(world, DOCTORS, method="POST", reason="rounds").json()["id"] == "doctors"
    handle = world.post("ann", "/v1/queries", asked).json()["handle"]
    kept = world.post("cleo", "/v1/queries", asked).json()["handle"]
    before = world.gateway.engine.find(kept)
    assert put(world, DOCTORS, method="POST").status_code == 400
    replaced = put(world, policy("doctors", attributes=("id",))).json()
    assert (replaced["changed"], replaced["withdrawn"], replaced["queries"]) == (1, 0, [handle])
    listed = world.get("root", "/v1/policies?id=doctors").json()["policies"]
    assert [(each["id"], each["is_set"]) for each in listed] == [("doctors", False)]
    assert "stream-map" in listed[0]["text"]
    with world.follow("ann", handle) as events:
        removed = world.call("root", "DELETE", "/v1/policies?id=doctors&reason=over").json()
        assert removed["withdrawn"] == 1
        assert events.is_over.wait(10)
    assert events.names[-1] == "withdrawn"
    assert world.gateway.engine.find(kept) == before
    history = world.get("root", "/v1/catalog/history").json()["entries"]
    assert [each["reason"] for each in history[-3:]] == ["rounds", "", "over"]
    assert {each["actor"] for each in history[-3:]} == {"root"}
    assert world.call("root", "DELETE", "/v1/policies?id=doctors").status_code == 404
    assert world.get("root", "/v1/policies?id=doctors").status_code == 404


def test_policies_are_for_administrators(world: StillWorld) -> None:
    for user in ("ann", "owner"):
        assert put(world, DOCTORS, user).status_code == 403
        assert world.get(user, "/v1/policies").status_code == 403
        assert world.call(user, "DELETE", "/v1/policies?id=doctors").status_code == 403
    body = {"statements": create("doctors", DOCTORS), "reason": ""}
    assert world.post("owner", "/v1/catalog", body).status_code >= 400
    assert not world.gateway.catalog.policies


def test_a_policy_that_is_rejected_is_told_with_its_place(world: StillWorld) -> None:
    answer = put(world, DOCTORS.replace("string-equal", "string-equals"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "xacml-function")
    assert "string-equals" in answer.json()["error"]["places"][0]["text"]
    assert put(world, "<Policy").status_code == 400
    assert not world.gateway.catalog.policies


def test_a_paused_stream_is_read_by_nobody_whatever_policies_say(world: StillWorld) -> None:
    put(world, DOCTORS)
    handle = world.register("ann", QUERY)
    assert world.post("owner", "/v1/streams/P/pause").status_code == 200
    assert world.gateway.engine.find(handle) is None
    assert world.post("ann", "/v1/queries", {"query": QUERY}).status_code >= 400
    assert world.post("owner", "/v1/streams/P/resume").status_code == 200
    assert world.post("ann", "/v1/queries", {"query": QUERY}).status_code == 201


def test_explain_names_policies_to_owners_and_administrators_alone(shared: StillWorld) -> None:
    mine = shared.post("ann", "/v1/explain", {"query": QUERY}).json()
    assert mine["grants"] == ["xacml:P"]
    assert "xacml" not in mine
    assert "xacml" in shared.post("owner", "/v1/explain", {"query": QUERY}).json()


def test_the_client_and_the_command_see_to_policies(
    world: StillWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sluicegate.cli.main import main
    from sluicegate.client import Client, RefusedError

    monkeypatch.setenv("SLUICEGATE_URL", world.url)
    monkeypatch.setenv("SLUICEGATE_TOKEN", world.token("root"))
    file, wrong = tmp_path / "doctors.xml", tmp_path / "wrong.xml"
    file.write_text(DOCTORS, encoding="utf-8")
    wrong.write_text(DOCTORS.replace("string-equal", "string-equals"), encoding="utf-8")

    def run(*args: str) -> tuple[int, str]:
        status = main(["xacml", "policies", *args])
        said = capsys.readouterr()
        return status, said.out + said.err

    assert run("list") == (0, "no policies\n")
    assert run("check", str(file)) == (0, "doctors: would be version 2\n")
    assert run("put", str(file), "--reason", "rounds") == (0, "doctors: version 2\n")
    assert run("put", str(wrong))[0] == 1
    assert "doctors" in run("list")[1]
    assert run("show", "doctors")[1].strip() == DOCTORS
    assert run("put")[0] == 2
    with Client(world.url, world.token("ann")) as client:
        assert ">Permit<" in client.decide(request("ann", "P"))
        handle = client.query_xacml(request("ann", "P"))
        assert handle.decision in ("permit", "partial")
        with pytest.raises(RefusedError):
            client.policies.list()
    assert run("remove", "doctors") == (0, "doctors: version 3\nqueries withdrawn: 1\n")
    assert run("remove", "doctors")[0] == 1

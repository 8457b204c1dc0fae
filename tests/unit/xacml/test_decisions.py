"""What policies come to for a user: as grants, in explanations, in `who`, in `check`, and by the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from sluicegate.api import Denied, Gate
from sluicegate.expr.text import write_string
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.xacml import decisions
from sluicegate.language.xacml.clock import is_overdue
from sluicegate.language.xacml.decisions import decide_stream, with_decisions
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.xacml.context import Decision
from sluicegate.rewrite.explain_json import explanation_json
from sluicegate.rewrite.lint import lint
from sluicegate.runtime.network.authorize import is_same_for
from sluicegate.runtime.network.graphs import Graphs
from sluicegate.runtime.network.seats import Seat, seat_catalog
from sluicegate.source import SourceText
from sluicegate.testing.stream_policies import write_stream_policy
from unit.xacml.xacml_world import apply as call
from unit.xacml.xacml_world import condition, designator, policy, rule

BASE = """
CREATE ROLE Planner; CREATE ROLE Senior INHERITS Planner; CREATE ROLE Barred;
CREATE USER own; CREATE USER ura ROLES (Planner); CREATE USER sam ROLES (Senior, Barred) SET (level = 'high');
CREATE USER off ROLES (Planner); ALTER USER off DISABLE;
CREATE STREAM weather (at TIMESTAMP, rain DOUBLE, wind DOUBLE) TIMESTAMP BY at OWNER own;
CREATE STREAM traffic (at TIMESTAMP, cars INT, who STRING) TIMESTAMP BY at OWNER own;
CREATE USER ship SET (who = 'ship', name = 'Ann') FOLLOW traffic (cars) ON who WITHIN '1 minute';
CREATE STREAM Wet OWNER ura AS SELECT at, rain FROM weather WHERE rain > 0;
"""
OFFICE = {"id": "office", "stream": "weather", "role": "Planner", "hours": ["09:00:00", "17:00:00"]}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NIGHT = NOON + timedelta(hours=12)


def micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)


def make(*policies: Mapping[str, Any] | str, also: str = "") -> Catalog:
    texts = [each if isinstance(each, str) else write_stream_policy(each) for each in policies]
    ids = [each["id"] if isinstance(each, Mapping) else "p" for each in policies]
    made = [f"CREATE POLICY '{id_}' AS {write_string(text)};" for id_, text in zip(ids, texts, strict=True)]
    return apply(read_catalog(BASE), parse_statements(SourceText("<text>", "".join([*made, also]))))


def granted(catalog: Catalog, user: str, streams: tuple[str, ...] | None = None) -> list[str]:
    return [each.name for each in with_decisions(catalog, user, streams).grants_to(user)]


def test_without_policies_the_catalog_itself_decides() -> None:
    catalog = read_catalog(BASE)
    assert with_decisions(catalog, "ura") is catalog


def test_a_decision_is_a_grant_to_the_user_alone() -> None:
    catalog = make({"id": "p", "user": "ura"}, also="CREATE GRANT g READ (rain) ON weather TO Planner;")
    assert granted(catalog, "ura") == ["g", "xacml:Wet", "xacml:traffic", "xacml:weather"]
    assert granted(catalog, "ura", ("weather",)) == ["g", "xacml:weather"]
    assert granted(catalog, "sam") == ["g"]
    for nobody in ("off", "stranger"):
        assert granted(catalog, nobody) == []
    assert list(catalog.grants) == ["g"]


def test_nothing_is_decided_twice() -> None:
    catalog = make({"id": "p", "user": "ura"})
    once = with_decisions(catalog, "ura", ("weather",))
    assert with_decisions(once, "ura", ("weather",)) is once
    left_out = replace(once, grants={})
    assert with_decisions(left_out, "ura", ("weather",)) is left_out
    assert granted(once, "ura", ("weather", "traffic")) == ["xacml:traffic", "xacml:weather"]


def test_what_is_decided_for_one_is_not_found_for_another() -> None:
    catalog = make(
        {"id": "p", "user": "ura", "stream": "weather"}, {"id": "q", "user": "sam", "stream": "traffic"}
    )
    first = with_decisions(catalog, "ura")
    second = with_decisions(first, "sam")
    assert [each.name for each in second.grants_to("sam")] == ["xacml:traffic"]
    assert [each.name for each in second.grants_on("sam", ("weather",))] == []
    assert all(each.subject.name == "sam" for each in second.grants.values())


def test_another_user_or_moment_is_decided_on_anew() -> None:
    catalog = make({"id": "p", "user": "ura", "stream": "traffic"}, OFFICE).judge_at(micros(NOON))
    decided = with_decisions(catalog, "ura")
    assert granted(decided.judge_at(micros(NIGHT)), "ura") == ["xacml:traffic"]
    seated = decided.with_user(replace(catalog.users["ura"], roles=()))
    assert granted(seated, "ura") == ["xacml:traffic"]
    assert list(seated.grants) == []


def test_a_decision_is_made_once_for_all_versions_that_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    real = decisions.decide

    def count(*given: Any) -> Any:
        asked.append(given)
        return real(*given)

    monkeypatch.setattr(decisions, "decide", count)
    catalog = make({"id": "p", "user": "ura", "stream": "weather"}, OFFICE)
    for each in (catalog, replace(catalog, version=9), catalog.judge_at(5), catalog.judge_at(5)):
        decide_stream(each, "ura", "weather")
    assert len(asked) == 2
    changed = apply(catalog, parse_statements(SourceText("<text>", "ALTER STREAM weather ADD snow INT;")))
    assert decide_stream(changed.judge_at(micros(NOON)), "ura", "weather").grant is not None
    assert len(asked) == 3


def test_the_request_has_the_profile_but_not_what_follows_a_stream() -> None:
    asked = decisions.make_request(replace(read_catalog(BASE).users["ship"]), ["R"], "weather")
    subject = {each.attribute_id: each.values[0].text for each in asked.categories[0].attributes}
    assert subject["sluicegate:profile:name"] == subject["name"] == "Ann"
    assert not any("cars" in name for name in subject)
    assert all(
        value.written is None
        for part in asked.categories
        for each in part.attributes
        for value in each.values
    )


def test_a_profile_cannot_pass_for_who_the_user_is() -> None:
    name = "urn:oasis:names:tc:xacml:1.0:subject:subject-id"
    catalog = make({"id": "p", "user": "own"}, also=f"ALTER USER ura SET (\"{name}\" = 'own');")
    assert granted(catalog, "ura") == []


def test_roles_that_are_not_active_permit_nothing_and_still_deny_and_oblige() -> None:
    catalog = make(
        {"id": "p", "stream": "weather", "role": "Planner"},
        {"id": "q", "stream": "weather", "role": "Senior", "filter": "rain > 1"},
        {"id": "r", "stream": "traffic", "role": "Planner"},
        {"id": "s", "stream": "traffic", "role": "Barred", "effect": "deny"},
    )
    some = seat_catalog(catalog, Seat("sam", frozenset({"Planner"})))
    found = decide_stream(some, "sam", "weather")
    assert found.grant is not None
    assert len(found.obligations) == 1
    assert not decide_stream(some, "sam", "traffic").permitted
    assert granted(seat_catalog(catalog, Seat("sam", frozenset({"Barred"}))), "sam") == []


def test_an_obligation_that_cannot_be_fulfilled_is_no_permission() -> None:
    found = decide_stream(make({"id": "p", "user": "ura", "oblige": "urn:example:log"}), "ura", "weather")
    assert (found.permitted, found.decision) == (False, Decision.PERMIT)
    assert "urn:example:log" in found.reason
    assert found.policies == ("p",)


def test_a_condition_put_together_from_the_users_name_is_refused() -> None:
    text = call(
        "string-concatenate",
        value_of("wind > 0 OR 'x' = '"),
        one_of("urn:oasis:names:tc:xacml:1.0:subject:subject-id"),
        base="urn:oasis:names:tc:xacml:2.0:function:",
    )
    given = (
        '<ObligationExpressions><ObligationExpression ObligationId="exacml:obligation:stream-filter" FulfillOn="Permit">'
        '<AttributeAssignmentExpression AttributeId="exacml:obligation:stream-filter-condition-id">'
        f"{text}</AttributeAssignmentExpression></ObligationExpression></ObligationExpressions>"
    )
    found = decide_stream(make(policy(rule(), after=given)), "ura", "weather")
    assert found.decision is Decision.PERMIT
    assert "not computed" in found.reason


def value_of(text: str) -> str:
    return f'<AttributeValue DataType="http://www.w3.org/2001/XMLSchema#string">{text}</AttributeValue>'


def one_of(name: str) -> str:
    return call("string-one-and-only", designator(name))


def test_what_cannot_be_decided_is_no_permission() -> None:
    missing = condition(call("string-equal", one_of("urn:none"), value_of("x")))
    found = decide_stream(make({"id": "q"}, policy(rule("Deny", within=missing))), "ura", "weather")
    assert found.decision.indeterminate
    assert found.grant is None


def test_the_clock_is_that_of_the_catalog() -> None:
    catalog = make(OFFICE)
    assert granted(catalog, "ura", ("weather",)) == []
    assert granted(catalog.judge_at(micros(NOON)), "ura", ("weather",)) == ["xacml:weather"]
    assert granted(catalog.judge_at(micros(NIGHT)), "ura", ("weather",)) == []


def test_the_library_takes_a_moment() -> None:
    gate = Gate(make(OFFICE))
    for at in (NOON, NOON.replace(tzinfo=None), NOON.astimezone(timezone(timedelta(hours=9)))):
        assert gate.authorize("ura", "SELECT rain FROM weather", at=at).plan is not None
    with pytest.raises(Denied):
        gate.authorize("ura", "SELECT rain FROM weather", at=NIGHT)
    assert [each.principal for each in gate.who("weather", at=NOON)] == ["sam", "ura"]
    assert gate.who("weather", at=NIGHT) == []


def test_what_is_overdue_differs_now() -> None:
    catalog = make(OFFICE, {"id": "wet", "stream": "Wet", "user": "own"}).judge_at(micros(NOON))
    later = micros(NOON + timedelta(hours=1))
    assert not is_overdue(catalog, "ura", ("weather",), later)
    assert is_overdue(catalog, "ura", ("weather",), micros(NIGHT))
    assert not is_overdue(catalog, "own", ("weather", "gone"), micros(NIGHT))
    # its maker may not see what it is made of any more
    assert is_overdue(catalog, "own", ("Wet",), micros(NIGHT))
    assert is_overdue(replace(catalog, judged_at=None), "ura", ("weather",), later)


def test_users_whose_decisions_agree_need_not_be_judged_anew() -> None:
    catalog = make(OFFICE, {"id": "p", "user": "own", "stream": "traffic"}).judge_at(micros(NOON))
    night = catalog.judge_at(micros(NIGHT))
    assert not is_same_for("ura", catalog, night, ("weather",))
    assert is_same_for("own", catalog, night, ("traffic",))
    assert is_same_for("ship", catalog, night)
    text = "DROP POLICY 'p';"
    dropped = apply(catalog, parse_statements(SourceText("<text>", text)))
    assert not is_same_for("own", catalog, dropped, ("traffic",))
    assert is_same_for("ship", catalog, dropped)


def test_graphs_are_found_again_only_while_policies_agree() -> None:
    catalog = make(OFFICE).judge_at(micros(NOON))
    graphs, query = Graphs(), "SELECT rain FROM weather"
    graphs.authorize(catalog, "sam", query)
    graphs.authorize(catalog.judge_at(micros(NOON) + 1), "sam", query)
    assert graphs.hits == 1
    with pytest.raises(Exception, match="weather"):
        graphs.authorize(catalog.judge_at(micros(NIGHT)), "sam", query)


def test_an_explanation_names_policies_only_where_that_is_asked_for() -> None:
    gate = Gate(
        make({"id": "p", "user": "ura", "filter": "rain > 1"}, {"id": "q", "user": "sam", "oblige": "urn:x"})
    )
    found = gate.explain("ura", "SELECT rain FROM weather")
    assert found.used == ("xacml:weather",)
    assert "xacml" not in explanation_json(found)
    (told,) = explanation_json(found, policies=True)["xacml"]
    assert (told["stream"], told["permitted"], told["policies"]) == ("weather", True, ["p"])
    assert told["obligations"][0]["values"][0]["value"] == "rain > 1"
    denied = gate.explain("sam", "SELECT rain FROM weather")
    assert "urn:x" not in repr(explanation_json(denied))
    assert "urn:x" in denied.decided[0].reason


def test_check_warns_of_policies_that_permit_nothing() -> None:
    catalog = make(
        {"id": "gone", "stream": "snow"},
        {"id": "bad", "stream": "weather", "filter": "snow > 1"},
        {"id": "unknown", "stream": "weather", "oblige": "urn:x"},
        {"id": "nowhere", "map": ["snow"]},
        {"id": "somewhere", "map": ["cars"]},
        {"id": "good", "stream": "weather", "filter": "rain > 1", "map": ["Rain"]},
    )
    found = [(each.code, each.message.split("`")[1]) for each in lint(catalog)]
    assert [each for each in found if each[0].startswith("policy")] == [
        ("policy-obligation", "bad"),
        ("policy-unknown-stream", "gone"),
        ("policy-obligation", "nowhere"),
        ("policy-obligation", "unknown"),
    ]
    assert not any(
        code in ("unread-stream", "user-without-grants", "role-without-grants") for code, _ in found
    )


def test_an_attribute_added_later_is_shown_by_maps_that_name_it_alone() -> None:
    """D6: it is in no grant's `*`, and a policy that says nothing of attributes could not know of it either."""
    silent = {"id": "silent", "stream": "weather", "role": "Planner"}
    naming = {"id": "naming", "stream": "weather", "user": "own", "map": ["rain", "snow"]}
    catalog = make(silent, also="ALTER STREAM weather ADD snow INT;")
    (grant,) = with_decisions(catalog, "ura", ["weather"]).grants_to("ura")
    assert [each.name for each in grant.attributes] == ["at", "rain", "wind"]
    text = f"CREATE POLICY 'naming' AS {write_string(write_stream_policy(naming))};"
    named = apply(catalog, parse_statements(SourceText("<text>", text)))
    (grant,) = with_decisions(named, "own", ["weather"]).grants_to("own")
    assert [each.name for each in grant.attributes] == ["rain", "snow"]
    (grant,) = with_decisions(named, "ura", ["weather"]).grants_to("ura")
    assert [each.name for each in grant.attributes] == ["at", "rain", "wind"]
    back = "ALTER STREAM weather DROP snow;"
    assert apply(named, parse_statements(SourceText("<text>", back))).late == {"weather": frozenset()}

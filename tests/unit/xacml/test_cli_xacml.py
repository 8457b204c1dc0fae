"""`sluicegate xacml decide`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.cli.main import main
from sluicegate.policy.xacml.names import CURRENT_DATE_TIME, ENVIRONMENT
from unit.xacml.xacml_world import NS, apply, condition, designator, policy, policy_set, rule, value

Capture = pytest.CaptureFixture[str]
ASKED = f'<Request {NS} CombinedDecision="false" ReturnPolicyIdList="false"/>'
AFTER_2030 = condition(
    apply(
        "dateTime-greater-than",
        apply("dateTime-one-and-only", designator(CURRENT_DATE_TIME, "dateTime", ENVIRONMENT)),
        value("2030-01-01T00:00:00Z", "dateTime"),
    )
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "request.xml").write_text(ASKED)
    (tmp_path / "request.json").write_text('{"Request": {}}')
    (tmp_path / "policy.xml").write_text(policy(rule()))
    (tmp_path / "clock.xml").write_text(policy(rule(within=AFTER_2030)))
    (tmp_path / "bad.xml").write_text(policy(rule("Allow")))
    inner = tmp_path / "set"
    inner.mkdir()
    (inner / "a.xml").write_text(policy(rule("Deny")))
    (inner / "z.xml").write_text(policy_set("<PolicyIdReference>p</PolicyIdReference>"))
    return tmp_path


def decide(*given: str | Path) -> int:
    return main(["xacml", "decide", *map(str, given)])


def test_the_response_is_printed(folder: Path, capsys: Capture) -> None:
    assert decide(folder / "request.xml", folder / "policy.xml") == 0
    out, err = capsys.readouterr()
    assert out.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<Response')
    assert "<Decision>Permit</Decision>" in out
    assert err == ""


def test_json_and_a_folder_whose_root_is_found(folder: Path, capsys: Capture) -> None:
    assert decide(folder / "request.json", folder / "set", "--json") == 0
    [result] = json.loads(capsys.readouterr().out)["Response"]
    assert result["Decision"] == "Deny"


@pytest.mark.parametrize(
    ("at", "decision"),
    [
        ("2031-01-01T00:00:00Z", "Permit"),
        ("2029-12-31 23:59:59", "NotApplicable"),
        ("2030-01-01T00:30:00-01:00", "Permit"),
    ],
)
def test_the_clock(folder: Path, capsys: Capture, at: str, decision: str) -> None:
    assert decide(folder / "request.xml", folder / "clock.xml", "--at", at) == 0
    assert f"<Decision>{decision}</Decision>" in capsys.readouterr().out


def test_without_a_time_it_is_now(folder: Path, capsys: Capture) -> None:
    (folder / "past.xml").write_text(policy(rule(within=AFTER_2030.replace("2030-", "2020-"))))
    assert decide(folder / "request.xml", folder / "past.xml") == 0
    assert "<Decision>Permit</Decision>" in capsys.readouterr().out


def test_a_wrong_policy_is_a_diagnostic(folder: Path, capsys: Capture) -> None:
    assert decide(folder / "request.xml", folder / "bad.xml") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "bad.xml:1:" in err
    assert "error[xacml-syntax]" in err


def test_a_request_that_is_no_proper_one_is_answered(folder: Path, capsys: Capture) -> None:
    (folder / "odd.xml").write_text(f"<Request {NS}><Foo/></Request>")
    assert decide(folder / "odd.xml", folder / "policy.xml") == 0
    assert "syntax-error" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["hello", "<!DOCTYPE a><a/>", "{"])
def test_a_request_that_is_no_text_of_its_kind_is_refused(folder: Path, capsys: Capture, text: str) -> None:
    (folder / "odd.xml").write_text(text)
    assert decide(folder / "odd.xml", folder / "policy.xml") == 1
    assert capsys.readouterr().out == ""


def test_wrong_usage(folder: Path, capsys: Capture) -> None:
    (folder / "empty").mkdir()
    asked, policy_ = folder / "request.xml", folder / "policy.xml"
    for given in (
        (asked,),
        (asked, folder / "none.xml"),
        (folder / "none.xml", policy_),
        (asked, folder / "empty"),
        (asked, policy_, "--at", "tomorrow"),
        (asked, policy_, "--foo"),
        (asked, ""),
        (folder, policy_),
    ):
        assert decide(*given) == 2, given
    assert main(["xacml"]) == 2
    assert "Traceback" not in capsys.readouterr().err

"""Grants as policies: the same for everybody, or left out with the reason; and the commands around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.cli.main import main
from sluicegate.language.fold import apply
from sluicegate.language.load import make_policy_statement, read_catalog, read_sources
from sluicegate.language.xacml.decisions import decide_stream
from sluicegate.language.xacml.write_grants import export_grants
from sluicegate.language.xacml.write_policies import write_policy
from sluicegate.source import SourceText
from sluicegate.testing.stream_policies import write_stream_policy

Capture = pytest.CaptureFixture[str]
BASE = """
CREATE ROLE Planner; CREATE ROLE Senior INHERITS Planner;
CREATE USER ura ROLES (Planner); CREATE USER sam ROLES (Senior); CREATE USER lta; CREATE USER two;
CREATE STREAM weather (at TIMESTAMP, rain DOUBLE, wind DOUBLE, "select" INT) TIMESTAMP BY at;
CREATE STREAM traffic (at TIMESTAMP, cars INT) TIMESTAMP BY at;
"""
GRANTS = """
CREATE GRANT plain READ (rain, "select") ON weather AS w WHERE w.rain > 1 AND (w.wind < 2 OR w."select" IN (1, 2)) TO Planner;
CREATE GRANT windows AGGREGATE (AVG(rain), FIRST(wind)) ON weather WHERE wind IS NOT NULL NARROW BY (rain, wind)
  WINDOW AT LEAST '90 seconds' STEP AT LEAST '10 ms' TO USER lta;
CREATE GRANT rows AGGREGATE (COUNT(cars)) ON traffic WINDOW AT LEAST 5 ROWS STEP AT LEAST 2 ROWS TO Planner;
"""
LEFT_OUT = """
CREATE GRANT profile READ (rain) ON weather WHERE rain > self.level TO USER two;
CREATE GRANT joined READ (rain, cars) ON weather, traffic TO USER two;
CREATE GRANT append APPEND ON weather TO USER two;
CREATE GRANT grouped AGGREGATE (COUNT(*)) ON traffic BY (cars) WINDOW AT LEAST 5 ROWS STEP AT LEAST 2 ROWS TO USER two;
CREATE GRANT narrow AGGREGATE (AVG(rain)) ON weather NARROW BY (wind) WINDOW AT LEAST 5 ROWS STEP AT LEAST 2 ROWS TO USER two;
CREATE GRANT during READ (rain) ON weather DURING [TIMESTAMP '2026-01-01', NULL] TO USER two;
CREATE GRANT option READ (cars) ON traffic TO USER two WITH GRANT OPTION;
CREATE GRANT one READ (cars) ON traffic TO USER two;
CREATE GRANT other READ (at) ON traffic TO USER two;
"""


def test_an_exported_grant_is_the_same_for_everybody() -> None:
    catalog = read_catalog(BASE + GRANTS)
    found = export_grants(catalog)
    assert found.left_out == ()
    made = [make_policy_statement(SourceText("<p>", write_policy(found.join())))]
    without = apply(read_catalog(BASE), made)
    expected = {
        ("ura", "weather"): "plain",
        ("sam", "weather"): "plain",
        ("lta", "weather"): "windows",
        ("ura", "traffic"): "rows",
        ("sam", "traffic"): "rows",
    }
    for user in catalog.users:
        for stream in catalog.streams:
            grant = decide_stream(without, user, stream).grant
            assert (grant is not None) == ((user, stream) in expected)
            if grant is not None:
                original = catalog.grants[expected[user, stream]]
                assert (grant.privilege, grant.least) == (original.privilege, original.least)
                assert {each.name for each in grant.attributes} == {each.name for each in original.attributes}
                assert [each.name for each in grant.narrow_by] in ([], ["rain", "wind"])


def test_what_policies_cannot_say_is_left_out_with_the_reason() -> None:
    found = export_grants(read_catalog(BASE + LEFT_OUT))
    assert found.policies == ()
    reasons = dict(found.left_out)
    assert len(reasons) == 9
    assert "profile" in reasons["profile"]
    assert "several streams" in reasons["joined"]
    assert "BY" in reasons["grouped"]
    assert "NARROW BY" in reasons["narrow"]
    assert "add up" in reasons["one"]
    assert "add up" in reasons["other"]


def test_export_and_import_by_the_command_line(tmp_path: Path, capsys: Capture) -> None:
    grants, bare = tmp_path / "grants", tmp_path / "bare"
    for folder, text in (
        (grants, BASE + GRANTS + "CREATE GRANT a APPEND ON weather TO USER two;"),
        (bare, BASE),
    ):
        folder.mkdir()
        (folder / "catalog.sql").write_text(text)
    assert main(["xacml", "export", str(grants)]) == 0
    one, complaint = capsys.readouterr()
    assert "sluicegate:grant:plain" in one
    assert "grant `a` is left out" in complaint
    assert main(["xacml", "export", str(grants), "--into", str(tmp_path / "out")]) == 0
    written = capsys.readouterr().out.split()
    assert len(written) == 3
    assert main(["xacml", "import", str(tmp_path / "out"), "--into", str(bare)]) == 0
    assert len(list((bare / "policies").iterdir())) == 3
    assert len(read_sources(bare).load().policies) == 3
    # they are there already
    assert main(["xacml", "import", str(tmp_path / "out"), "--into", str(bare)]) == 1
    assert len(list((bare / "policies").iterdir())) == 3


def test_import_prints_statements(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "p.xml").write_text(write_stream_policy({"id": "it's"}), encoding="utf-8")
    assert main(["xacml", "import", str(tmp_path)]) == 0
    assert list(read_catalog(capsys.readouterr().out).policies) == ["it's"]
    (tmp_path / "q.xml").write_text("<Policy/>")
    assert main(["xacml", "import", str(tmp_path)]) == 1
    assert "q.xml:1:1" in capsys.readouterr().err
    assert main(["xacml", "import", str(tmp_path / "none")]) == 2

"""What each verb answers, in text and as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sluicegate.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SOLDIERS = str(EXAMPLES / "soldiers")
JOIN = (
    "SELECT Health.SID, BPressure, Pos FROM Position [RANGE 1 HOUR] JOIN Health [RANGE 1 HOUR] "
    "ON Position.SID = Health.SID WHERE Pos >= 25"
)

Capture = pytest.CaptureFixture[str]


def say(capsys: Capture, *argv: str, status: int = 0) -> str:
    assert main(argv) == status
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return out


def read(capsys: Capture, *argv: str, status: int = 0) -> Any:
    return json.loads(say(capsys, *argv, "--json", status=status))


def explain(capsys: Capture, user: str, query: str, *more: str, status: int = 0) -> Any:
    return read(capsys, "explain", SOLDIERS, "--as", user, query, *more, status=status)


def test_check_finds_nothing_wrong_with_the_examples(capsys: Capture) -> None:
    for folder in sorted(EXAMPLES.iterdir()):
        assert read(capsys, "check", str(folder))["errors"] == 0


def test_check_tells_errors_with_places(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE ROLE r;\nCREATE USER u ROLES (rr);\n")
    out = say(capsys, "check", str(tmp_path), status=1)
    assert f"{tmp_path / 'a.sql'}:2:22: error[" in out
    assert "  2 | CREATE USER u ROLES (rr);\n    |                      ^^\n" in out
    assert out.endswith(": 1 error, 0 warnings\n")
    (found,) = read(capsys, "check", str(tmp_path), status=1)["diagnostics"]
    place = {key: found[key] for key in ("severity", "line", "column", "text")}
    assert place == {"severity": "error", "line": 2, "column": 22, "text": "rr"}


def test_check_warns_at_the_name_and_is_done(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE ROLE lonely;\n")
    report = read(capsys, "check", str(tmp_path))
    assert report["errors"] == 0
    assert report["warnings"] == len(report["diagnostics"]) > 0
    texts = {each["code"]: each["text"] for each in report["diagnostics"]}
    assert texts.pop("empty-catalog") is None
    assert set(texts.values()) == {"lonely"}
    assert "a.sql:1:13: warning[" in say(capsys, "check", str(tmp_path))


def test_explain_json_has_the_form_of_the_contract(capsys: Capture) -> None:
    found = explain(capsys, "paul", "SELECT SID, ts FROM Health")
    assert found["decision"] == "partial"
    assert found["grants"] == ["own_health"]
    (notice,) = found["notices"]
    assert set(notice) == {"code", "kind", "message", "witness"}
    assert notice["code"] == "PR"
    assert set(notice["witness"]) == {"SID", "ts"}
    assert isinstance(notice["witness"]["ts"], str)
    assert found["count"] == {"total": 1, "valid": 1}
    assert [graph["grants"] for graph in found["graphs"]] == [["own_health"]]
    assert {each["grant"] for each in found["reasons"]} == {
        "near_target",
        "others_avg",
        "own_health",
        "own_platoon",
    }


def test_explain_lists_as_many_graphs_as_asked(capsys: Capture) -> None:
    found = explain(capsys, "paul", JOIN, "--graphs", "1")
    assert len(found["graphs"]) == 1
    assert found["count"]["total"] == 2
    assert "… and 1 more" in say(capsys, "explain", SOLDIERS, "--as", "paul", JOIN, "--graphs", "1")


def test_explain_tells_why_a_graph_is_invalid(capsys: Capture) -> None:
    found = explain(capsys, "paul", "SELECT SID FROM Position WHERE Platoon = 'X'")
    assert found["decision"] == "empty"
    (graph,) = found["graphs"]
    assert (graph["valid"], graph["graph"]) == (False, None)
    assert "`own_platoon`" in graph["reason"]
    text = say(capsys, "explain", SOLDIERS, "--as", "paul", "SELECT SID FROM Position WHERE Platoon = 'X'")
    assert "0 valid of 1" in text
    assert "invalid: `own_platoon`" in text


@pytest.mark.parametrize(
    ("user", "said"), [("olga", "no grant lets `olga`"), ("eve", "the catalog has no user `eve`")]
)
def test_explain_of_a_denied_query_is_1_and_has_no_plan(capsys: Capture, user: str, said: str) -> None:
    found = explain(capsys, user, "SELECT SID FROM Health", status=1)
    assert (found["decision"], found["grants"], found["plan"], found["graphs"]) == ("deny", [], None, [])
    assert said in found["notices"][0]["message"]
    text = say(capsys, "explain", SOLDIERS, "--as", user, "SELECT SID FROM Health", status=1)
    assert f"DENY  `{user}` may not run the query" in text
    assert said in text


def test_explain_tells_no_grants_of_others_and_no_facts(capsys: Capture) -> None:
    text = say(capsys, "explain", SOLDIERS, "--as", "cole", "SELECT SID, Pos FROM Position")
    text += say(capsys, "explain", SOLDIERS, "--as", "paul", JOIN)
    shown = explain(capsys, "paul", JOIN)
    assert "whole_avg" not in text
    assert "100" not in text + json.dumps([shown["plan"], shown["graphs"], shown["notices"]])


def test_explain_for_people(capsys: Capture) -> None:
    text = say(
        capsys, "explain", SOLDIERS, "--as", "paul", "SELECT SID, ts FROM Health WHERE BPressure > 160"
    )
    for part in (
        "PARTIAL  `paul` may have a part of what the query asks for",
        "  ✓ own_health   its view stands above the source",
        "  ✗ own_platoon  not used: it is on `Position`, which the query does not read",
        "  PR  tuples that the query asks for are withheld (rows)\n      for example BPressure = 161",
        "The query as asked\n  π Health.SID, Health.ts\n  └─ σ Health.BPressure > 160",
        "σ Health.Platoon = 'X'   ◂ own_health",
        "1 valid of 1\n   1  own_health",
    ):
        assert part in text
    assert "\x1b" not in text


def test_explain_says_that_a_tuple_s_own_policy_counts_too(capsys: Capture) -> None:
    query = "SELECT Patient_id FROM HeartRate"
    assert "`HeartRate` is punctuated" in say(
        capsys, "explain", str(EXAMPLES / "hospital"), "--as", "chen", query
    )


def test_explain_reads_a_query_from_a_file(capsys: Capture) -> None:
    folder = EXAMPLES / "wearables"
    found = read(capsys, "explain", str(folder), "--as", "bob", str(folder / "cq2.query"), status=1)
    assert found["decision"] == "deny"


def test_who(capsys: Capture) -> None:
    found = read(capsys, "who", SOLDIERS, "Health.BPressure")
    assert (found["stream"], found["attribute"]) == ("Health", "BPressure")
    assert {(each["principal"], each["grant"]) for each in found["entries"]} == {
        (user, grant) for user in ("paul", "rita") for grant in ("own_health", "near_target")
    }
    text = say(capsys, "who", SOLDIERS, "Health.BPressure")
    assert "`Health.BPressure` can be seen by 2 users" in text
    assert "paul (Doctor)  own_health" in text


def test_who_reads_names_with_dots(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text('CREATE STREAM "a.b" (ts TIMESTAMP, "c.d" INT) TIMESTAMP BY ts;\n')
    assert say(capsys, "who", str(tmp_path), "a.b.c.d") == "nobody can see `a.b.c.d`\n"
    assert say(capsys, "who", str(tmp_path), "a.b") == "nobody can see `a.b`\n"


def test_translate(capsys: Capture) -> None:
    assert main(["translate", SOLDIERS, "--as", "paul", "SELECT SID FROM Health", "--to", "duckdb"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("WITH ")
    assert "'X'" in out
    assert err == "PR: tuples that the query asks for are withheld\n"


@pytest.mark.parametrize("engine", ["interpreter", "reference", "duckdb"])
@pytest.mark.parametrize("folder", sorted(EXAMPLES.iterdir()), ids=lambda folder: folder.name)
def test_the_examples_hold(capsys: Capture, folder: Path, engine: str) -> None:
    report = read(capsys, "test", str(folder), "--engine", engine)
    assert report["failed"] == 0
    assert report["passed"] == len(report["cases"]) > 0


WRONG = """
name: wrong
catalog: |
  CREATE STREAM S (ts TIMESTAMP, id STRING, v INT) TIMESTAMP BY ts;
  CREATE USER u;
  CREATE GRANT g READ (ts, id) ON S WHERE v > 1 TO USER u;
input:
  S: [{ts: "2026-01-01T00:00:00", id: a, v: 1}, {ts: "2026-01-01T00:00:01", id: b, v: 2}]
cases:
- {name: right, user: u, query: "SELECT id FROM S", rows: [{id: b}], decision: partial, witness_attributes: [id]}
- {name: rows, user: u, query: "SELECT ts FROM S", rows: [{ts: "2026-01-01T00:00:00"}]}
- {name: decision, user: u, query: "SELECT id FROM S", decision: permit, grants: [h], notices: [NR], graphs: 7}
- {name: witness, user: u, query: "SELECT id FROM S", witness_attributes: []}
- {name: no error, user: u, query: "SELECT id FROM S", error: order-by}
- {name: wrong place, user: u, query: "SELECT id FROM S LIMIT 1", error: limit, at: S}
- {name: error, user: u, query: "SELECT id FROM T", rows: []}
"""


def test_failing_policy_tests_are_told_as_differences(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "a.test.yaml").write_text(WRONG)
    text = say(capsys, "test", str(tmp_path), status=1)
    for part in (
        "FAILED a.test.yaml: rows\n  u asks: SELECT ts FROM S\n  rows\n",
        "    - expected: {ts: 2026-01-01T00:00:00}\n    + got:      {ts: 2026-01-01T00:00:01}\n",
        "  decision\n    expected: permit\n    got:      partial\n",
        "  grants\n    expected: h\n    got:      g\n",
        "  notices\n    expected: NR, PR\n    got:      PR\n",
        "  graphs\n    expected: 7\n    got:      1\n",
        "  witness_attributes\n    expected: none\n    got:      id\n",
        "    expected: order-by\n    got:      the query is read\n",
        "    expected: limit at `S`\n    got:      limit at `LIMIT",
        "error[unknown-stream]: unknown stream `T`",
    ):
        assert part in text
    assert text.endswith("\n1 passed, 6 failed\n")
    report = read(capsys, "test", str(tmp_path), status=1)
    assert (report["passed"], report["failed"]) == (1, 6)
    assert [case["name"] for case in report["cases"] if case["passed"]] == ["right"]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A measurement that takes no time."""
    module = ModuleType("sluicegate.bench.nothing")
    vars(module).update(NAME="nothing", SUMMARY="how long nothing takes")
    vars(module).update(run=lambda json, out, quick: {"quick": quick, "sizes": [{"n": 1, "ratio": 1.0}]})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr("sluicegate.cli.bench.find_benchmarks", lambda: {"nothing": module})
    return module


@pytest.mark.usefixtures("benchmark")
def test_bench_lists_and_runs(capsys: Capture) -> None:
    assert say(capsys, "bench") == "nothing  how long nothing takes\n"
    assert read(capsys, "bench") == {"nothing": "how long nothing takes"}
    assert read(capsys, "bench", "nothing", "--quick") == {"quick": True, "sizes": [{"n": 1, "ratio": 1.0}]}
    assert say(capsys, "bench", "nothing") == "quick: false\nsizes\n  n  ratio\n  1  1.0\n"


def test_demo_shows_three_answers(capsys: Capture) -> None:
    text = say(capsys, "demo", "--explain")
    paul, cole, olga = (text.index(f"`{user}` may have") for user in ("paul", "cole", "olga"))
    assert paul < cole < olga
    assert "80.0     2026-01-01T11:00:00  2026-01-01T12:00:00  others_avg" in text[paul:cole]
    assert "◂ own_platoon" in text[paul:cole]
    assert "52.5     2026-01-01T11:00:00  2026-01-01T12:00:00\n" in text[cole:olga]
    assert "52.5     2026-01-01T11:00:00  2026-01-01T12:00:00  whole_avg" in text[olga:]


def test_explain_tells_an_owner_which_punctuations_hide_what(capsys: Capture) -> None:
    folder = EXAMPLES / "hospital"
    asked = (
        "SELECT Beats_per_min FROM HomeMonitor",
        "--input",
        f"HomeMonitor={folder / 'homemonitor.jsonl'}",
    )
    found = read(capsys, "explain", str(folder), "--as", "acme", *asked)
    (policies,) = found["policies"]
    assert policies == {
        "stream": "HomeMonitor",
        "shown": 0,
        "denied": {},
        "hidden": [
            {"why": "role", "by": "+frbac:FamilyDoctor", "tuples": 1},
            {"why": "sign", "by": "-frbac:Insurer", "tuples": 4},
        ],
        "left_out": [],
    }
    assert "policies" not in read(capsys, "explain", str(folder), "--as", "acme", asked[0])
    text = say(
        capsys, "explain", str(folder), "--as", "dora", "SELECT Patient_id FROM HeartRate",
        "--input", f"HeartRate={folder / 'heartrate.jsonl'}",
    )  # fmt: skip
    assert "       1  shown to nobody: no-policy\n       2  hidden (role) by +frbac:Cardiologist\n" in text


def test_who_reads_what_a_result_states(capsys: Capture) -> None:
    found = read(capsys, "who", str(EXAMPLES / "hospital"), "Consult")["entries"]
    assert [(each["principal"], each["kind"], each["attributes"]) for each in found] == [
        ("chen", "stated", ["Beats_per_min", "Patient_id", "ts"])
    ]
    through = read(capsys, "who", str(EXAMPLES / "hospital"), "HeartRate.Beats_per_min")["entries"]
    assert [(each["principal"], each["through"]) for each in through if each["kind"] == "stated"] == [
        ("chen", "Consult")
    ]

"""How policy and query are put together: `merge` and `on_partial` in the library, on the command line and in the settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.api import Denied, Gate
from sluicegate.cli.main import main
from sluicegate.errors import DiagnosticError
from sluicegate.expr.text import to_text
from sluicegate.graph.interpret import run
from sluicegate.graph.operators import Project, Select, Source, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.load import read_catalog
from sluicegate.policy.environment import environment
from sluicegate.rewrite.manner import Manner, Merge, OnPartial
from sluicegate.rewrite.merge_filters import list_merged, merge_filters
from sluicegate.rewrite.notices import Decision
from sluicegate.runtime.network.authorize import authorize
from sluicegate.runtime.network.graphs import Graphs
from sluicegate.service.decisions import explain_query
from sluicegate.service.settings import read_settings

GATE = Gate(
    read_catalog("""
CREATE STREAM weather (samplingtime TIMESTAMP, rainrate DOUBLE, windspeed DOUBLE) TIMESTAMP BY samplingtime;
CREATE USER lta; CREATE USER reader;
CREATE GRANT rain AGGREGATE (AVG(rainrate)) ON weather WHERE rainrate > 5 NARROW BY (rainrate)
  WINDOW AT LEAST 5 ROWS STEP AT LEAST 2 ROWS TO USER lta;
CREATE GRANT seen READ (rainrate, windspeed) ON weather WHERE rainrate > 5 AND windspeed < 9 TO USER reader;
""")
)
FINER = "SELECT AVG(rainrate) FROM weather [ROWS 3 SLIDE 2] WHERE rainrate > 5"
WHOLE = "SELECT AVG(rainrate) FROM weather [ROWS 5 SLIDE 2] WHERE rainrate > 5"


def test_a_finer_window_is_widened_or_refused() -> None:
    assert GATE.explain("lta", FINER).decision is Decision.PARTIAL
    refused = GATE.explain("lta", FINER, merge="paper")
    assert (refused.decision, [each.code for each in refused.notices]) == (Decision.EMPTY, ["NR"])
    assert "finer than it allows" in refused.grants[0].reason
    assert GATE.authorize("lta", FINER, merge="paper").plan is None
    assert GATE.explain("lta", WHOLE, merge="paper").decision is Decision.PERMIT


def test_a_part_is_given_or_refused() -> None:
    assert GATE.authorize("lta", FINER).decision is Decision.PARTIAL
    with pytest.raises(Denied, match="parts are not given here"):
        GATE.authorize("lta", FINER, on_partial="refuse")
    told = GATE.explain("lta", FINER, on_partial="refuse")
    assert (told.decision, [each.code for each in told.notices]) == (Decision.DENY, ["DENY", "PR"])
    assert GATE.authorize("lta", WHOLE, on_partial="refuse").decision is Decision.PERMIT


@pytest.mark.parametrize("options", [{"merge": "both"}, {"on_partial": "maybe"}])
def test_unknown_manners_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(DiagnosticError, match="unknown-manner"):
        GATE.authorize("lta", WHOLE, **options)


def test_the_engine_and_the_gateway_decide_alike() -> None:
    paper, strict = Manner(Merge.PAPER), Manner(on_partial=OnPartial.REFUSE)
    assert authorize(GATE.catalog, "lta", FINER).notices
    for manner in (paper, strict):
        with pytest.raises(DiagnosticError) as caught:
            Graphs(manner=manner).authorize(GATE.catalog, "lta", FINER)
        code = "nothing-to-run" if manner is paper else "denied"
        assert caught.value.diagnostics[0].code == code
        assert explain_query(GATE.catalog, "lta", FINER, 0, manner).decision is not Decision.PARTIAL


def test_the_commands_take_them(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "examples/weather",
        "--as",
        "lta",
        "SELECT AVG(rainrate) FROM weather [ROWS 3 SLIDE 2] WHERE rainrate > 5",
    ]
    assert main(["explain", *asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decision"] == "partial"
    assert main(["explain", *asked, "--json", "--merge", "paper"]) == 0
    assert json.loads(capsys.readouterr().out)["decision"] == "empty"
    assert main(["explain", *asked, "--on-partial", "refuse"]) == 1
    assert main(["translate", *asked, "--to", "streamsql", "--on-partial", "refuse"]) == 1


def test_the_settings_have_them(tmp_path: Path) -> None:
    assert read_settings(environment={}).manner == Manner()
    path = tmp_path / "s.toml"
    path.write_text('merge = "paper"\non_partial = "refuse"\n', encoding="utf-8")
    assert read_settings(path, {}).manner == Manner(Merge.PAPER, OnPartial.REFUSE)
    for name in ("merge", "on_partial"):
        with pytest.raises(DiagnosticError, match=name):
            read_settings(None, {f"SLUICEGATE_{name.upper()}": "x"})


def plan_of(user: str, query: str) -> AuthorizedPlan:
    plan = GATE.authorize(user, query).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("user", "query", "condition"),
    [
        ("lta", "SELECT AVG(rainrate) FROM weather [ROWS 10 SLIDE 2] WHERE rainrate > 50", "weather.rainrate > 50"),
        ("lta", "SELECT AVG(rainrate) FROM weather [ROWS 10 SLIDE 2] WHERE rainrate > 4", "weather.rainrate > 5"),
        ("reader", "SELECT rainrate FROM weather WHERE windspeed < 3 AND rainrate > 2", "weather.rainrate > 5 AND weather.windspeed < 3"),
        ("reader", "SELECT rainrate FROM weather WHERE windspeed > 3", "weather.rainrate > 5 AND weather.windspeed < 9 AND weather.windspeed > 3"),
    ],
)  # fmt: skip
def test_conditions_are_merged_without_what_follows_from_the_rest(
    user: str, query: str, condition: str
) -> None:
    (merged,) = list_merged(plan_of(user, query))
    assert to_text(merged.condition) == condition


def test_merging_keeps_the_rows_and_the_plan_that_runs() -> None:
    plan = plan_of("reader", "SELECT rainrate FROM weather WHERE windspeed < 3 AND rainrate > 2")
    merged = merge_filters(plan)
    rows = [
        {"samplingtime": 0, "rainrate": r, "windspeed": w} for r in (1.0, 6.0, None) for w in (2.0, 4.0, None)
    ]
    env = environment(GATE.catalog, "reader")
    assert run(plan.root, {"weather": rows}, env) == run(merged.root, {"weather": rows}, env)
    assert sum(isinstance(node, Select) for node in walk(merged.root)) == 1
    below = [node.input for node in walk(plan.root) if isinstance(node, Select | Project)]
    assert any(isinstance(node, Source) for node in below)
    assert [node.by for node in walk(plan.root) if isinstance(node, Select)] == [("seen",), ()]

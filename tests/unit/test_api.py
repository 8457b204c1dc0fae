"""The library as its users see it."""

from __future__ import annotations

from pathlib import Path

import pytest

import sluicegate
from sluicegate.language.load import read_catalog
from sluicegate.policy.environment import environment
from sluicegate.rewrite.notices import Decision

EXAMPLES = Path(__file__).parents[2] / "examples"
QUERY = "SELECT SID FROM Health"


@pytest.fixture(scope="module")
def gate() -> sluicegate.Gate:
    return sluicegate.open(EXAMPLES / "soldiers")


def test_exported_names() -> None:
    assert set(sluicegate.__all__) <= set(dir(sluicegate))
    assert [name for name in sluicegate.__all__ if getattr(sluicegate, name, None) is None] == []
    with pytest.raises(AttributeError, match="nonsense"):
        sluicegate.nonsense  # noqa: B018


def test_explain(gate: sluicegate.Gate) -> None:
    found = gate.explain("paul", QUERY)
    assert (found.decision, found.used) == (Decision.PARTIAL, ("own_health",))


def test_authorize_and_translate(gate: sluicegate.Gate) -> None:
    allowed = gate.authorize("paul", QUERY)
    assert allowed.decision is Decision.PARTIAL
    assert allowed.plan is not None
    assert "'X'" in allowed.translate("duckdb")
    with pytest.raises(sluicegate.DiagnosticError, match="known targets are `ccl`, `duckdb`"):
        allowed.translate("oracle")


@pytest.mark.parametrize(("user", "said"), [("olga", "no grant lets `olga`"), ("eve", "has no user `eve`")])
def test_denied_is_raised(gate: sluicegate.Gate, user: str, said: str) -> None:
    with pytest.raises(sluicegate.Denied, match=said) as caught:
        gate.authorize(user, QUERY)
    assert caught.value.user == user
    assert gate.explain(user, QUERY).decision is Decision.DENY


def test_a_disabled_user_is_denied_and_told_so() -> None:
    text = """
        CREATE STREAM S (ts TIMESTAMP, v INT) TIMESTAMP BY ts; CREATE USER u SET (x = 1);
        CREATE GRANT g READ (*) ON S TO USER u; ALTER USER u DISABLE;"""
    catalog = read_catalog(text)
    with pytest.raises(sluicegate.Denied, match="user `u` is disabled"):
        sluicegate.Gate(catalog).authorize("u", "SELECT v FROM S")
    assert environment(catalog, "u").profile == {}


def test_nothing_comes_back_without_a_plan(gate: sluicegate.Gate) -> None:
    allowed = gate.authorize("olga", "SELECT MAX(Pos) FROM Position [RANGE 1 HOUR]")
    assert (allowed.decision, allowed.plan) == (Decision.EMPTY, None)
    with pytest.raises(sluicegate.DiagnosticError, match="nothing to translate"):
        allowed.translate("duckdb")


def test_who_and_check(gate: sluicegate.Gate) -> None:
    assert {entry.principal for entry in gate.who("Health", "BPressure")} == {"paul", "rita"}
    assert all(each.span is not None for each in gate.check())


def test_a_bad_catalog_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "b.sql").write_text("CREATE USER u ROLES (nobody_s);")
    (tmp_path / "a.sql").write_text("CREATE USER v ROLES (nobody_s);")
    with pytest.raises(sluicegate.DiagnosticError):
        sluicegate.open(tmp_path)
    places = [str(each.span) for each in sluicegate.check(tmp_path)]
    assert places == [f"{tmp_path / name}:1:22" for name in ("a.sql", "b.sql")]


def test_environment_has_profile_and_facts_and_nothing_that_moves() -> None:
    catalog = sluicegate.open(EXAMPLES / "ships").catalog
    env = environment(catalog, "vega")
    assert env.profile == {"SID": 563012345}
    assert env.facts["fleet", ("acme",)] == frozenset({563012345, 563067890})
    assert environment(catalog, "eve").profile == {}

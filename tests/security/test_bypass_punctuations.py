"""Ways around policies that travel with the data, by the numbers of the list of bypasses."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sluicegate.expr.nodes import Literal, Value
from sluicegate.graph.interpret import POLICY, result_rows, run
from sluicegate.graph.operators import Shield, walk
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.classes import make_class
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Role, User
from sluicegate.policy.verdict import mask_attributes, standing_of
from sluicegate.policy.who import Who, write_who
from sluicegate.rewrite.explain import explain
from sluicegate.testing.corpus import load_corpus
from sluicegate.testing.masks import add_masks
from sluicegate.testing.oracle import expected
from sluicegate.testing.random_elements import ROLES, random_sequence

WORLD = """
name: punctuated
catalog: |
  CREATE STREAM S (ts TIMESTAMP, id INT, v INT) TIMESTAMP BY ts WATERMARK '5 seconds' OWNER clinic PUNCTUATED BY id%s;
  CREATE ROLE D;
  CREATE ROLE N;
  CREATE USER u ROLES (D);
  CREATE USER n ROLES (N);
  CREATE USER clinic;
  CREATE USER d1 SET (id = 1);
  CREATE USER d2 SET (id = 2);
  CREATE GRANT s READ (*) ON S TO D;
  CREATE GRANT f1 APPEND ON S WHERE id = self.id TO USER d1;
  CREATE GRANT f2 APPEND ON S WHERE id = self.id TO USER d2;
input:
  S:
%s
cases:
- name: one
  user: u
  query: SELECT v FROM S
"""
QUERIES = (
    "SELECT v FROM S",
    "SELECT COUNT(*) AS k FROM S [RANGE 1 MINUTE]",
    "SELECT a.v FROM S AS a [RANGE 1 MINUTE] JOIN S AS b [RANGE 1 MINUTE] ON a.id = b.id",
    "SELECT v FROM S UNION ALL SELECT id AS v FROM S",
)


def sp(sender: str | None = None, **parts: Any) -> str:
    given = {"ddp": '{tuples: "*"}', "srp": "[D]", "ts": "'2026-01-01T10:00:00'", "sn": 1} | parts
    inner = ", ".join(f"{name}: {value}" for name, value in given.items())
    return f"  - _sp: {{{inner}}}" + (f"\n    _sender: {sender}" if sender else "")


def tuple_(v: int, at: str = "10:00:01", named: str = "10:00:00", count: int = 1, **more: Any) -> str:
    given = {
        "ts": f"'2026-01-01T{at}'",
        "id": 1,
        "v": v,
        "_sp_ts": f"'2026-01-01T{named}'",
        "_sp_count": count,
    }
    return "  - {" + ", ".join(f"{name}: {value}" for name, value in (given | more).items()) + "}"


def ask(tmp_path: Path, elements: list[str], query: str = QUERIES[0], options: str = "") -> list[Value]:
    """What the interpreter gives, which the model must give too: the values of the rows."""
    path = tmp_path / "world.yaml"
    path.write_text(WORLD % (options, "\n".join(elements)))
    (case,) = load_corpus(path)[0].cases
    catalog = case.load_catalog()
    asked, data = read_query(query, catalog), case.typed_input(catalog)
    plan = explain(catalog, "u", asked.root, limit=0).draft.plan
    assert plan is not None
    rows = run(plan.root, add_masks(catalog, plan, data), environment(catalog, "u"))
    found = result_rows(rows, plan.outputs, plan.label)
    model = expected(catalog, "u", asked.root, asked.outputs, data).rows
    assert sorted(map(str, found)) == sorted(map(str, model))
    return [next(iter(row.values())) for row in found]


def test_19_whoever_stands_otherwise_asks_otherwise() -> None:
    """All pairs of role sets: a shield may be shared only where what it is asked is the same text, and so are all verdicts."""
    roles = {name: Role(name, ("Doctor",) if name == "Surgeon" else ()) for name in ROLES}
    sets = [chosen for size in range(len(ROLES) + 1) for chosen in combinations(ROLES, size)]
    standings = [standing_of(Catalog(roles=roles, users={"u": User("u", held)}), "u") for held in sets]
    policies = [
        make_class([each.punctuation], immutable=False)
        for seed in range(40)
        for each in random_sequence(Random(seed)).elements
        if each.punctuation is not None
    ]
    masks = [[mask_attributes(policy, (), each, ["v"]) for policy in policies] for each in standings]
    told = [write_who(Who(each)) for each in standings]
    for left, right in product(range(len(sets)), repeat=2):
        assert (told[left] == told[right]) == (standings[left] == standings[right])
        assert told[left] != told[right] or masks[left] == masks[right]
    assert len(set(told)) > 10


@pytest.mark.parametrize("query", QUERIES)
def test_22_tuples_before_the_first_punctuation(tmp_path: Path, query: str) -> None:
    assert ask(tmp_path, [tuple_(1), tuple_(2, count=0)], query) == []
    assert ask(tmp_path, [tuple_(1), sp()], query) == []


@pytest.mark.parametrize("query", QUERIES)
def test_22_an_operator_that_holds_no_policy_lets_nothing_through(query: str) -> None:
    catalog = read_catalog(
        "CREATE STREAM S (ts TIMESTAMP, id INT, v INT) TIMESTAMP BY ts PUNCTUATED BY id; CREATE ROLE D;"
        "CREATE USER u ROLES (D); CREATE GRANT s READ (*) ON S TO D;",
        folder=Path(),
    )
    plan = explain(catalog, "u", read_query(query, catalog).root, limit=0).draft.plan
    assert plan is not None
    assert any(isinstance(node, Shield) for node in walk(plan.root))
    row = {"ts": 0, "id": 1, "v": 1}
    (asks,) = {node.who for node in walk(plan.root) if isinstance(node, Shield)}
    assert isinstance(asks, Literal)
    nothing = {"ts": 0, "id": 0, "v": 0}
    for policy in (
        {},
        {POLICY: None},
        {POLICY: {}},
        {POLICY: {asks.value: nothing}},
        {POLICY: {"": nothing}},
    ):
        assert run(plan.root, {"S": [row | policy]}) == []


@pytest.mark.parametrize("query", QUERIES)
def test_23_a_tuple_that_comes_late_has_the_policy_of_its_own_time(tmp_path: Path, query: str) -> None:
    """It is not shown under the policy in force when it comes, nor when the watermark has passed it."""
    newer = sp(srp="[D]", ts="'2026-01-01T10:00:10'")
    older = sp(srp="[N]", ts="'2026-01-01T10:00:00'")
    late = tuple_(7, at="10:00:03", named="10:00:10")
    assert ask(tmp_path, [older, newer, late], query, " ORDER ANY") == []
    passed = [sp(), tuple_(1, at="10:00:30", named="10:00:20"), tuple_(2, at="10:00:01")]
    assert ask(tmp_path, passed, query, " ORDER ANY") == []


def test_27_forged_punctuations_open_nothing(tmp_path: Path) -> None:
    mine = tuple_(1, _sender="d1")
    for forged in (
        sp("d2"),
        sp("d2", ddp="{tuples: 1}"),
        sp("d2", ddp="{tuples: {closed: [1, 2]}}"),
        sp("u"),
        sp("nobody"),
    ):
        assert ask(tmp_path, [forged, mine]) == []
    assert ask(tmp_path, [sp("d1"), mine]) == [1]
    assert ask(tmp_path, [sp("clinic"), mine]) == [1]


def test_27_forged_punctuations_close_nothing(tmp_path: Path) -> None:
    later = {"ts": "'2026-01-01T10:00:01'", "srp": "[N]"}
    mine = tuple_(1, at="10:00:02", _sender="d1")
    assert ask(tmp_path, [sp("d1"), sp("d2", **later), mine]) == [1]
    assert ask(tmp_path, [sp("d1"), sp("d1", **later), mine]) == []


@pytest.mark.parametrize("count", [1, 2, 3])
def test_27_half_a_policy_is_none(tmp_path: Path, count: int) -> None:
    """Whatever the tuple says of it: the negative half may be the one that is lost."""
    whole = [sp(), sp(sn=2), sp(sn=3, srp="[N]", sign="'-'")]
    for lost in range(3):
        torn = [each for at, each in enumerate(whole) if at != lost]
        found = ask(tmp_path, [*torn, tuple_(1, count=count)])
        assert found == ([1] if lost == 2 and count == 2 else [])
    assert ask(tmp_path, [*whole, tuple_(1, count=count)]) == ([1] if count == 3 else [])

"""Two policies with random obligations: what they give together is never more than what either gives alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from sluicegate.api import Denied, Gate
from sluicegate.expr.nodes import Value
from sluicegate.expr.solve import implies
from sluicegate.expr.text import write_string
from sluicegate.graph.interpret import result_rows, run
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.xacml.decisions import decide_stream
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Grant, Privilege
from sluicegate.source import SourceText
from sluicegate.testing.stream_policies import write_stream_policy

BASE = read_catalog("CREATE USER u; CREATE STREAM S (ts TIMESTAMP, a INT, b INT, c INT) TIMESTAMP BY ts;")
FUNCTIONS = ("avg", "max", "min", "count", "sum", "lastval", "firstval")
ROUNDS = 400


def draw_filter(rng: Random) -> str:
    one, two = (
        f"{rng.choice('abc')} {rng.choice(('<', '>', '=', '<>', '<=', '>='))} {rng.randint(0, 3)}"
        for _ in "12"
    )
    return rng.choice((one, f"{one} AND {two}", f"{one} OR {two}", f"NOT ({one})", f"{one} OR {two} IS NULL"))


def draw_policy(rng: Random, id_: str, kind: str) -> dict[str, Any]:
    made: dict[str, Any] = {"id": id_, "stream": "S", "user": "u"}
    if rng.random() < 0.6:
        made["filter"] = [draw_filter(rng) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.5:
        made["map"] = rng.sample(("ts", "a", "b", "c"), rng.randint(1, 4))
    if kind != "read" and rng.random() < 0.8:
        functions = [f"{name}:{each}" for name in "abc" for each in FUNCTIONS if rng.random() < 0.7]
        functions.append("a:avg")
        size, step = rng.randint(1, 4), rng.randint(1, 4)
        made["window"] = {"type": kind, "size": size, "step": step, "functions": functions}
    return made


def add(*policies: dict[str, Any]) -> Catalog:
    text = "".join(
        f"CREATE POLICY '{each['id']}' AS {write_string(write_stream_policy(each))};" for each in policies
    )
    return apply(BASE, parse_statements(SourceText("<policies>", text)))


def draw_rows(rng: Random) -> list[dict[str, Value]]:
    return [
        {"ts": at * 1_000_000, **{name: rng.choice((None, 0, 1, 2, 3)) for name in "abc"}} for at in range(12)
    ]


def ask(catalog: Catalog, query: str, rows: list[dict[str, Value]]) -> list[dict[str, Value]] | None:
    """None where it is denied."""
    try:
        asked = Gate(catalog).authorize("u", query)
    except Denied:
        return None
    if asked.plan is None:
        return []
    return result_rows(run(asked.plan.root, {"S": rows}, asked.environment), asked.plan.outputs, None)


def shown(rows: list[dict[str, Value]] | None) -> set[tuple[Value, tuple[str, Value]]]:
    """Each value with the time of its tuple."""
    return {
        (row.get("ts"), (name, value)) for row in rows or () for name, value in row.items() if name != "ts"
    }


@pytest.mark.parametrize("seed", range(4))
def test_tuples_are_shown_only_where_each_policy_alone_shows_them(seed: int) -> None:
    rng = Random(seed)
    given = 0
    for _ in range(ROUNDS // 4):
        one, two = (draw_policy(rng, id_, "read") for id_ in "pq")
        for each in (one, two):
            if "map" in each and "ts" not in each["map"]:
                each["map"].append("ts")
        rows = draw_rows(rng)
        query = "SELECT ts, a, b, c FROM S"
        together = ask(add(one, two), query, rows)
        for each in (one, two):
            alone = ask(add(each), query, rows)
            assert together is None or alone is not None
            assert shown(together) <= shown(alone)
        given += len(together or ())
    assert given > 100


@pytest.mark.parametrize("seed", range(4))
def test_a_grant_of_two_policies_is_within_that_of_each(seed: int) -> None:
    rng = Random(seed)
    given = 0
    for _ in range(ROUNDS // 2):
        kind = rng.choice(("tuple", "time"))
        one, two = (draw_policy(rng, id_, kind) for id_ in "pq")
        together = decide_stream(add(one, two), "u", "S").grant
        if together is None:
            continue
        given += 1
        for each in (one, two):
            alone = decide_stream(add(each), "u", "S").grant
            assert alone is not None
            check_within(together, alone)
    assert given > 50


def check_within(together: Grant, alone: Grant) -> None:
    assert implies(together.predicate, alone.predicate)
    if alone.privilege is Privilege.READ:
        # tuples that may be seen may be aggregated
        seen = set(alone.attributes)
        assert {*together.attributes, *together.narrow_by} <= seen
        assert {each.attribute for each in together.rights} <= seen
        return
    assert together.privilege is Privilege.AGGREGATE
    assert set(together.rights) <= set(alone.rights)
    assert together.least is not None
    assert alone.least is not None
    assert together.least.rows == alone.least.rows
    assert together.least.size >= alone.least.size
    assert together.least.step >= alone.least.step


@pytest.mark.parametrize("seed", range(4))
def test_a_query_of_windows_is_answered_only_where_each_policy_alone_answers(seed: int) -> None:
    rng = Random(seed)
    given = 0
    for _ in range(ROUNDS // 4):
        kind = rng.choice(("tuple", "time"))
        one, two = (draw_policy(rng, id_, kind) for id_ in "pq")
        window = "[ROWS 4]" if kind == "tuple" else "[RANGE 4 SECONDS]"
        query, rows = f"SELECT AVG(a) AS v FROM S {window}", draw_rows(rng)
        together = ask(add(one, two), query, rows)
        for each in (one, two):
            assert not together or ask(add(each), query, rows) is not None
        raw = ask(add(one, two), "SELECT a FROM S", rows)
        assert raw is None or ("window" not in one and "window" not in two)
        given += len(together or ())
    assert given > 20


def test_windows_of_two_kinds_give_nothing() -> None:
    rng = Random(7)
    for _ in range(30):
        one, two = draw_policy(rng, "p", "tuple"), draw_policy(rng, "q", "time")
        if "window" in one and "window" in two:
            for window in ("[ROWS 9]", "[RANGE 9 SECONDS]"):
                assert ask(add(one, two), f"SELECT AVG(a) AS v FROM S {window}", draw_rows(rng)) is None

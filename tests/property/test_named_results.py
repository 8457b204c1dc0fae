"""Named results of random queries: with a full grant a reader gets what the maker gets, and no reader gets anything else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from counters import record_cases
from sluicegate.expr.nodes import Value
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Stream
from sluicegate.testing.case_results import READER, ask_result, name_result, random_reading, select_all
from sluicegate.testing.cases import Case, describe, random_case
from sluicegate.testing.differential import as_bag, authorize, interpret
from sluicegate.testing.duckdb_run import run_duckdb
from sluicegate.testing.oracle import expected


def read_rows(case: Case, user: str, query: str, engine: str) -> list[dict[str, Value]]:
    """What a user gets of a query over the result."""
    over = ask_result(case, user, query)
    if engine == "model":
        return expected(over.catalog, user, over.root, over.outputs, over.data).rows
    plan = authorize(over)
    if plan is None or engine == "interpreter":
        return interpret(over, plan)
    return run_duckdb(plan, over.data, over.catalog.streams, environment(over.catalog, user))


def as_tuples(stream: Stream, rows: Iterable[dict[str, Value]]) -> list[dict[str, Value]]:
    """Rows of a result as tuples of its stream: what is withheld is NULL, one without event time is none."""
    made = []
    for row in rows:
        end = row.get("window_end")
        known = {**row, "window_time": end - 1} if isinstance(end, int) else row
        made.append({f"c {name}": known.get(name) for name, _ in stream.attributes})
    return [row for row in made if stream.event_time is None or row[f"c {stream.event_time}"] is not None]


@pytest.mark.parametrize("engine", ["interpreter", "duckdb", "model"])
def test_a_full_grant_gives_what_the_maker_gets(engine: str) -> None:
    ran = with_rows = 0
    for number in range(400):
        case = name_result(random_case(Random(3_000_000 + number)))
        if case is None:
            continue
        wanted = as_tuples(case.catalog.streams["R"], interpret(case, authorize(case)))
        found = read_rows(case, READER, select_all(case), engine)
        assert as_bag(found) == as_bag(wanted), f"case {number}\n{describe(case)}"
        ran += 1
        with_rows += bool(wanted)
    record_cases(f"named results, {engine}", ran, with_rows)
    assert with_rows > 100


def test_readers_get_what_the_model_gives_them() -> None:
    ran = with_rows = 0
    for number in range(400):
        rng = Random(5_000_000 + number)
        case = name_result(random_case(rng))
        if case is None:
            continue
        query, user = random_reading(rng, case), rng.choice([READER, case.user])
        wanted = read_rows(case, user, query, "model")
        for engine in ("interpreter", "duckdb"):
            found = read_rows(case, user, query, engine)
            assert as_bag(found) == as_bag(wanted), f"case {number}, {engine}: {query}\n{describe(case)}"
        ran += 1
        with_rows += bool(wanted)
    record_cases("queries over named results against the model", ran, with_rows)
    assert with_rows > 100


def test_nobody_gets_anything_when_the_maker_has_nothing() -> None:
    for number in range(60):
        case = name_result(random_case(Random(9_000_000 + number)))
        if case is None:
            continue
        ended = replace(case, catalog=replace(case.catalog, grants={"full": case.catalog.grants["full"]}))
        for user in (READER, case.user):
            assert read_rows(ended, user, select_all(ended), "interpreter") == []
            assert read_rows(ended, user, select_all(ended), "model") == []

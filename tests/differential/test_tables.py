"""Tables with a key: interpreter and DuckDB give what the model gives, of rows that replace each other (D1, I4)."""

from __future__ import annotations

from itertools import islice

from counters import record_cases
from sluicegate.testing.cases import describe
from sluicegate.testing.differential import compare_case
from sluicegate.testing.in_force import settle
from sluicegate.testing.keyed_cases import random_keyed_cases


def test_random_cases() -> None:
    ran = with_rows = replaced = 0
    for number, case in islice(random_keyed_cases(7_000_000), 60):
        outcome = compare_case(case)
        assert outcome.difference is None, f"case {number}\n{outcome.difference}\n{describe(case)}"
        ran += 1
        with_rows += bool(outcome.rows)
        replaced += len(settle(case.data, case.catalog.streams)["D"]) < len(case.data["D"])
    record_cases("tables with a key", ran, with_rows)
    assert with_rows > 10
    assert replaced > 30

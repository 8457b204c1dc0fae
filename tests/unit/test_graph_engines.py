"""The interpreter and DuckDB give the same rows on random graphs (I4)."""

from __future__ import annotations

from random import Random

import pytest

from counters import record_cases
from sluicegate.graph.interpret import result_rows, run
from sluicegate.testing.duckdb_run import run_duckdb
from unit.graph_cases import as_bag, streams_of
from unit.graph_random import GraphMaker, random_data

BATCH = 100


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(8))
def test_random_graphs(batch: int) -> None:
    with_rows = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng = Random(seed)
        plan, data = GraphMaker(rng).plan(), random_data(rng)
        expected = result_rows(run(plan.root, data), plan.outputs)
        found = run_duckdb(plan, data, streams_of(plan.root))
        assert as_bag(found) == as_bag(expected), f"seed {seed}"
        with_rows += bool(expected)
    record_cases("random graphs, interpreter and DuckDB", BATCH, with_rows)
    assert with_rows > BATCH // 4

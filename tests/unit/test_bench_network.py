"""The cost model of shared networks measures what it says."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from sluicegate.bench import network_model
from sluicegate.bench.budget import Budget
from sluicegate.bench.network_model import place_drawn, price
from sluicegate.bench.network_overhead import NONE, describe_overheads
from sluicegate.bench.network_plans import draw_plain, write_plans
from sluicegate.rewrite.sharing.model import SwitchKind
from sluicegate.rewrite.sharing.optimize import build_network, normalize
from sluicegate.rewrite.sharing.place_switches import place_switches
from sluicegate.testing.drawn_networks import Drawing, DrawnOperator, NetworkSize

BY_HAND = Drawing(
    (
        DrawnOperator("select", (-1,)),  # of both
        DrawnOperator("project", (0,)),  # of the first
        DrawnOperator("select", (-2,)),
        DrawnOperator("join", (0, 2)),
        DrawnOperator("project", (3,)),
    ),
    (1, 4),
    (0, 1, 1),
)


def test_a_network_worked_by_hand() -> None:
    found = price(BY_HAND)
    # 0.1 ms for each of 1,000 tuples, 0.3 for the join
    assert found.shared == pytest.approx(700)
    assert found.unshared == pytest.approx(200 + 2 * 600)
    # a terminal and an in-network switch each, and an initial one at the second stream
    assert found.switches == 5
    assert found.all_sps == pytest.approx(5 * 10 * 3 * 0.1)
    assert found.matching_sps == pytest.approx((2 * 1 + 3 * 2) * 10 * 0.1)
    assert {chosen: round(time) for chosen, time in found.lost.items()} == {
        (): 700,
        (0,): 600,
        (1,): 200,
        (0, 1): 100,
    }


@pytest.mark.parametrize("seed", range(25))
def test_algorithm_2_on_drawings_is_that_on_networks(seed: int) -> None:
    size = NetworkSize(3, 3, 3, 12, (0.2, 0.5, 0.8)[seed % 3], read_all=seed % 2 == 0)
    drawing = draw_plain(Random(seed), size)
    plans = {query: normalize(plan) for query, plan in write_plans(drawing, 10).items()}
    network = build_network(plans)
    parts = [drawing.find_part(query) for query in range(len(drawing.roots))]
    printed = place_switches(network, as_printed=True)
    assert len(printed) == len(place_drawn(drawing, parts))
    assert sum(each.kind is SwitchKind.TERMINAL for each in printed) == len(drawing.roots)


def test_the_measurement_runs_and_is_repeatable(tmp_path: Path) -> None:
    result = network_model.run(json=True, out=tmp_path, quick=True)
    assert json.loads((tmp_path / "network_model.json").read_text(encoding="utf-8"))["fig9"] == result["fig9"]
    assert {each.name for each in tmp_path.iterdir()} >= {"fig8.svg", "fig9.svg"}
    again = network_model.run(json=True, out=None, quick=True)
    assert again["papers"] == result["papers"]
    planning = result["planning"]
    assert isinstance(planning, list)
    assert all(row["operators"] < row["operators_apart"] for row in planning)


def test_more_lost_queries_cost_less_and_full_access_a_little_more() -> None:
    result = network_model.run(json=True, out=None, quick=True)
    rows = result["fig9"]
    assert isinstance(rows, list)
    for row in rows:
        assert row["lost_3_ms"] < row["lost_2_ms"] < row["lost_1_ms"] < row["shared_ms"] < row["lost_0_ms"]


def test_what_no_longer_fits_into_the_time_is_named() -> None:
    now = [0.0]
    budget = Budget(100.0, clock=lambda: now[0])
    assert budget.allows("first", 0.5)
    now[0] = 60.0
    assert not budget.allows("second", 0.5)
    assert budget.allows("third", 0.9)
    assert (budget.cut, budget.left) == (["second"], 40.0)


def test_overheads_are_of_pairs_with_the_interval_of_their_median() -> None:
    none = [(1.0, 2.0)] * 15
    ratios = [1 + at / 100 for at in (9, -9, 8, -8, 7, -7, 6, -6, 5, -5, 4, -4, 3, -3, 1)]
    times = {NONE: none, "open": [(each, 2 * each) for each in ratios]}
    (row,) = describe_overheads(times)
    # the fourth and the twelfth of fifteen
    assert (row["overhead"], row["low"], row["high"], row["pairs"]) == (0.01, -0.06, 0.06, 15)
    assert (row["cpu_overhead"], row["none_s"]) == (0.01, 1.0)


def test_fewer_networks_are_priced_where_time_is_short() -> None:
    assert network_model.find_affordable(0.0) == 0
    assert network_model.find_affordable(1e9) == network_model.FULL.networks

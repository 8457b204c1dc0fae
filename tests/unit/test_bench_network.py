"""The cost model of shared networks measures what it says."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from sluicegate.bench import network_model
from sluicegate.bench.network_model import place_drawn, price
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

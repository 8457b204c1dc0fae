"""`bench service` runs on a few requests, tells every way and stage, and draws; the mix is the paper's."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.bench import service
from sluicegate.bench.asker import NotAnsweredError, open_asker
from sluicegate.bench.mix import COMPOSITION, draw_zipf, make_mix, share_out
from sluicegate.bench.served import Taken
from sluicegate.language.load import read_catalog
from sluicegate.rewrite.notices import Decision
from sluicegate.runtime.network.authorize import authorize
from sluicegate.runtime.network.network import MOST_SHAPES
from sluicegate.runtime.stages import STAGES
from sluicegate.service.decisions import find_decision
from sluicegate.service.listening import open_listener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_service_measures_every_way_and_draws(spark: SparkSession, tmp_path: Path) -> None:
    result = service.run(json=True, out=tmp_path, quick=True, spark=spark)
    kept = json.loads((tmp_path / "service.json").read_text(encoding="utf-8"))
    ways = {row["way"]: row["samples"] for row in kept["fig6a"]}
    assert ways["direct, to its first progress"] == ways["ours alone, to its first progress"] == 1
    assert ways["ours, fresh"] == ways["ours, cached"] == 2
    assert [row["stage"] for row in kept["fig7b"]] == [*STAGES, "transport", "round trip"]
    assert all(row["median_ms"] > 0 for row in kept["fig7a"] + kept["fig7b"])
    assert abs(sum(row["part_of_time"] for row in kept["fig7b"][:-1]) - 1) < 0.01
    assert kept["live"]["queries"] == 2
    assert kept["live"]["with_rows"] > 0
    assert kept["zipf"]["requests"] == 4
    plots = ["fig6.png", "fig6.svg", "fig7.png", "fig7.svg"]
    assert result["plots"] == plots
    assert {each.name for each in tmp_path.iterdir()} == {*plots, "service.json", "service_samples.json"}


def test_the_mix_is_the_papers_and_every_request_is_permitted() -> None:
    mix = make_mix(1500, 1000, service.SEED)
    assert Counter(each.graph.kind for each in mix.requests) == COMPOSITION
    assert len(mix.policies) == 1000
    assert len({(each.user, each.query) for each in mix.requests}) == 1500
    catalog = read_catalog(mix.write_catalog())
    assert len(catalog.grants) == 1000
    found = [authorize(catalog, each.user, each.query) for each in mix.requests[::10]]
    assert {find_decision(each) for each in found} == {Decision.PERMIT}
    assert all(
        each.grants == (f"g{asked.policy}",) for each, asked in zip(found, mix.requests[::10], strict=True)
    )
    assert len({each.shaped.key for each in found}) < MOST_SHAPES


@pytest.mark.parametrize("total", [4, 50, 100, 1000])
def test_smaller_mixes_have_the_same_parts(total: int) -> None:
    found = share_out(total)
    assert sum(found.values()) == total
    assert all(abs(found[kind] - total * part / 1500) < 1 for kind, part in COMPOSITION.items())


def test_popular_requests_are_asked_for_more_often() -> None:
    mix = make_mix(400, 300, 1)
    drawn = Counter(each.user for each in draw_zipf(mix.requests, 60_000, 300, 1))
    counts = sorted(drawn.values(), reverse=True)
    assert len(counts) == 300
    # rank 1 to rank 300: 300 ** 0.223 = 3.6
    assert 2.8 < counts[0] / counts[-1] < 4.8


def test_what_is_left_of_a_round_trip_is_transport() -> None:
    taken = Taken("h", 0.010, {"decision": 0.002, "deployment": 0.005})
    assert taken.transport == pytest.approx(0.003)


def test_an_answer_that_is_none_is_not_measured() -> None:
    with open_listener("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with open_asker() as asker, pytest.raises(NotAnsweredError):
        asker.ask(url, "GET", "/", "token")

"""The feeds of seed 004's first experiment are as section 7.1 says."""

from __future__ import annotations

from collections import Counter

import pyarrow.compute as pc

from sluicegate.testing.logistics import PLACE, PORTS, Logistics, make_rounds


def test_feeds_are_as_the_experiment_says() -> None:
    rounds = list(make_rounds(Logistics(boats=200, rounds=4, reports=3, seed=2)))
    boats = set(rounds[0][0]["SID"].to_pylist())
    assert len(boats) == 200
    before: dict[int, int] = {}
    for positions, voyages in rounds:
        assert positions.num_rows == 600
        assert positions["T"].to_pylist() == sorted(positions["T"].to_pylist())
        told = voyages["SID"].to_pylist()
        assert len(told) == len(set(told)) == 180 + 2_000
        assert len(boats & set(told)) == 180
        loads = dict(zip(told, voyages["free_load"].to_pylist(), strict=True))
        assert min(loads.values()) > 0
        assert all(loads[sid] <= before.get(sid, 1_000) for sid in told)
        before = loads
    assert (
        sum(first != last for first, last in zip(_loads(rounds[0][1]), _loads(rounds[-1][1]), strict=True))
        > 500
    )
    shares = Counter(rounds[0][1]["next_leg"].to_pylist())
    assert set(shares) == set(PORTS)
    assert max(shares.values()) < 2 * min(shares.values())
    west, east, _, _ = PLACE
    inside = pc.sum(
        pc.and_(pc.greater(positions["Long"], west - 0.1), pc.less(positions["Long"], east + 0.1))
    )
    assert 500 < inside.as_py() < 600


def _loads(table: object) -> list[int]:
    rows = table.to_pylist()  # type: ignore[attr-defined]
    return [row["free_load"] for row in sorted(rows, key=lambda row: row["SID"])]


def test_the_same_parameters_give_the_same_rows() -> None:
    first, again = (list(make_rounds(Logistics(boats=20, rounds=2, seed=3))) for _ in range(2))
    assert all(
        a.equals(b) for one, other in zip(first, again, strict=True) for a, b in zip(one, other, strict=True)
    )

"""What tuple windows carry: of queries and of their sessions, in memory and on disk (R11)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from sluicegate.runtime.network.carried_store import CarriedStore
from sluicegate.runtime.network.switching import find_numbers, number_session
from sluicegate.runtime.network.tuple_windows import Carried, Count

OWN, SWITCHED = 3, 4
SESSIONS = [number_session(SWITCHED, each) for each in (1, 2)]


def make_carried() -> Carried:
    numbers = [OWN, *SESSIONS]
    return Carried({(each,): Count(1) for each in numbers}, pa.table({"q": pa.array(numbers, pa.int64())}))


def test_versions_of_sessions_are_their_queries(tmp_path: Path) -> None:
    CarriedStore(tmp_path).save("u", 5, make_carried(), {OWN: 1, SWITCHED: 7, 9: 1})
    carried, versions = CarriedStore(tmp_path).load("u", 5)
    assert carried == make_carried()
    assert versions == {OWN: 1, SWITCHED: 7}


def test_a_query_is_forgotten_with_all_its_sessions() -> None:
    carried = make_carried()
    kept = carried.forget(find_numbers(carried, frozenset({SWITCHED})))
    assert kept == Carried({(OWN,): Count(1)}, pa.table({"q": pa.array([OWN], pa.int64())}))
    # nothing to write anew
    assert kept.forget(frozenset({SWITCHED})) is kept

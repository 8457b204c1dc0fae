"""Seed 001, section 3.4: windows of several sizes give the stream away. Mounted against what a grant alone would give, where
it works, and against the guard that stands before every query (R8), where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from property.test_ledger import Attacker, stretch
from sluicegate.errors import DiagnosticError
from sluicegate.graph.interpret import result_rows, run
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.query_syntax import Start
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.environment import environment
from sluicegate.rewrite.manner import USUAL, Manner, OnPartial
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.runtime.admission import Admission
from sluicegate.runtime.ledger import Ledger
from sluicegate.runtime.network.graphs import Graphs
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.seats import Seat
from sluicegate.source import SourceText

HOUR = 3_600_000_000
EXAMPLE_2 = """
CREATE STREAM S (ts TIMESTAMP, a INT, k INT, g STRING) TIMESTAMP BY ts;
CREATE USER u;
"""
SUMS = "CREATE GRANT w SUM (a) ON S WINDOW AT LEAST 3 ROWS STEP AT LEAST 2 ROWS TO USER u;"


def make_data(values: list[int], step: int = 1_000_000) -> dict[str, list[dict[str, Any]]]:
    return {"S": [{"ts": at * step, "a": a, "k": at, "g": f"g{at % 3}"} for at, a in enumerate(values)]}


def ask_unguarded(catalog: Catalog, query: str, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the authorized plan gives by itself: grants are kept, and nothing of the past is known."""
    asked = read_query(query, catalog)
    plan = rewrite(catalog, catalog.users["u"], asked.root).plan
    assert plan is not None
    return result_rows(run(plan.root, data, environment(catalog, "u")), plan.outputs, plan.label)


def sums(catalog: Catalog, query: str, data: Mapping[str, Any], name: str = "sum(a)") -> list[Any]:
    return [row[name] for row in ask_unguarded(catalog, query, data)]


@dataclass
class Gateway:
    """The real admission and ledger; the network, which only counts shapes here, and the logs are stand-ins."""

    catalog: Catalog
    running: dict[str, Running] = field(default_factory=dict)
    greatest: int = 10 * HOUR
    manner: Manner = USUAL

    def __post_init__(self) -> None:
        network: Any = SimpleNamespace(admit_shape=lambda *_: None)
        logs: Any = dict.fromkeys(self.catalog.streams, self)
        self.admission = Admission(Graphs(manner=self.manner), Ledger(), network, logs, self.running)

    def register(self, query: str, user: str = "u", roles: frozenset[str] | None = None) -> str:
        handle, seat = f"h{len(self.running)}-{query}", Seat(user, roles)
        allowed = self.admission.allow(self.catalog, seat, query, handle)
        since: Any = Start.LATEST
        self.running[handle] = Running(handle, len(self.running), seat, query, 1, allowed, since, since, {})
        return handle

    def stop(self, handle: str) -> None:
        self.admission.release(self.running.pop(handle))

    def refuses(self, query: str, code: str, **who: Any) -> bool:
        with pytest.raises(DiagnosticError) as caught:
            self.register(query, **who)
        return code in {each.code for each in caught.value.diagnostics}


def test_example_2_reconstructs_the_stream_without_the_guard() -> None:
    catalog = read_catalog(EXAMPLE_2 + SUMS)
    values = [Random(5).randrange(1000) for _ in range(41)]
    s1, s2, s3 = (
        sums(catalog, f"SELECT SUM(a) FROM S [ROWS {n} SLIDE 2]", make_data(values)) for n in (3, 4, 5)
    )
    odd = [more - less for more, less in zip(s2, s1, strict=False)]
    even = [more - less for more, less in zip(s3, s2, strict=False)]
    rebuilt = [value for pair in zip(odd, even, strict=False) for value in pair]
    assert len(rebuilt) >= 36
    assert rebuilt == values[3 : 3 + len(rebuilt)]


@pytest.mark.parametrize("seed", range(5))
def test_the_general_construction_reconstructs_the_stream_without_the_guard(seed: int) -> None:
    """Sizes N, N+1, …, N+M with the step M: everything from the N-th tuple on."""
    rng = Random(seed)
    size, step = rng.randint(2, 6), rng.randint(2, 5)
    grant = f"CREATE GRANT w SUM (a) ON S WINDOW AT LEAST {size} ROWS STEP AT LEAST {step} ROWS TO USER u;"
    catalog, values = read_catalog(EXAMPLE_2 + grant), [rng.randrange(1000) for _ in range(60)]
    streams = [
        sums(catalog, f"SELECT SUM(a) FROM S [ROWS {size + more} SLIDE {step}]", make_data(values))
        for more in range(step + 1)
    ]
    rebuilt = []
    for window in range(len(streams[-1])):
        rebuilt += [streams[more + 1][window] - streams[more][window] for more in range(step)]
    assert len(rebuilt) > 30
    assert rebuilt == values[size : size + len(rebuilt)]


@pytest.mark.parametrize("size", [4, 5, 6, 9])
def test_the_guard_gives_one_of_these_windows_only(size: int) -> None:
    gateway = Gateway(read_catalog(EXAMPLE_2 + SUMS))
    gateway.register("SELECT SUM(a) FROM S [ROWS 3 SLIDE 2]")
    assert gateway.refuses(f"SELECT SUM(a) FROM S [ROWS {size} SLIDE 2]", "ledger-tuples")


def test_not_within_one_query_either() -> None:
    """All three as branches of one query, or one as a nested part of another."""
    gateway = Gateway(read_catalog(EXAMPLE_2 + SUMS))
    three, four = (f"SELECT SUM(a) AS t FROM S [ROWS {n} SLIDE 2]" for n in (3, 4))
    assert gateway.refuses(f"{three} UNION ALL {four}", "ledger-tuples")


def test_stopping_and_starting_again_does_not_help() -> None:
    gateway = Gateway(read_catalog(EXAMPLE_2 + SUMS))
    gateway.stop(gateway.register("SELECT SUM(a) FROM S [ROWS 3 SLIDE 2]"))
    for size in (4, 5):
        assert gateway.refuses(f"SELECT SUM(a) FROM S [ROWS {size} SLIDE 2]", "ledger-tuples")


def test_a_widened_window_counts_as_what_it_was_widened_to() -> None:
    gateway = Gateway(read_catalog(EXAMPLE_2 + SUMS))
    gateway.stop(gateway.register("SELECT SUM(a) FROM S [ROWS 1 SLIDE 1]"))
    gateway.register("SELECT SUM(a) FROM S [ROWS 3 SLIDE 2]")
    assert gateway.refuses("SELECT SUM(a) FROM S [ROWS 2 SLIDE 3]", "ledger-tuples")


def test_the_same_query_in_xml_is_the_same_window() -> None:
    gateway = Gateway(read_catalog(EXAMPLE_2 + SUMS))
    gateway.register("SELECT SUM(a) FROM S [ROWS 3 SLIDE 2]")
    asked = (
        '<UserQuery><Stream name="S"/><Aggregation><WindowType>tuple</WindowType><WindowSize>{}</WindowSize>'
        "<WindowStep>2</WindowStep><Attribute>sum(a)</Attribute></Aggregation></UserQuery>"
    )
    for size in (3, 4):
        assert gateway.refuses(asked.format(size), "ledger-tuples")


def test_another_phase_tells_differences_and_is_not_given() -> None:
    """Windows of three from the first tuple and from the second: what two tuples differ by. Registering again goes on counting."""
    attacker = Attacker()
    for phase in (0, 1):
        for begin in range(phase, 13, 3):
            attacker.learn(stretch(begin, begin + 3))
    difference = [a - b for a, b in zip(stretch(3, 4), stretch(0, 1), strict=True)]
    assert attacker.derive(difference) is not None
    catalog = read_catalog(EXAMPLE_2 + SUMS.replace("STEP AT LEAST 2", "STEP AT LEAST 3"))
    gateway, query = Gateway(catalog), "SELECT SUM(a) FROM S [ROWS 3 SLIDE 3]"
    first = gateway.register(query)
    assert gateway.refuses(query, "ledger-tuples")
    given = gateway.running[first].allowed.releases
    gateway.stop(first)
    answer = gateway.admission.ledger.admit("u", given, catalog.grants, "again")
    assert [each.window for each in answer.continues] == [each.window for each in given]  # type: ignore[union-attr]
    gateway.register(query)
    assert gateway.refuses(query + " START AT EARLIEST", "ledger-tuples")


def test_one_that_counts_again_is_on_the_same_grid() -> None:
    """The engine's own cutting of windows: after so many rows a query that is registered anew begins where the grid does."""
    pa = pytest.importorskip("pyarrow")
    from sluicegate.graph.windows import TupleWindow
    from sluicegate.runtime.network.tuple_windows import Carried, cut_windows

    def rows(begin: int, end: int, query: int) -> Any:
        at = list(range(begin, end))
        columns = {
            "q": pa.array([query] * len(at), pa.int64()),
            "h_time": pa.array(at, pa.int64()),
            "h_order": pa.array([[each] for each in at], pa.list_(pa.int64())),
            "a": pa.array(at, pa.int64()),
        }
        return pa.table(columns)

    window = TupleWindow(3, 3)
    _, carried = cut_windows(Carried(), rows(0, 7, 1), window, [], True)
    seen = carried.counts_of(1)
    released, _ = cut_windows(carried.forget(frozenset({1})).go_on(2, seen), rows(7, 20, 2), window, [], True)
    assert set(released["start"].to_pylist()) == {9, 12, 15}
    assert sorted(set(released["a"].to_pylist())) == list(range(9, 18))


BOTH = """
CREATE GRANT sums SUM (a) ON S WINDOW AT LEAST 3 ROWS STEP AT LEAST 2 ROWS TO USER u;
CREATE GRANT means AVG (a) ON S WINDOW AT LEAST 4 ROWS STEP AT LEAST 2 ROWS TO USER u;
"""


def test_a_sum_under_one_grant_and_an_average_under_another() -> None:
    catalog, values = read_catalog(EXAMPLE_2 + BOTH), [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
    total = sums(catalog, "SELECT SUM(a) FROM S [ROWS 3 SLIDE 2]", make_data(values))
    mean = sums(catalog, "SELECT AVG(a) FROM S [ROWS 4 SLIDE 2]", make_data(values), "avg(a)")
    assert [round(4 * m - t) for m, t in zip(mean, total, strict=False)] == values[3::2]
    gateway = Gateway(catalog)
    gateway.register("SELECT SUM(a) FROM S [ROWS 3 SLIDE 2]")
    assert gateway.refuses("SELECT AVG(a) FROM S [ROWS 4 SLIDE 2]", "ledger-tuples")


TIMED = """
CREATE GRANT sums AGGREGATE (SUM(a), COUNT(a)) ON S WINDOW AT LEAST '2 hours' STEP AT LEAST '1 hour' TO USER u;
CREATE GRANT means AVG (a) ON S WINDOW AT LEAST '3 hours' STEP AT LEAST '1 hour' TO USER u;
"""


def test_an_average_and_a_count_make_up_a_sum_of_time_windows() -> None:
    catalog, values = read_catalog(EXAMPLE_2 + TIMED), [7, 1, 8, 2, 8, 1, 8]
    data = make_data(values, HOUR)
    total, mean = (
        {row["window_start"]: row[name] for row in ask_unguarded(catalog, query, data)}
        for query, name in (
            ("SELECT SUM(a) FROM S [RANGE 2 HOURS SLIDE 1 HOUR]", "sum(a)"),
            ("SELECT AVG(a) FROM S [RANGE 3 HOURS SLIDE 1 HOUR]", "avg(a)"),
        )
    )
    # one tuple an hour: three times the average of three hours, less the sum of the first two, is the third
    found = [round(3 * mean[at * HOUR] - total[at * HOUR]) for at in range(5)]
    assert found == values[2:]
    gateway = Gateway(catalog)
    gateway.register("SELECT SUM(a), COUNT(a) FROM S [RANGE 2 HOURS SLIDE 1 HOUR]")
    assert gateway.refuses("SELECT AVG(a) FROM S [RANGE 3 HOURS SLIDE 1 HOUR]", "ledger-made-up")


JOINED = """
CREATE STREAM T (ts TIMESTAMP, k INT) TIMESTAMP BY ts;
CREATE GRANT alone SUM (a) ON S WINDOW AT LEAST '10 minutes' STEP AT LEAST '10 minutes' TO USER u;
CREATE GRANT joined SUM (S.a) ON S, T WHERE S.k = T.k WINDOW AT LEAST '10 minutes' STEP AT LEAST '10 minutes' TO USER u;
CREATE GRANT rows SUM (a) ON S WINDOW AT LEAST 5 ROWS STEP AT LEAST 5 ROWS TO USER u;
CREATE GRANT pairs SUM (S.a) ON S, T WHERE S.k = T.k WINDOW AT LEAST 5 ROWS STEP AT LEAST 5 ROWS TO USER u;
"""


@pytest.mark.parametrize(
    ("alone", "joined", "code"),
    [("RANGE 10 MINUTES", "'15 minutes'", "ledger-grid"), ("ROWS 5", "6 ROWS", "ledger-tuples")],
)
def test_a_stream_and_a_join_with_it(alone: str, joined: str, code: str) -> None:
    """Where each tuple has one partner both sum the same values, in windows whose differences are finer than either."""
    over = "S [RANGE 1 HOUR] JOIN T [RANGE 1 HOUR] ON S.k = T.k"
    first = f"SELECT SUM(a) FROM S [{alone}]"
    second = f"SELECT SUM(S.a) FROM {over} GROUP BY WINDOW({joined})"
    for asked, other in ((first, second), (second, first)):
        gateway = Gateway(read_catalog(EXAMPLE_2 + JOINED))
        handle = gateway.register(asked)
        assert gateway.refuses(other, code)
        gateway.stop(handle)
        assert gateway.refuses(other, code)


NARROW = (
    "CREATE GRANT n SUM (a) ON S NARROW BY (k) WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' TO USER u;"
)


def test_two_narrowings() -> None:
    catalog, values = read_catalog(EXAMPLE_2 + NARROW), [11, 22, 33, 44]
    less, more = (
        sums(catalog, f"SELECT SUM(a) FROM S [RANGE 1 HOUR] WHERE k < {k}", make_data(values))[0]
        for k in (2, 3)
    )
    assert more - less == values[2]
    gateway = Gateway(catalog)
    gateway.register("SELECT SUM(a) FROM S [RANGE 1 HOUR] WHERE k < 2")
    assert gateway.refuses("SELECT SUM(a) FROM S [RANGE 1 HOUR] WHERE k < 3", "ledger-narrowing")
    assert gateway.refuses("SELECT SUM(a) FROM S [RANGE 1 HOUR]", "ledger-narrowing")
    gateway.register("SELECT SUM(a) FROM S [RANGE 1 HOUR] WHERE k >= 2")


def test_a_grant_made_to_oneself_narrows_no_more_than_the_one_it_rests_on() -> None:
    catalog = read_catalog(EXAMPLE_2 + NARROW.replace(" TO USER u;", " TO USER u WITH GRANT OPTION;"))
    copy = NARROW.replace("GRANT n ", "GRANT mine ")
    gateway = Gateway(apply(catalog, parse_statements(SourceText("<change>", copy)), "u"))
    assert gateway.catalog.grants["mine"].grantor == "u"
    gateway.register("SELECT SUM(a) FROM S [RANGE 1 HOUR] WHERE k < 2")
    assert gateway.refuses("SELECT SUM(a) FROM S [RANGE 1 HOUR] WHERE k < 3", "ledger-narrowing")
    alone = Gateway(catalog)
    alone.register("SELECT SUM(a) FROM S [RANGE 1 HOUR] WHERE k < 2")
    alone.catalog = gateway.catalog
    assert alone.refuses("SELECT SUM(a) FROM S [RANGE 1 HOUR] WHERE k < 3", "ledger-narrowing")


GROUPED = """
CREATE GRANT m SUM (a) ON S BY (g, k) WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' MIN GROUP 2 TO USER u;
"""


def test_two_groupings_under_min_group() -> None:
    """Of four tuples one stands alone in its group: the whole less the groups that are shown is that one."""
    catalog, values = read_catalog(EXAMPLE_2 + GROUPED), [5, 6, 7, 8]
    data = make_data(values)
    data["S"] = [row | {"g": "lone" if row["k"] == 3 else "many"} for row in data["S"]]
    whole = sums(catalog, "SELECT SUM(a) FROM S [RANGE 1 HOUR]", data)
    parts = sums(catalog, "SELECT g, SUM(a) FROM S [RANGE 1 HOUR] GROUP BY g", data)
    assert (len(parts), sum(whole) - sum(parts)) == (1, values[3])
    gateway = Gateway(catalog)
    gateway.register("SELECT g, SUM(a) FROM S [RANGE 1 HOUR] GROUP BY g")
    for other in ("SELECT SUM(a) FROM S [RANGE 1 HOUR]", "SELECT k, SUM(a) FROM S [RANGE 1 HOUR] GROUP BY k"):
        assert gateway.refuses(other, "ledger-min-group")


ROLES = """
CREATE STREAM S (ts TIMESTAMP, a INT, k INT, g STRING) TIMESTAMP BY ts;
CREATE ROLE One; CREATE ROLE Two;
CREATE USER u ROLES (One, Two);
CREATE GRANT one SUM (a) ON S WINDOW AT LEAST 3 ROWS STEP AT LEAST 2 ROWS TO One;
CREATE GRANT two SUM (a) ON S WINDOW AT LEAST 4 ROWS STEP AT LEAST 2 ROWS TO Two;
"""


def test_two_roles_of_one_user_in_two_sessions() -> None:
    gateway = Gateway(read_catalog(ROLES))
    gateway.register("SELECT SUM(a) FROM S [ROWS 3 SLIDE 2]", roles=frozenset({"One"}))
    asked = "SELECT SUM(a) FROM S [ROWS 4 SLIDE 2]"
    assert gateway.refuses(asked, "ledger-tuples", roles=frozenset({"Two"}))
    assert gateway.refuses(asked, "ledger-tuples")


GRID = "CREATE GRANT h AGGREGATE (SUM(a), MAX(a)) ON S WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' TO USER u;"


def test_safe_combinations_on_the_grid_pass_and_others_do_not() -> None:
    gateway = Gateway(read_catalog(EXAMPLE_2 + GRID))
    for window in ("1 HOUR", "2 HOURS SLIDE 1 HOUR", "3 HOURS SLIDE 2 HOURS", "1 DAY", "1 HOUR"):
        gateway.register(f"SELECT SUM(a) FROM S [RANGE {window}]")
    for window in ("90 MINUTES", "2 HOURS SLIDE 90 MINUTES"):
        assert gateway.refuses(f"SELECT SUM(a) FROM S [RANGE {window}]", "ledger-grid")
    gateway.stop(next(iter(gateway.running)))
    assert gateway.refuses("SELECT SUM(a) FROM S [RANGE 90 MINUTES]", "ledger-grid")
    gateway.register("SELECT MAX(a) FROM S [RANGE 90 MINUTES]")


def test_what_the_grid_gives_tells_nothing_finer() -> None:
    """By linear algebra over the windows that passed above: single hours, which may be asked for, and no part of one."""
    attacker, units = Attacker(), 4
    for size, step in ((1, 1), (2, 1), (3, 2)):
        for begin in range(0, 16 - size * units + 1, step * units):
            attacker.learn(stretch(begin, begin + size * units), 0)
    assert attacker.derive(stretch(4, 8)) == Fraction(0)
    assert all(attacker.derive(stretch(at, at + 1)) is None for at in range(16))


def test_another_user_is_not_bound_by_it() -> None:
    text = (
        EXAMPLE_2
        + SUMS
        + "CREATE USER v; CREATE GRANT x SUM (a) ON S WINDOW AT LEAST 3 ROWS STEP AT LEAST 2 ROWS TO USER v;"
    )
    gateway = Gateway(read_catalog(text))
    gateway.register("SELECT SUM(a) FROM S [ROWS 3 SLIDE 2]")
    gateway.register("SELECT SUM(a) FROM S [ROWS 4 SLIDE 2]", user="v")


def test_where_parts_are_refused_a_grant_that_the_ledger_bars_leaves_nothing() -> None:
    """Else the rest would be given as if it were all."""
    text = EXAMPLE_2 + SUMS + "CREATE GRANT seen READ (a) ON S WHERE a > 5 TO USER u;"
    first, second = (f"SELECT SUM(a) FROM S [ROWS {size} SLIDE 2] WHERE a > 5" for size in (3, 4))
    narrowed = text.replace("ON S WINDOW", "ON S WHERE a > 7 WINDOW")
    gateway = Gateway(read_catalog(narrowed), manner=Manner(on_partial=OnPartial.REFUSE))
    gateway.register(first)
    before = gateway.admission.ledger.past("u")
    assert gateway.refuses(second, "ledger-tuples")
    assert gateway.admission.ledger.past("u") == before
    giving = Gateway(read_catalog(narrowed))
    giving.register(first)
    giving.stop(next(iter(giving.running)))
    assert giving.running[giving.register(second)].allowed.grants == ("seen",)

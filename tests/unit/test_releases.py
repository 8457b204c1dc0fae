"""R8: what an authorized query would release under aggregate grants, as the ledger records it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from sluicegate.errors import DiagnosticError, InvariantError
from sluicegate.expr.nodes import TRUE
from sluicegate.expr.text import to_text
from sluicegate.graph.operators import AggFunction, Aggregate, Join, walk
from sluicegate.graph.plan import GRANT_NAME
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.language.load import load_catalog, read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.bind import Binder
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.entries import Entry, Extent
from sluicegate.policy.ledger import Admitted, Refused, admit
from sluicegate.policy.population import find_population
from sluicegate.rewrite.pipeline import Draft, rewrite
from sluicegate.rewrite.releases import NO_WINDOW, RELEASE_CODES, find_releases
from sluicegate.testing.cases import random_case
from sluicegate.testing.corpus import load_corpus
from sluicegate.testing.differential import interpret

ROOT = Path(__file__).parents[2]
HOUR = 3_600_000_000

CATALOG = read_catalog("""
CREATE STREAM S (ts TIMESTAMP, g STRING, k INT, x INT, y INT) TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, k INT, z INT) TIMESTAMP BY ts;
CREATE STREAM U (ts TIMESTAMP, k INT, w INT) TIMESTAMP BY ts;
CREATE STREAM Tab (k INT, label STRING);
CREATE USER plain; CREATE USER reader; CREATE USER narrow; CREATE USER rows; CREATE USER two; CREATE USER few;
CREATE USER both; CREATE USER three; CREATE USER twin; CREATE USER side; CREATE USER side_rows;
CREATE USER side_any; CREATE USER tabled; CREATE USER unite;
CREATE GRANT sums AGGREGATE (SUM(x), AVG(x), COUNT(*)) ON S WHERE y > 0 BY (g)
  WINDOW AT LEAST '2 hours' STEP AT LEAST '1 hour' TO USER plain;
CREATE GRANT reads READ (*) ON S TO USER reader;
CREATE GRANT part READ (x, y) ON S WHERE y < 3 TO USER unite;
CREATE GRANT some AGGREGATE (SUM(x)) ON S WHERE y > 0 TO USER unite;
CREATE GRANT filters AGGREGATE (SUM(x)) ON S AS a WHERE a.y > 0 NARROW BY (a.k, a.y) TO USER narrow;
CREATE GRANT counted AGGREGATE (SUM(x)) ON S WINDOW AT LEAST 5 ROWS STEP AT LEAST 5 ROWS TO USER rows;
CREATE GRANT one AGGREGATE (SUM(x)) ON S WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' TO USER two;
CREATE GRANT day AGGREGATE (SUM(x), MAX(y)) ON S WINDOW AT LEAST '1 day' STEP AT LEAST '1 day' TO USER two;
CREATE GRANT large AGGREGATE (SUM(x)) ON S BY (g) WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' MIN GROUP 3 TO USER few;
CREATE GRANT paired AGGREGATE (SUM(z)) ON S, T WHERE S.k = T.k NARROW BY (T.z)
  WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' TO USER both;
CREATE GRANT triple AGGREGATE (COUNT(*)) ON S, T, U TO USER three;
CREATE GRANT twins AGGREGATE (SUM(a.x)) ON S AS a, S AS b WHERE a.k = b.k AND a.y > b.y TO USER twin;
CREATE GRANT sides AGGREGATE (AVG(a.x), AVG(b.x)) ON S AS a, S AS b BY (a.g, b.g) TO USER side;
CREATE GRANT any AGGREGATE (AVG(a.x), AVG(b.x)) ON S AS a, S AS b WHERE a.k = b.k TO USER side_any;
CREATE GRANT turns AGGREGATE (SUM(S.x)) ON S, T TO USER side_rows;
CREATE GRANT tabular AGGREGATE (SUM(x)) ON S, Tab WHERE S.k = Tab.k TO USER tabled;
""")


def draft_of(user: str, query: str, catalog: Catalog = CATALOG) -> Draft:
    asked = read_query(query, catalog)
    return rewrite(with_decisions(catalog, user), catalog.users[user], asked.root, asked.united)


def releases(user: str, query: str, extent: Extent | None = None) -> tuple[Entry, ...]:
    return find_releases(draft_of(user, query), user, extent)


def only(user: str, query: str) -> Entry:
    (found,) = releases(user, query)
    return found


def test_functions_window_and_grouping_as_released() -> None:
    extent = Extent(5, None)
    found = releases("plain", "SELECT g, SUM(x), AVG(x), MAX(x) FROM S [RANGE 1 HOUR] GROUP BY g", extent)
    window, key = TimeWindow(2 * HOUR, HOUR), (("S", "g"),)
    population = find_population(Binder(CATALOG, CATALOG.users["plain"]), CATALOG.grants["sums"])
    assert found == tuple(
        Entry(
            "plain", "sums", ("S",), function, ("S", "x"), window, key, extent=extent, population=population
        )
        for function in (AggFunction.SUM, AggFunction.AVG)
    )


def test_counting_rows_has_no_attribute() -> None:
    assert only("plain", "SELECT COUNT(*) FROM S [RANGE 4 HOURS]").attribute is None


def test_a_function_that_nothing_uses_is_not_released() -> None:
    inner = "SELECT SUM(x) AS t, AVG(x) AS a FROM S [RANGE 2 HOURS]"
    assert only("plain", f"SELECT t FROM ({inner}) AS q").function is AggFunction.SUM
    found = releases("plain", f"SELECT t FROM ({inner}) AS q WHERE a > 1")
    assert {each.function for each in found} == {AggFunction.SUM, AggFunction.AVG}


def test_what_may_be_read_is_no_release() -> None:
    assert releases("reader", "SELECT SUM(x) FROM S [RANGE 1 HOUR]") == ()
    assert releases("reader", "SELECT x FROM S") == ()


def test_what_is_denied_is_no_release() -> None:
    assert releases("plain", "SELECT x FROM S") == ()
    assert releases("plain", "SELECT SUM(x) FROM S [RANGE 1 HOUR] WHERE g = 'a'") == ()
    alone = (
        "(SELECT SUM(x) AS t FROM S [RANGE 2 HOURS]) AS q [RANGE 1 HOUR] JOIN T [RANGE 1 HOUR] ON q.t = T.z"
    )
    assert releases("plain", f"SELECT t FROM {alone}") == ()


def test_united_releases_under_the_grant() -> None:
    found = only("unite", "SELECT UNITED SUM(x) FROM S [RANGE 1 HOUR]")
    assert found == only("unite", "SELECT SUM(x) FROM S [RANGE 1 HOUR]")
    assert found.grant == "some"


def test_each_grant_is_recorded() -> None:
    found = releases("two", "SELECT SUM(x), MAX(y) FROM S [RANGE 1 HOUR]")
    told = {(each.grant, each.function.value, each.window.size) for each in found}
    assert told == {("one", "SUM", HOUR), ("day", "SUM", 24 * HOUR), ("day", "MAX", 24 * HOUR)}


def test_branches_and_aggregates_of_aggregates_are_recorded() -> None:
    small, large = (f"SELECT SUM(x) AS t FROM S [RANGE {size} HOURS]" for size in (2, 4))
    found = releases("plain", f"{small} UNION ALL {large}")
    assert [each.window.size for each in found] == [2 * HOUR, 4 * HOUR]
    assert only("plain", f"SELECT MAX(t) FROM ({small}) AS q [RANGE 1 DAY]").function is AggFunction.SUM


def test_least_group_is_recorded_and_its_counts_are_not() -> None:
    found = only("few", "SELECT SUM(x) FROM S [RANGE 1 HOUR] GROUP BY g")
    assert (found.min_group, found.function, found.grouping) == (3, AggFunction.SUM, (("S", "g"),))


def test_narrowing_is_what_the_grant_does_not_imply() -> None:
    query = "SELECT SUM(x) FROM S AS q [RANGE 1 HOUR]"
    assert only("narrow", query).narrowing == TRUE
    assert only("narrow", f"{query} WHERE q.y > -1").narrowing == TRUE
    found = only("narrow", f"{query} WHERE q.y > -1 AND q.y < 9 AND q.k = 3").narrowing
    assert to_text(found) == "a.k = 3 AND a.y < 9"
    assert found == only("narrow", f"{query} WHERE q.k = 3 AND (q.y < 9 AND q.y > 0)").narrowing


def test_tuple_windows() -> None:
    assert only("rows", "SELECT SUM(x) FROM S [ROWS 2 SLIDE 1]").window == TupleWindow(5, 5)


def join(left: str, right: str, rest: str = "") -> str:
    return f"SELECT SUM(z) FROM {left} JOIN {right} ON S.k = T.k {rest} GROUP BY WINDOW('1 hour')"


def test_join_windows_stand_in_the_grants_order() -> None:
    found = only("both", join("T [RANGE 3 HOURS]", "S [RANGE 30 MINUTES]", "WHERE z > 4"))
    assert found.join_windows == (TimeWindow(HOUR, 0), TimeWindow(3 * HOUR, 0))
    assert found.attribute == ("T", "z")
    assert to_text(found.narrowing) == "T.z > 4"
    assert found == only("both", join("S [RANGE 1 HOUR]", "T [RANGE 3 HOURS]", "WHERE z > 4"))


def test_windows_beside_a_table_part_nothing() -> None:
    query = "SELECT SUM(x) FROM S [RANGE %d MINUTES] JOIN Tab ON S.k = Tab.k GROUP BY WINDOW('1 hour')"
    assert only("tabled", query % 1) == only("tabled", query % 2)
    assert only("tabled", query % 1).join_windows == (NO_WINDOW, NO_WINDOW)


def test_joins_of_three_are_told_apart_by_what_is_joined_first() -> None:
    first, second, third = (
        only("three", f"SELECT COUNT(*) FROM {' JOIN '.join(order)} GROUP BY WINDOW('1 hour')")
        for order in (
            ("S [RANGE 1 HOUR]", "T [RANGE 1 HOUR] ON TRUE", "U [RANGE 1 HOUR] ON TRUE"),
            ("T [RANGE 1 HOUR]", "U [RANGE 1 HOUR] ON TRUE", "S [RANGE 1 HOUR] ON TRUE"),
            ("T [RANGE 1 HOUR]", "S [RANGE 1 HOUR] ON TRUE", "U [RANGE 1 HOUR] ON TRUE"),
        )
    )
    assert first == third
    answer = admit([first], [second], CATALOG.grants)
    assert isinstance(answer, Refused)
    assert answer.code == "ledger-join-window"


def test_a_grant_that_fits_a_self_join_both_ways_is_recorded_both_ways() -> None:
    """With windows that differ each way is a population of its own, which the ledger does not give together."""
    query = "SELECT %s(p.x) FROM S AS p [RANGE 1 HOUR] JOIN S AS q [RANGE %d HOURS] ON p.k = q.k GROUP BY WINDOW('1 hour')"
    one, two = TimeWindow(HOUR, 0), TimeWindow(2 * HOUR, 0)
    (alike,) = releases("side_any", query % ("AVG", 1))
    assert (alike.streams, alike.attribute, alike.join_windows) == (("S", "S"), ("S", "x"), (one, one))
    found = releases("side_any", query % ("AVG", 2))
    assert [each.join_windows for each in found] == [(one, two), (two, one)]
    assert isinstance(admit([], found, CATALOG.grants), Refused)
    assert only("twin", query % ("SUM", 2)).join_windows == (one, two)


def group_by(measured: str, key: str) -> tuple[Entry, ...]:
    tables = "S AS p [RANGE 1 HOUR] JOIN S AS q [RANGE 1 HOUR] ON TRUE"
    return releases("side", f"SELECT AVG({measured}) FROM {tables} GROUP BY {key}, WINDOW('1 hour')")


def test_in_a_self_join_the_side_of_a_key_counts() -> None:
    own, other = group_by("p.x", "p.g"), group_by("p.x", "q.g")
    assert own == group_by("q.x", "q.g")
    assert isinstance(admit([], own, CATALOG.grants), Admitted)
    answer = admit(own, other, CATALOG.grants)
    assert isinstance(answer, Refused)
    assert answer.code == "ledger-average"


def test_tuple_windows_over_a_join_are_told_apart_by_its_order() -> None:
    query = "SELECT SUM(x) FROM %s [RANGE 1 HOUR] JOIN %s [RANGE 1 HOUR] ON TRUE GROUP BY WINDOW(2 ROWS)"
    first, second = only("side_rows", query % ("S", "T")), only("side_rows", query % ("T", "S"))
    assert first.join_windows[:2] == second.join_windows[:2]
    assert isinstance(admit([first], [second], CATALOG.grants), Refused)


def test_examples() -> None:
    weather = load_catalog(ROOT / "examples" / "weather")
    query = "SELECT AVG(rainrate), MAX(windspeed) FROM weather [ROWS 3] WHERE rainrate > 7"
    found = find_releases(draft_of("lta", query, weather), "lta", None)
    assert [(each.grant, each.function.value) for each in found] == [("lta", "AVG"), ("lta", "MAX")]
    assert {(each.window, to_text(each.narrowing)) for each in found} == {
        (TupleWindow(5, 3), "weather.rainrate > 7")
    }
    query = "SELECT MAX(temperature), AVG(rainrate) FROM weather [RANGE 10 MINUTES]"
    (rain,) = find_releases(draft_of("teacher", query, weather), "teacher", None)
    assert (rain.grant, rain.attribute) == ("school_rain", ("weather", "rainrate"))
    assert find_releases(draft_of("visitor", query, weather), "visitor", None) == ()


def test_a_release_that_nothing_accounts_for_is_refused() -> None:
    draft = draft_of("plain", "SELECT SUM(x) FROM S [RANGE 1 HOUR]")
    name, (candidate,) = next(iter(draft.candidates.aggregates.items()))
    strange = [
        (),
        (replace(candidate, refusal="it is of no use"),),
        (replace(candidate, window=TimeWindow(HOUR, HOUR)),),
        (replace(candidate, predicate=TRUE),),
        (replace(candidate, covered=frozenset()),),
        (candidate, candidate),
    ]
    for each in strange:
        changed = replace(draft, candidates=replace(draft.candidates, aggregates={name: each}))
        with pytest.raises(DiagnosticError) as error:
            find_releases(changed, "plain", None)
        assert error.value.diagnostics[0].code in RELEASE_CODES


def test_names_without_an_aggregate_are_refused() -> None:
    draft = draft_of("plain", "SELECT SUM(x) FROM S [RANGE 1 HOUR]")
    assert draft.plan is not None
    unlabelled = replace(draft, plan=replace(draft.plan, label=None))
    (node,) = (each for each in walk(draft.plan.root) if isinstance(each, Aggregate))
    bare = replace(node, by=())
    for changed in (unlabelled, replace(draft, plan=replace(draft.plan, root=_swap(draft.plan.root, bare)))):
        with pytest.raises(DiagnosticError):
            find_releases(changed, "plain", None)


def _swap(node: object, new: Aggregate) -> object:
    return new if isinstance(node, Aggregate) else replace(node, input=_swap(node.input, new))  # type: ignore[attr-defined, type-var]


def test_another_principals_query_is_not_recorded_here() -> None:
    with pytest.raises(InvariantError):
        find_releases(draft_of("plain", "SELECT SUM(x) FROM S [RANGE 1 HOUR]"), "eve", None)


def test_every_name_on_a_row_is_recorded() -> None:
    """Random queries; with MIN GROUP, UNITED, joins, self-joins and narrowings among them."""
    seen: Counter[str] = Counter()
    for number in range(300):
        case = random_case(Random(3_000_000 + number))
        draft = rewrite(case.catalog, case.catalog.users[case.user], case.root, case.united)
        found = find_releases(draft, case.user, None)
        shown = {
            name
            for row in interpret(case, draft.plan)
            for name in str(row.get(GRANT_NAME) or "").split("+")
            if name
        }
        assert shown <= {each.grant for each in found}, number
        assert (draft.plan is not None and draft.plan.label is not None) == bool(found), number
        _check_plan(draft, found, case.united)
        seen += Counter(
            labelled=bool(shown),
            joined=any(each.join_windows for each in found),
            narrowed=any(each.narrowing != TRUE for each in found),
            united=bool(found) and case.united,
            few=any(each.min_group for each in found),
        )
    assert seen["labelled"] > 20
    assert min(seen[each] for each in ("joined", "narrowed", "united", "few")) > 4


def _check_plan(draft: Draft, found: tuple[Entry, ...], united: bool) -> None:
    """Windows and join windows are those of the plan; under UNITED joins run wider, for what may be read."""
    granted = (
        [each for each in walk(draft.plan.root) if isinstance(each, Aggregate) and each.by]
        if draft.plan
        else []
    )
    assert {(each.by[0], each.window) for each in granted} == {(each.grant, each.window) for each in found}
    for entry in found if not united else ():
        ran = {
            window
            for node in granted
            if node.by == (entry.grant,)
            for below in walk(node)
            if isinstance(below, Join)
            for window in (below.left_window, below.right_window)
        }
        assert {each for each in entry.join_windows if isinstance(each, TimeWindow)} <= ran


def test_the_corpus_is_recorded() -> None:
    """Each case's rows bear only names that its query's entries have."""
    named = 0
    for file in load_corpus(ROOT / "tests" / "corpus"):
        for case in file.cases:
            expected = {row[GRANT_NAME] for row in case.rows or () if row.get(GRANT_NAME)}
            if not expected:
                continue
            found = find_releases(draft_of(case.user, case.query, case.load_catalog()), case.user, None)
            names = {name for each in expected for name in str(each).split("+")}
            assert names <= {each.grant for each in found}, case.label
            named += 1
    assert named > 30

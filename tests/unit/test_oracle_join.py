"""Joins by hand: windows, ties, ROWS, tables, self-joins (R4) and join grants (R2)."""

from __future__ import annotations

import pytest

from sluicegate.expr.nodes import TRUE, conjoin
from sluicegate.graph.operators import Join
from unit.oracle_world import (
    ask,
    catalog,
    compare,
    during,
    fold,
    get,
    join,
    least,
    project,
    read,
    rows,
    seconds,
    select,
    source,
    tuples,
)

BOTH = (read("rs", "S"), read("rt", "T"))
SAME = compare("S.k", "=", "T.k")


def pairs(size=None, other=None, **items):
    node = join(source("s"), source("t"), "s.k", "t.k", size=size, other=other)
    return project(node, **(items or {"x": "s.x", "y": "t.y"}))


def test_a_pair_is_in_the_window_of_the_earlier():
    S = tuples("S", (0, 1, "a", 1.0), (10, 1, "a", 2.0))
    T = tuples("T", (5, 1, 0.5))
    assert get(catalog(*BOTH), pairs(seconds(6), seconds(5)), S=S, T=T) == [{"x": 1.0, "y": 0.5}]
    assert get(catalog(*BOTH), pairs(seconds(5), seconds(6)), S=S, T=T) == [{"x": 2.0, "y": 0.5}]


def test_rows_side_holds_the_last_tuples_with_ties():
    S = tuples("S", (1, 1, "a", 1.0), (2, 1, "a", 2.0), (2, 1, "a", 3.0))
    T = tuples("T", (2, 1, 0.5), (3, 1, 1.5))
    found = get(catalog(*BOTH), pairs(rows(2), seconds(100)), S=S, T=T)
    assert [(row["x"], row["y"]) for row in found] == [(2.0, 0.5), (2.0, 1.5), (3.0, 0.5), (3.0, 1.5)]


def test_equal_times_need_both_windows():
    S = tuples("S", (2, 1, "a", 1.0))
    T = tuples("T", (2, 1, 0.5), (2, 1, 1.5))
    assert get(catalog(*BOTH), pairs(seconds(100), rows(1)), S=S, T=T) == [{"x": 1.0, "y": 1.5}]


def test_rows_counts_what_the_view_lets_through():
    S = tuples("S", (1, 1, "a", 1.0), (2, 1, "b", 2.0))
    T = tuples("T", (3, 1, 0.5))
    query = pairs(rows(1), seconds(100))
    own = catalog(read("rs", "S", where=compare("S.g", "=", "a")), BOTH[1])
    assert get(own, query, S=S, T=T) == [{"x": 1.0, "y": 0.5}]
    assert get(catalog(*BOTH), query, S=S, T=T) == [{"x": 2.0, "y": 0.5}]


def test_rows_counts_every_visible_tuple_once_whatever_it_shows():
    S = tuples("S", (1, 1, "a", 1.0), (2, 1, "b", 2.0))
    T = tuples("T", (3, 1, 0.5))
    known = catalog(read("a", "S", "k x", where=compare("S.g", "=", "a")), read("b", "S", "k"), BOTH[1])
    assert get(known, pairs(rows(1), seconds(100)), S=S, T=T) == [{"y": 0.5}]


def test_a_null_event_time_never_joins_a_stream():
    S = tuples("S", (None, 1, "a", 1.0))
    assert get(catalog(*BOTH), pairs(), S=S, T=tuples("T", (1, 1, 0.5))) == []


def test_a_table_is_in_every_window():
    S = tuples("S", (1, 1, "a", 1.0), (1000, 1, "a", 2.0))
    query = project(join(source("s"), source("d"), "s.k", "d.k"), x="s.x", name="d.name")
    found = get(catalog(BOTH[0], read("rd", "D")), query, S=S, D=tuples("D", (1, "one")))
    assert found == [{"name": "one", "x": 1.0}, {"name": "one", "x": 2.0}]


def test_both_sides_must_be_readable():
    S, T = tuples("S", (1, 1, "a", 1.0)), tuples("T", (1, 1, 0.5))
    assert get(catalog(BOTH[0]), pairs(), S=S, T=T) == []
    assert get(catalog(read("rs", "S", "x"), BOTH[1]), pairs(), S=S, T=T) == []


def test_a_side_may_be_masked():
    S, T = tuples("S", (1, 1, "a", 1.0)), tuples("T", (1, 1, 0.5))
    assert get(catalog(read("rs", "S", "k"), BOTH[1]), pairs(), S=S, T=T) == [{"y": 0.5}]


def test_a_self_join_reads_both_sides_under_one_grant():
    low, high = (
        read("low", "S", where=compare("S.k", "<=", 1)),
        read("high", "S", where=compare("S.k", ">=", 2)),
    )
    query = project(join(source("s1"), source("s2")), a="s1.k", b="s2.k")
    S = tuples("S", (1, 1), (2, 2))
    assert get(catalog(low, high), query, S=S) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}]
    assert len(get(catalog(low, high, read("all", "S")), query, S=S)) == 4


def test_a_self_join_shows_largest_sets_of_the_pair():
    query = project(join(source("s1"), source("s2")), g="s1.g", x="s2.x")
    known = catalog(read("a", "S", "g"), read("b", "S", "x"))
    assert get(known, query, S=tuples("S", (1, 1, "a", 1.0))) == [{"g": "a"}, {"x": 1.0}]


def test_an_aggregate_beside_its_own_stream_is_computed_per_grant():
    low, high = (
        read("low", "S", where=compare("S.k", "<=", 1)),
        read("high", "S", where=compare("S.k", ">=", 2)),
    )
    inner = fold(source("s1"), seconds(10), n="COUNT:*")
    query = project(join(inner, source("s2")), n="a.n", k="s2.k")
    S = tuples("S", (1, 1), (2, 2), (3, 3))
    assert get(catalog(low, high), query, S=S) == [{"n": 1, "k": 1}, {"n": 2, "k": 2}, {"n": 2, "k": 3}]


def test_an_aggregate_over_a_self_join_is_one_population():
    low, high = (
        read("low", "S", where=compare("S.k", "<=", 1)),
        read("high", "S", where=compare("S.k", ">=", 2)),
    )
    query = fold(join(source("s1"), source("s2")), seconds(10), n="COUNT:*")
    assert get(catalog(low, high), query, S=tuples("S", (1, 1), (2, 2), (3, 3))) == [
        {"n": 5, "window": (0, 10)}
    ]


def test_bounds_end_at_a_join():
    inner = fold(source("s"), seconds(10), n="COUNT:*")
    query = project(join(inner, source("t")), n="a.n", y="t.y")
    found = get(catalog(*BOTH), query, S=tuples("S", (1, 1)), T=tuples("T", (5, 1, 0.5)))
    assert found == [{"n": 1, "y": 0.5}]


def test_tuple_windows_over_a_join_go_by_pair_time():
    node = join(source("s"), source("t"), "s.k", "t.k")
    query = fold(node, rows(1), x="FIRST:s.x", y="FIRST:t.y")
    S, T = tuples("S", (9, 1, "a", 1.0), (2, 1, "a", 2.0)), tuples("T", (3, 1, 0.5), (1, 1, 1.5))
    found = get(catalog(*BOTH), query, S=S, T=T)
    assert len(found) == 4
    pair = fold(node, rows(4, 4), x="FIRST:s.x", last="LAST:t.y")
    assert get(catalog(*BOTH), pair, S=S, T=T) == [{"x": 2.0, "last": 1.5}]


S1, T1 = tuples("S", (1, 1, "a", 1.0), (2, 2, "b", 2.0)), tuples("T", (1, 1, 0.5), (9, 2, 1.5))


def test_a_join_grant_shows_pairs_without_read_grants():
    known = catalog(read("j", "S T", "S.x T.y", where=SAME))
    assert get(known, pairs(), S=S1, T=T1) == [{"x": 1.0, "y": 0.5}, {"x": 2.0, "y": 1.5}]


def test_a_join_grant_needs_its_key_implied_or_shown():
    assert get(catalog(read("j", "S T", "S.x T.y")), pairs(), S=S1, T=T1) == []
    known = catalog(read("j", "S T", "S.x S.k T.y T.k"))
    assert len(get(known, pairs(), S=S1, T=T1)) == 2


def test_a_join_grant_implies_weaker_conditions():
    strong = conjoin(SAME, compare("S.x", ">", 1.5))
    node = join(source("s"), source("t"), compare("s.x", ">", 0.5))
    query = project(node, y="t.y")
    assert get(catalog(read("j", "S T", "T.y", where=strong)), query, S=S1, T=T1) == [{"y": 1.5}]


def test_a_join_grant_needs_the_attributes_of_selections():
    inner = select(source("s"), "s.g", "=", "a")
    query = project(join(inner, source("t"), "s.k", "t.k"), y="t.y")
    assert get(catalog(read("j", "S T", "T.y", where=SAME)), query, S=S1, T=T1) == []
    assert get(catalog(read("j", "S T", "T.y S.g", where=SAME)), query, S=S1, T=T1) == [{"y": 0.5}]


def test_a_join_grant_masks_and_adds_to_read_grants():
    known = catalog(read("j", "S T", "S.x", where=SAME), read("rs", "S", "k"), read("rt", "T"))
    assert get(known, pairs(), S=S1[:1], T=T1[:1]) == [{"x": 1.0}, {"y": 0.5}]


def test_a_join_grant_widens_windows():
    known = catalog(read("j", "S T", "S.x T.y", where=SAME, least=least(20)))
    assert len(get(known, pairs(seconds(1)), S=S1, T=T1)) == 2
    assert len(get(catalog(*BOTH), pairs(seconds(1)), S=S1, T=T1)) == 1


def test_a_join_grant_does_not_serve_rows_windows():
    known = catalog(read("j", "S T", "S.x T.y", where=SAME))
    assert ask(known, pairs(rows(5), seconds(100)), S=S1, T=T1).decision_allows is False


def test_during_of_a_join_grant_is_on_every_side():
    known = catalog(read("j", "S T", "S.x T.y", where=SAME, during=during(0, 5)))
    assert get(known, pairs(), S=S1, T=T1) == [{"x": 1.0, "y": 0.5}]


def test_a_join_grant_on_one_stream_twice_is_read_both_ways():
    where = conjoin(compare("sa.k", "=", "sb.k"), compare("sa.g", "=", "a"))
    known = catalog(read("j", "S:sa S:sb", "sa.x", where=where))
    query = project(join(source("s1"), source("s2"), "s1.k", "s2.k"), a="s1.x", b="s2.x")
    S = tuples("S", (1, 1, "a", 1.0), (2, 1, "b", 2.0))
    found = get(known, query, S=S)
    assert sorted(map(str, found)) == ["{'a': 1.0}", "{'a': 1.0}", "{'b': 1.0}", "{'b': 1.0}"]


def test_an_inner_join_grant_serves_below_another_join():
    inner = join(source("s"), source("t"), "s.k", "t.k")
    query = project(join(inner, source("d"), "t.k", "d.k"), x="s.x", name="d.name")
    grants = (read("j", "S T", "S.x T.k", where=SAME), read("rd", "D"))
    assert get(catalog(*grants), query, S=S1, T=T1, D=tuples("D", (2, "two"))) == [{"name": "two", "x": 2.0}]


def test_two_streams_need_windows():
    node = project(Join(source("s"), source("t"), TRUE, None, None), x="s.x")
    with pytest.raises(ValueError, match="window"):
        get(catalog(*BOTH), node, S=S1, T=T1)

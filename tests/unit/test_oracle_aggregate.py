"""Aggregate grants by hand (R3, R4, R6, R8): validity, windows, DURING, MIN GROUP, UNITED, labels."""

from __future__ import annotations

import pytest

from sluicegate.expr.nodes import Arith, ArithOp, Compare, Literal, Op, SelfRef, conjoin
from sluicegate.expr.types import INT, STRING
from sluicegate.policy.model import LeastWindow
from unit.oracle_world import (
    aggregate_grant,
    ask,
    catalog,
    column,
    compare,
    during,
    fact,
    find,
    fold,
    get,
    join,
    least,
    project,
    read,
    rows,
    seconds,
    select,
    set_fact,
    source,
    tuples,
)

OWN = compare("S.g", "=", SelfRef("g", STRING))
S = tuples("S", (1, 1, "a", 1.0), (2, 2, "b", 2.0), (3, 3, "a", 3.0), (12, 4, "a", 4.0))


def total(node=None, window=None, by="", **calls):
    return fold(node or source("s"), window or seconds(10), by=by, **(calls or {"total": "SUM:s.x"}))


def test_rows_of_an_aggregate_grant_name_it():
    known = catalog(aggregate_grant("g", "S", "SUM:x", where=OWN))
    assert get(known, total(), S=S) == [
        {"_grant": "g", "total": 4.0, "window": (0, 10)},
        {"_grant": "g", "total": 4.0, "window": (10, 20)},
    ]


def test_functions_that_are_not_covered_are_left_out():
    known = catalog(aggregate_grant("g", "S", "SUM:x"))
    query = total(total="SUM:s.x", n="COUNT:*", most="MAX:s.x")
    assert get(known, query, S=S[:1]) == [{"_grant": "g", "total": 1.0, "window": (0, 10)}]
    assert get(known, total(n="COUNT:*"), S=S[:1]) == []


def test_count_of_rows_is_a_right_of_its_own():
    assert get(catalog(aggregate_grant("g", "S", "COUNT:k")), total(n="COUNT:*"), S=S[:1]) == []
    assert len(get(catalog(aggregate_grant("g", "S", "COUNT:*")), total(n="COUNT:*"), S=S[:1])) == 1


def test_the_reader_may_not_choose_the_population():
    known = catalog(aggregate_grant("g", "S", "SUM:x", where=compare("S.k", ">", 1)))
    narrowed = total(select(source("s"), "s.k", ">", 2))
    assert ask(known, narrowed, S=S).decision_allows is False
    implied = total(select(source("s"), "s.k", ">", 0))
    assert get(known, implied, S=S[:3]) == [{"_grant": "g", "total": 5.0, "window": (0, 10)}]


def test_profile_values_are_known_to_implication():
    known = catalog(aggregate_grant("g", "S", "SUM:x", where=OWN))
    assert len(get(known, total(select(source("s"), "s.g", "=", "a")), S=S[:1])) == 1
    assert get(known, total(select(source("s"), "s.g", "=", "b")), S=S) == []


@pytest.mark.parametrize("public", [True, False])
def test_only_public_facts_are_known_to_implication(public):
    where = Compare(Op.GE, column("S.ts"), fact("start"))
    known = catalog(aggregate_grant("g", "S", "SUM:x", where=where), facts=[set_fact("start", 2, public)])
    query = total(select(source("s"), "s.ts", ">=", 1))
    assert bool(get(known, query, S=S)) is public


def test_during_takes_part_in_implication():
    known = catalog(aggregate_grant("g", "S", "SUM:x", during=during(0, 100)))
    assert len(get(known, total(select(source("s"), "s.ts", ">=", 0)), S=S[:1])) == 1


def test_narrow_by_opens_filters():
    known = catalog(aggregate_grant("g", "S", "SUM:x", narrow_by="k"))
    query = total(select(source("s"), "s.k", ">", 1))
    assert get(known, query, S=S[:2]) == [{"_grant": "g", "total": 2.0, "window": (0, 10)}]
    mixed = total(select(source("s"), Compare(Op.GT, column("s.x"), column("s.k"))))
    assert get(known, mixed, S=S) == []


def test_group_by_must_be_allowed():
    query = total(by="s.g")
    assert get(catalog(aggregate_grant("g", "S", "SUM:x")), query, S=S) == []
    found = get(catalog(aggregate_grant("g", "S", "SUM:x", by="g")), query, S=S[:3])
    assert found == [
        {"_grant": "g", "g": "a", "total": 4.0, "window": (0, 10)},
        {"_grant": "g", "g": "b", "total": 2.0, "window": (0, 10)},
    ]


def test_only_bare_attributes_by_lineage():
    known = catalog(aggregate_grant("g", "S", "SUM:x"))
    renamed = fold(project(source("s"), z="s.x"), seconds(10), total="SUM:p.z")
    assert len(get(known, renamed, S=S[:1])) == 1
    more = project(source("s"), z=Arith(ArithOp.ADD, column("s.x"), Literal(1, INT)))
    assert get(known, fold(more, seconds(10), total="SUM:p.z"), S=S) == []


def test_an_aggregate_of_an_aggregate_sees_released_rows_only():
    known = catalog(aggregate_grant("g", "S", "SUM:x"), read("r", "S", where=compare("S.k", "=", 2)))
    inner = total(window=seconds(10))
    query = fold(inner, seconds(100), qualifier="b", n="COUNT:*", most="MAX:a.total")
    assert get(known, query, S=S) == [
        {"_grant": "g", "most": 6.0, "n": 2, "window": (0, 100)},
        {"most": 2.0, "n": 1, "window": (0, 100)},
    ]


def test_windows_are_widened():
    known = catalog(aggregate_grant("g", "S", "SUM:x", least=least(20, 10)))
    assert get(known, total(window=seconds(5)), S=S) == [
        {"_grant": "g", "total": 10.0, "window": (0, 20)},
        {"_grant": "g", "total": 4.0, "window": (10, 30)},
        {"_grant": "g", "total": 6.0, "window": (-10, 10)},
    ]


def test_a_window_of_the_other_kind_is_refused():
    by_time, by_rows = aggregate_grant("g", "S", "SUM:x", least=least(5)), LeastWindow(2, 1, rows=True)
    assert get(catalog(by_time), total(window=rows(2)), S=S) == []
    counted = catalog(aggregate_grant("g", "S", "SUM:x", least=by_rows))
    assert get(counted, total(), S=S) == []
    assert get(counted, total(window=rows(1)), S=S[:3]) == [
        {"_grant": "g", "total": 3.0},
        {"_grant": "g", "total": 5.0},
    ]


def test_during_must_hold_the_whole_window():
    known = catalog(aggregate_grant("g", "S", "SUM:x", during=during(0, 15)))
    assert get(known, total(), S=S) == [{"_grant": "g", "total": 6.0, "window": (0, 10)}]
    inside = catalog(aggregate_grant("g", "S", "SUM:x", during=during(1, 30)))
    assert get(inside, total(), S=S) == [{"_grant": "g", "total": 4.0, "window": (10, 20)}]


def test_during_with_an_unset_fact_gives_nothing():
    known = catalog(aggregate_grant("g", "S", "SUM:x", during=during(fact("start"), None)))
    assert get(known, total(), S=S) == []


def test_min_group_withholds_small_groups():
    known = catalog(aggregate_grant("g", "S", "SUM:x", by="g", min_group=2))
    assert get(known, total(by="s.g"), S=S[:3]) == [
        {"_grant": "g", "g": "a", "total": 4.0, "window": (0, 10)}
    ]


def test_min_group_counts_only_what_could_not_be_read():
    grant = aggregate_grant("g", "S", "SUM:x", min_group=2)
    one = catalog(grant, read("r", "S", "x", where=compare("S.k", "<=", 2)))
    assert get(one, total(), S=S[:3]) == [{"total": 3.0, "window": (0, 10)}]
    every = catalog(grant, read("r", "S", "x"))
    assert get(every, total(), S=S[:1]) == [
        {"_grant": "g", "total": 1.0, "window": (0, 10)},
        {"total": 1.0, "window": (0, 10)},
    ]
    other = catalog(grant, read("r", "S", "k"))
    assert get(other, total(), S=S[:1]) == []


def test_readable_rows_stand_beside_those_of_grants():
    known = catalog(
        aggregate_grant("g", "S", "SUM:x"), aggregate_grant("h", "S", "SUM:x", where=OWN), read("r", "S")
    )
    found = get(known, total(), S=S[:2])
    assert found == [
        {"_grant": "g", "total": 3.0, "window": (0, 10)},
        {"_grant": "h", "total": 1.0, "window": (0, 10)},
        {"total": 3.0, "window": (0, 10)},
    ]


def test_a_having_needs_its_function_covered():
    inner = total(total="SUM:s.x", most="MAX:s.x")
    query = select(inner, Compare(Op.GT, find(inner, "a.most"), find(inner, "a.total")))
    assert get(catalog(aggregate_grant("g", "S", "SUM:x")), query, S=S) == []
    assert ask(catalog(aggregate_grant("g", "S", "SUM:x MAX:x")), query, S=S).decision_allows is True


def test_an_aggregate_grant_over_a_join():
    same = compare("S.k", "=", "T.k")
    T = tuples("T", (9, 1, 0.5), (1, 2, 1.5))
    query = fold(join(source("s"), source("t"), "s.k", "t.k", size=seconds(5)), seconds(10), total="SUM:t.y")
    plain = catalog(aggregate_grant("g", "S T", "SUM:T.y", where=same))
    assert get(plain, query, S=S, T=T) == [{"_grant": "g", "total": 1.5, "window": (0, 10)}]
    wide = catalog(aggregate_grant("g", "S T", "SUM:T.y", where=same, least=least(10)))
    assert get(wide, query, S=S, T=T) == [{"_grant": "g", "total": 2.0, "window": (0, 10)}]
    assert get(catalog(aggregate_grant("g", "S T", "SUM:T.y")), query, S=S, T=T) == []


def test_an_aggregate_grant_does_not_serve_rows_joins():
    same = compare("S.k", "=", "T.k")
    node = join(source("s"), source("t"), "s.k", "t.k", size=rows(5), other=seconds(10))
    known = catalog(aggregate_grant("g", "S T", "SUM:T.y", where=same))
    assert ask(known, fold(node, seconds(10), total="SUM:t.y")).decision_allows is False


def test_a_join_of_released_rows_carries_both_names():
    known = catalog(aggregate_grant("g", "S", "SUM:x"), aggregate_grant("b", "T", "MAX:y"))
    left, right = total(), fold(source("t"), seconds(10), qualifier="c", most="MAX:t.y")
    query = project(join(left, right), total="a.total", most="c.most")
    found = get(known, query, S=S[:1], T=tuples("T", (1, 1, 0.5)))
    assert found == [{"_grant": "b+g", "most": 0.5, "total": 1.0}]


def test_united_adds_readable_tuples():
    known = catalog(
        aggregate_grant("g", "S", "SUM:x", where=OWN), read("r", "S", "x k", where=compare("S.k", "=", 2))
    )
    assert get(known, total(), united=True, S=S[:3]) == [{"_grant": "g", "total": 6.0, "window": (0, 10)}]
    assert len(get(known, total(), S=S[:3])) == 2


def test_united_counts_a_tuple_once_and_only_what_is_shown():
    grant = aggregate_grant("g", "S", "SUM:x", where=OWN)
    assert get(catalog(grant, read("r", "S", "x")), total(), united=True, S=S[:3]) == [
        {"_grant": "g", "total": 6.0, "window": (0, 10)}
    ]
    hidden = catalog(grant, read("r", "S", "k"))
    query = total(total="SUM:s.x", most="MAX:s.k")
    assert get(hidden, query, united=True, S=S[:3]) == [{"_grant": "g", "total": 4.0, "window": (0, 10)}]


def test_united_without_a_grant_gives_the_readable_rows():
    assert get(catalog(read("r", "S")), total(), united=True, S=S[:3]) == [{"total": 6.0, "window": (0, 10)}]


def test_min_group_is_not_united():
    known = catalog(aggregate_grant("g", "S", "SUM:x", where=OWN, min_group=2), read("r", "S", "x"))
    assert get(known, total(), united=True, S=S[1:3]) == [
        {"_grant": "g", "total": 3.0, "window": (0, 10)},
        {"total": 5.0, "window": (0, 10)},
    ]


@pytest.mark.parametrize("query", [total(window=rows(2)), total(mean="AVG:s.x"), total(last="LAST:s.x")])
def test_united_is_refused(query):
    with pytest.raises(ValueError, match="UNITED"):
        ask(catalog(), query, united=True)


def test_a_grant_on_one_stream_twice_is_read_both_ways():
    where = conjoin(compare("sa.k", "=", "sb.k"), compare("sa.g", "=", "a"))
    known = catalog(aggregate_grant("g", "S:sa S:sb", "SUM:sa.x SUM:sb.x", where=where))
    query = fold(join(source("s1"), source("s2"), "s1.k", "s2.k"), seconds(10), total="SUM:s1.x")
    data = tuples("S", (1, 1, "a", 1.0), (2, 1, "b", 2.0))
    assert get(known, query, S=data) == [
        {"_grant": "g", "total": 2.0, "window": (0, 10)},
        {"_grant": "g", "total": 3.0, "window": (0, 10)},
    ]

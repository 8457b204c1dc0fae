"""R1, R4, R5 by hand: single streams, what is shown, masks, unions, principals."""

from __future__ import annotations

import pytest

from sluicegate.expr.nodes import Arith, ArithOp, Compare, Literal, Op, SelfRef
from sluicegate.expr.types import DOUBLE, INT, STRING
from sluicegate.graph.operators import Field, Item, Project, Union
from sluicegate.policy.model import Subject
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
    project,
    read,
    rows,
    seconds,
    select,
    set_fact,
    source,
    tuples,
)

S = tuples("S", (1, 1, "a", 1.0), (2, 2, "b", 2.0), (3, None, "a", None))
OWN = compare("S.g", "=", SelfRef("g", STRING))


def names(*attributes: str) -> Project:
    return project(source("s"), **{each: f"s.{each}" for each in attributes})


def test_rows_that_a_grant_matches_are_shown():
    assert get(catalog(read("r", "S", where=OWN)), names("k"), S=S) == [{"k": 1}, {"k": None}]


def test_without_a_grant_nothing_is_shown():
    result = ask(catalog(), names("k"), S=S)
    assert (result.rows, result.decision_allows) == ([], False)


@pytest.mark.parametrize(
    ("subject", "count"),
    [
        (Subject("junior"), 3),
        (Subject("other"), 0),
        (Subject("u", True), 3),
        (Subject("u"), 0),
        (Subject("v", True), 0),
    ],
)
def test_a_grant_counts_for_the_user_and_inherited_roles(subject, count):
    assert len(get(catalog(read("r", "S", to=subject)), names("k"), S=S)) == count


def test_a_disabled_user_sees_nothing():
    assert get(catalog(read("r", "S"), disabled=True), names("k"), S=S) == []


def test_a_closed_grant_allows_nothing():
    assert get(catalog(read("r", "S", closed="dropped")), names("k"), S=S) == []


def test_a_missing_profile_attribute_is_no():
    assert get(catalog(read("r", "S", where=OWN), profile={}), names("k"), S=S) == []


def test_a_withheld_output_is_absent_and_null_is_not():
    assert get(catalog(read("r", "S", "k")), names("k", "x"), S=S[1:]) == [{"k": 2}, {"k": None}]


def test_where_nothing_is_left_no_row_is():
    result = ask(catalog(read("r", "S", "k")), names("x"), S=S)
    assert (result.rows, result.decision_allows) == ([], False)


def test_a_predicate_over_a_hidden_attribute_drops_the_grant():
    query = project(select(source("s"), "s.x", ">", 0.0), k="s.k")
    assert get(catalog(read("r", "S", "k")), query, S=S) == []


def test_a_computed_output_requires_its_attributes():
    query = project(source("s"), k="s.k", more=Arith(ArithOp.ADD, column("s.x"), Literal(1, INT)))
    assert get(catalog(read("r", "S", "k")), query, S=S) == []
    assert get(catalog(read("r", "S", "k x")), query, S=S[:1]) == [{"k": 1, "more": 2.0}]


def test_dead_columns_of_a_nested_query_do_not_count():
    inner = project(source("s"), k="s.k", dead=Arith(ArithOp.ADD, column("s.x"), Literal(1, INT)))
    assert get(catalog(read("r", "S", "k")), project_again(inner), S=S[:1]) == [{"k": 1}]


def project_again(inner):
    return Project(inner, (Item(Field("o", "k", INT), find(inner, "p.k")),))


def test_two_grants_with_different_attributes_never_meet_in_a_row():
    known = catalog(read("a", "S", "k g"), read("b", "S", "k x"))
    assert get(known, names("k", "g", "x"), S=S[:1]) == [{"k": 1, "g": "a"}, {"k": 1, "x": 1.0}]


def test_equal_and_smaller_shown_sets_are_given_once():
    known = catalog(
        read("a", "S", "k g"), read("b", "S", "k g x"), read("c", "S", "ts k g"), read("d", "S", "k")
    )
    assert get(known, names("k", "g"), S=S[:1]) == [{"k": 1, "g": "a"}]


def test_the_largest_set_is_judged_for_each_row():
    known = catalog(read("all", "S", "k"), read("own", "S", "k x", where=OWN))
    assert get(known, names("k", "x"), S=S[:2]) == [{"k": 1, "x": 1.0}, {"k": 2}]


def test_duplicates_stay():
    assert get(catalog(read("r", "S")), names("k"), S=S[:1] * 2) == [{"k": 1}, {"k": 1}]


def test_a_union_keeps_the_authorized_branch():
    other = project(source("t"), k="t.k")
    union = Union((names("k"), other), (Field("u", "k", INT),))
    T = tuples("T", (1, 7, 0.0))
    assert get(catalog(read("r", "T")), union, S=S, T=T) == [{"k": 7}]
    assert get(catalog(read("r", "T"), read("q", "S", "k", where=OWN)), union, S=S[:2], T=T) == [
        {"k": 1},
        {"k": 7},
    ]


def test_a_union_branch_masks_its_own_rows():
    branches = (names("k", "x"), project(source("t"), k="t.k", x="t.y"))
    union = Union(branches, (Field("u", "k", INT), Field("u", "x", DOUBLE)))
    known = catalog(read("a", "S", "k"), read("b", "T"))
    assert get(known, union, S=S[:1], T=tuples("T", (1, 7, 0.5))) == [{"k": 1}, {"k": 7, "x": 0.5}]


def test_during_is_closed_and_by_event_time():
    known = catalog(read("r", "S", during=during(2, 3)))
    late = tuples("S", (1, 1), (2, 2), (3, 3), (4, 4), (None, 5))
    assert get(known, names("k"), S=late) == [{"k": 2}, {"k": 3}]


@pytest.mark.parametrize(
    ("lower", "upper", "facts", "count"),
    [
        (fact("start"), None, (), 0),
        (fact("start"), None, ("start",), 2),
        (fact("start"), fact("finish"), ("start",), 2),
        (fact("start"), fact("finish"), ("finish",), 0),
        (2, fact("finish"), (), 2),
        (None, fact("finish"), (), 0),
        (None, fact("finish"), ("finish",), 2),
        (None, None, (), 3),
    ],
)
def test_unset_facts_in_during(lower, upper, facts, count):
    known = catalog(read("r", "S", during=during(lower, upper)), facts=[set_fact(name, 2) for name in facts])
    assert len(get(known, names("k"), S=S)) == count


def test_a_table_has_no_event_time_to_judge():
    query = project(source("d"), k="d.k")
    known = catalog(read("r", "D", during=during(5, 6)))
    assert get(known, query, D=tuples("D", (1, "one"))) == [{"k": 1}]


def test_a_readable_aggregate_has_one_population_over_grants():
    known = catalog(read("a", "S", where=OWN), read("b", "S", where=compare("S.k", "=", 2)))
    query = fold(source("s"), seconds(10), n="COUNT:*", total="SUM:s.x")
    assert get(known, query, S=S) == [{"n": 3, "total": 3.0, "window": (0, 10)}]


def test_populations_of_different_shown_sets_are_not_mixed():
    known = catalog(read("all", "S", "k"), read("own", "S", "k x", where=OWN))
    query = fold(source("s"), seconds(10), total="SUM:s.x", most="MAX:s.k")
    found = get(known, query, S=S[:2])
    assert found == [{"most": 1, "total": 1.0, "window": (0, 10)}, {"most": 2, "window": (0, 10)}]


def test_a_node_without_any_visible_function_is_dropped():
    known = catalog(read("r", "S", "g"))
    query = fold(source("s"), seconds(10), by="s.g", total="SUM:s.x")
    assert get(known, query, S=S) == []
    assert get(known, fold(source("s"), seconds(10), by="s.g", n="COUNT:*"), S=S[1:2]) == [
        {"g": "b", "n": 1, "window": (0, 10)}
    ]


def test_a_having_makes_the_argument_required():
    inner = fold(source("s"), seconds(10), total="SUM:s.x", most="MAX:s.k")
    query = select(inner, Compare(Op.GT, find(inner, "a.total"), Literal(0.0, DOUBLE)))
    assert get(catalog(read("r", "S", "k")), query, S=S) == []
    assert get(catalog(read("r", "S", "x")), query, S=S) == [{"total": 3.0, "window": (0, 10)}]


def test_functions_of_an_aggregate_that_nothing_uses_still_need_one_that_is_shown():
    inner = fold(source("s"), seconds(10), by="s.g", total="SUM:s.x")
    query = project(inner, g="a.g")
    assert get(catalog(read("r", "S", "g")), query, S=S[:1]) == []
    assert get(catalog(read("r", "S", "g x")), query, S=S[:1]) == [{"g": "a", "window": (0, 10)}]


def test_sliding_windows_and_gaps():
    data = tuples("S", (1, 1), (6, 2), (11, 3))
    known = catalog(read("r", "S"))
    sliding = get(known, fold(source("s"), seconds(10, 5), n="COUNT:*"), S=data)
    assert sliding == [
        {"n": 1, "window": (-5, 5)},
        {"n": 1, "window": (10, 20)},
        {"n": 2, "window": (0, 10)},
        {"n": 2, "window": (5, 15)},
    ]
    assert get(known, fold(source("s"), seconds(5, 10), n="COUNT:*"), S=data) == [
        {"n": 1, "window": (0, 5)},
        {"n": 1, "window": (10, 15)},
    ]


def test_tuple_windows_count_arrival_within_what_passes():
    data = tuples("S", (9, 1, "a"), (1, 2, "b"), (5, 3, "a"), (7, 4, "a"), (None, 5, "a"))
    known = catalog(read("r", "S", where=OWN))
    query = fold(source("s"), rows(2), total="SUM:s.k", first="FIRST:s.k", last="LAST:s.k")
    assert get(known, query, S=data) == [
        {"first": 3, "last": 1, "total": 4},
        {"first": 3, "last": 4, "total": 7},
    ]


def test_aggregates_of_nulls():
    data = tuples("S", (1, None, "a", None), (2, None, None, None))
    query = fold(
        source("s"),
        seconds(10),
        n="COUNT:*",
        k="COUNT:s.k",
        d="COUNT DISTINCT:s.g",
        low="MIN:s.x",
        mean="AVG:s.x",
    )
    assert get(catalog(read("r", "S")), query, S=data) == [
        {"n": 2, "k": 0, "d": 1, "low": None, "mean": None, "window": (0, 10)}
    ]


def test_null_is_a_group_of_its_own():
    query = fold(source("s"), seconds(10), by="s.k", n="COUNT:*")
    data = tuples("S", (1, None), (2, None), (3, 1))
    assert get(catalog(read("r", "S")), query, S=data) == [
        {"k": 1, "n": 1, "window": (0, 10)},
        {"k": None, "n": 2, "window": (0, 10)},
    ]


def test_an_aggregate_of_an_aggregate_goes_by_the_last_instant():
    inner = fold(source("s"), seconds(5), n="COUNT:*")
    query = fold(inner, seconds(10), qualifier="b", most="MAX:a.n")
    data = tuples("S", (1, 1), (2, 2), (9, 3), (10, 4))
    assert get(catalog(read("r", "S")), query, S=data) == [
        {"most": 1, "window": (10, 20)},
        {"most": 2, "window": (0, 10)},
    ]


def test_a_source_used_twice_is_refused():
    part = names("k")
    with pytest.raises(ValueError, match="used twice"):
        ask(catalog(), Union((part, part), (Field("u", "k", INT),)), S=S)


def test_an_aggregate_grant_does_not_read():
    known = catalog(aggregate_grant("g", "S", "SUM:x"))
    assert ask(known, names("k"), S=S).decision_allows is False

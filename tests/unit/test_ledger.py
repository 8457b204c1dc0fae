"""R8: what may be given beside what was given before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate.expr.nodes import TRUE, Column, Compare, Expr, Literal, Op
from sluicegate.expr.types import DOUBLE
from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.policy.entries import Entry, Extent, counts_beside
from sluicegate.policy.ledger import LEDGER_CODES, Admitted, Refused, admit, admit_each
from sluicegate.policy.model import Grant, LeastWindow, Privilege, StreamRef, Subject

HOUR = 3_600_000_000


def grant(name: str, size: int | None, step: int | None = None, rows: bool = False) -> Grant:
    least = None if size is None else LeastWindow(size, size if step is None else step, rows)
    return Grant(name, Subject("Doctor"), Privilege.AGGREGATE, (StreamRef("S", "S"),), least=least)


GRANTS = {
    each.name: each
    for each in (
        grant("one", HOUR),
        grant("two", 2 * HOUR),
        grant("three", 3 * HOUR),
        grant("any", None),
        grant("rows", 3, 2, rows=True),
        grant("slide", 2 * HOUR, HOUR),
    )
}


def entry(
    name: str, size: int, step: int | None = None, function: str = "SUM", of: str | None = "x"
) -> Entry:
    window = TimeWindow(size * HOUR, (size if step is None else step) * HOUR)
    attribute = None if of is None else ("S", of)
    return Entry("ann", name, ("S",), AggFunction(function), attribute, window)


def tuples(size: int, step: int, function: str = "SUM") -> Entry:
    return Entry("ann", "rows", ("S",), AggFunction(function), ("S", "x"), TupleWindow(size, step))


def refuse(past: list[Entry], asked: Entry) -> Refused:
    answer = admit(past, [asked], GRANTS)
    assert isinstance(answer, Refused)
    assert answer.code in LEDGER_CODES
    assert answer.entry == asked
    return answer


def accept(past: list[Entry], *asked: Entry) -> Admitted:
    answer = admit(past, asked, GRANTS)
    assert isinstance(answer, Admitted), answer
    return answer


def at_least(value: int) -> Expr:
    return Compare(Op.GE, Column("S", "rain", DOUBLE), Literal(value, DOUBLE))


def below(value: int) -> Expr:
    return Compare(Op.LT, Column("S", "rain", DOUBLE), Literal(value, DOUBLE))


def test_identical_windows_are_fine() -> None:
    accept([entry("slide", 2, 1)], entry("slide", 2, 1))


def test_windows_on_a_common_grid_are_fine() -> None:
    accept([entry("two", 2)], entry("two", 6, 2), entry("two", 4))


def test_windows_off_the_grid_are_refused_and_the_grid_is_named() -> None:
    answer = refuse([entry("two", 6)], entry("two", 5))
    assert answer.code == "ledger-grid"
    assert answer.grid == LeastWindow(2 * HOUR, 2 * HOUR)
    assert "multiples of 2 hours" in answer.message
    accept([entry("two", 6)], entry("two", 4))


def test_a_step_off_the_grid_is_refused() -> None:
    assert refuse([entry("two", 4)], entry("two", 4, 3)).code == "ledger-grid"


def test_sizes_that_pair_up_but_share_no_cell_are_refused() -> None:
    past = [entry("two", 6), entry("two", 10)]
    accept([], *past)
    assert refuse(past, entry("two", 15)).code == "ledger-grid"


def test_beside_a_sliding_window_only_the_same_is_accepted() -> None:
    answer = refuse([entry("slide", 2, 1)], entry("slide", 2))
    assert answer.grid is None
    assert "only 2 hours every 1 hour is accepted" in answer.message


def test_grants_without_a_least_window_leave_nothing_to_find_out() -> None:
    accept([entry("any", 2)], entry("any", 3, 1))


def test_one_query_under_a_fine_and_a_coarse_grant() -> None:
    accept([], entry("one", 1), entry("two", 2))


def test_grants_whose_least_windows_share_no_grid() -> None:
    answer = refuse([entry("two", 2)], entry("three", 3))
    assert answer.grid == LeastWindow(4 * HOUR, 4 * HOUR)
    accept([entry("two", 2)], entry("three", 4))


def test_a_coarse_grant_is_held_to_its_own_grid_beside_a_fine_one() -> None:
    accept([entry("one", 1)], entry("two", 4), entry("two", 6))
    assert refuse([entry("one", 1), entry("two", 4)], entry("two", 5)).code == "ledger-grid"


def test_a_grant_that_is_gone_allows_nothing_finer_than_it_gave() -> None:
    accept([entry("gone", 4)], entry("one", 8))
    accept([entry("gone", 4)], entry("one", 1))
    assert refuse([entry("gone", 4)], entry("gone", 6)).code == "ledger-grid"


def test_a_raised_least_window_does_not_refuse_for_what_was_given() -> None:
    accept([entry("two", 1)], entry("two", 2))


@pytest.mark.parametrize(
    "changes",
    [
        {"principal": "bob"},
        {"streams": ("T",), "attribute": ("T", "x")},
        {"streams": ("S", "T"), "attribute": ("T", "x")},
        {"function": AggFunction.MAX},
        {"attribute": ("S", "y")},
    ],
)
def test_ledgers_are_apart(changes: dict[str, object]) -> None:
    accept([entry("two", 2)], replace(entry("two", 3), **changes))


def test_an_attribute_has_one_account_whatever_its_stream_is_joined_with() -> None:
    """Sums in windows of 10 and of 15 minutes, one of them over a join: together those of 5 minutes."""
    joined = replace(entry("two", 3), streams=("S", "T"), join_windows=(TimeWindow(HOUR, 0),) * 2)
    assert refuse([entry("two", 2)], joined).code == "ledger-grid"
    assert refuse([joined], entry("two", 2)).code == "ledger-grid"
    accept([entry("two", 2)], replace(joined, window=TimeWindow(4 * HOUR, 2 * HOUR)))
    average = replace(joined, function=AggFunction.AVG)
    assert refuse([entry("two", 2, function="AVG")], average).code == "ledger-average"
    narrowed = replace(entry("two", 2), narrowing=at_least(5))
    other = replace(joined, grant="one", window=narrowed.window, narrowing=TRUE)
    assert refuse([narrowed], other).code == "ledger-narrowing"


def test_rows_have_one_account_with_every_input_that_shares_a_stream() -> None:
    rows = entry("two", 2, function="COUNT", of=None)
    joined = replace(entry("two", 3, function="COUNT", of=None), streams=("S", "T"))
    assert refuse([rows], joined).code == "ledger-grid"
    assert refuse([joined], replace(rows, streams=("T", "U"))).code == "ledger-grid"
    accept([rows], replace(joined, streams=("T", "U")))


def test_tuple_windows_of_a_stream_and_of_a_join_with_it() -> None:
    joined = replace(tuples(6, 6), grant="two", streams=("S", "T"))
    assert refuse([tuples(5, 5)], joined).code == "ledger-tuples"
    assert refuse([tuples(5, 5)], replace(joined, window=TupleWindow(5, 5))).code == "ledger-tuples"
    assert counts_beside(tuples(5, 5), joined)
    assert counts_beside(tuples(5, 5), tuples(5, 5, "MAX"))
    assert not counts_beside(tuples(5, 5), replace(joined, function=AggFunction.MAX))


def test_event_time_that_does_not_overlap_is_free() -> None:
    before, after = Extent(0, 100 * HOUR), Extent(100 * HOUR, None)
    accept([replace(entry("two", 2), extent=before)], replace(entry("two", 3), extent=after))
    overlapping = replace(entry("two", 3), extent=Extent(99 * HOUR, None))
    assert isinstance(admit([replace(entry("two", 2), extent=before)], [overlapping], GRANTS), Refused)


def test_event_time_counts_by_chains() -> None:
    """Whole minus both parts is the one hour between them."""
    first = replace(entry("two", 14), extent=Extent(0, 14 * HOUR))
    last = replace(entry("two", 15), extent=Extent(15 * HOUR, 210 * HOUR))
    whole = replace(entry("two", 210), extent=Extent(0, 210 * HOUR))
    accept([first], last)
    assert refuse([first, last], whole).code == "ledger-grid"
    assert refuse([first, whole], last).code == "ledger-grid"


def test_an_extent_that_was_given_is_given_again() -> None:
    past = [entry("two", 2), entry("two", 3)]  # such a past is left by a change of grants
    accept(past, replace(entry("two", 3), extent=Extent(0, HOUR)))


def test_averages_are_given_in_one_window_and_one_grouping() -> None:
    average = entry("two", 2, function="AVG")
    accept([average], average)
    assert refuse([average], entry("two", 4, function="AVG")).code == "ledger-average"
    assert refuse([average], replace(average, grouping=(("S", "k"),))).code == "ledger-average"


@pytest.mark.parametrize("function", ["FIRST", "LAST", "MIN", "MAX", "COUNT DISTINCT"])
def test_other_functions_use_the_grid(function: str) -> None:
    accept([entry("two", 2, function=function)], entry("two", 4, function=function))
    assert refuse([entry("two", 2, function=function)], entry("two", 3, function=function)).grid is not None


def test_counts_are_one_function_whatever_they_count() -> None:
    past = [entry("two", 2, function="COUNT", of=None)]
    assert refuse(past, entry("two", 3, function="COUNT", of="y")).code == "ledger-grid"


@pytest.mark.parametrize(("given", "asked"), [("COUNT", "COUNT DISTINCT"), ("MAX", "LAST"), ("MIN", "FIRST")])
def test_functions_that_agree_on_keys_or_growing_values_share_a_grid(given: str, asked: str) -> None:
    for one, other in ((given, asked), (asked, given)):
        past = [entry("two", 2, function=one)]
        assert refuse(past, entry("two", 3, function=other)).code == "ledger-grid"
        accept(past, entry("two", 2, function=other), entry("two", 4, function=other))
    accept([entry("two", 2, function="MAX")], entry("two", 3, function="FIRST"))


def test_counts_of_two_keys_share_a_grid() -> None:
    past = [entry("two", 2, function="COUNT DISTINCT")]
    assert refuse(past, entry("two", 3, function="COUNT DISTINCT", of="y")).code == "ledger-grid"


@pytest.mark.parametrize("count", ["COUNT", "COUNT DISTINCT"])
@pytest.mark.parametrize("last", ["SUM", "AVG", "COUNT"])
def test_sum_count_and_average_make_each_other_up(last: str, count: str) -> None:
    entries = {
        "SUM": entry("two", 2),
        "AVG": entry("two", 3, function="AVG"),
        "COUNT": entry("two", 3, function=count, of="id"),
    }
    asked = entries.pop(last)
    accept([], *entries.values())
    assert refuse(list(entries.values()), asked).code == "ledger-made-up"


def test_sum_count_and_average_on_one_grid() -> None:
    accept([], entry("two", 2), entry("two", 6, function="AVG"), entry("three", 3, function="COUNT", of=None))


def test_narrowings_of_one_grant_must_be_apart() -> None:
    narrowed = replace(entry("two", 2), narrowing=at_least(5))
    accept([narrowed], replace(narrowed, narrowing=below(5)))
    assert refuse([narrowed], replace(narrowed, narrowing=at_least(7))).code == "ledger-narrowing"
    assert refuse([narrowed], entry("two", 2)).code == "ledger-narrowing"
    assert (
        refuse([narrowed], replace(entry("two", 2, function="MAX"), narrowing=at_least(7))).code
        == "ledger-narrowing"
    )


def test_narrowings_under_another_grant_must_be_apart() -> None:
    """Else who may grant to itself would narrow the same twice."""
    narrowed = replace(entry("two", 2), narrowing=at_least(5))
    for other in ("one", "gone"):
        for asked in (at_least(7), TRUE):
            answer = refuse([narrowed], replace(entry(other, 2), narrowing=asked))
            assert answer.code == "ledger-narrowing"
            assert "`two`" in answer.message
        accept([narrowed], replace(entry(other, 2), narrowing=below(5)))
        accept([narrowed], replace(entry(other, 2), narrowing=at_least(5)))
    accept([narrowed], replace(entry("one", 2, of="y"), narrowing=at_least(7)))


@pytest.mark.parametrize(
    ("given", "asked"), [("SUM", "AVG"), ("AVG", "SUM"), ("COUNT", "AVG"), ("AVG", "COUNT")]
)
def test_an_average_is_bound_by_what_another_grant_gives_of_its_sum_and_count(given: str, asked: str) -> None:
    """AVG · COUNT under a copy of the grant is the sum that the grant itself gives."""
    past = entry("two", 2, function=given)
    other = entry("one", 2, function=asked)
    accept([past], other)
    assert refuse([past], replace(other, narrowing=at_least(1))).code == "ledger-narrowing"
    assert refuse([replace(past, min_group=5)], entry("one", 4, function=asked)).code == "ledger-min-group"
    joined = [
        replace(each, streams=("S", "T"), join_windows=(TimeWindow(size, 0),) * 2)
        for each, size in ((past, HOUR), (other, 2 * HOUR))
    ]
    assert refuse([joined[0]], joined[1]).code == "ledger-join-window"


def test_sums_and_counts_alone_do_not_make_each_other_up() -> None:
    narrowed = replace(entry("one", 2, function="COUNT"), narrowing=at_least(1))
    accept([entry("two", 2)], narrowed)
    accept([entry("two", 2)], replace(entry("one", 2, function="AVG", of="y"), narrowing=at_least(1)))


def test_narrowings_are_compared_by_streams_whatever_their_aliases() -> None:
    grants = {
        name: replace(GRANTS["two"], name=name, streams=tuple(StreamRef(*each) for each in streams))
        for name, streams in {
            "plain": (("S", "S"), ("T", "T")),
            "turned": (("T", "S"), ("S", "T")),
        }.items()
    }
    first = replace(entry("plain", 2), streams=("S", "T"), narrowing=at_least(5))
    for name, narrowing in (("turned", at_least(5)), ("turned", below(5)), ("gone", at_least(5))):
        answer = admit([first], [replace(first, grant=name, narrowing=narrowing)], grants)
        assert isinstance(answer, Refused), (name, narrowing)
        assert answer.code == "ledger-narrowing"
    own = Compare(Op.GE, Column("T", "rain", DOUBLE), Literal(5, DOUBLE))
    assert isinstance(admit([first], [replace(first, grant="turned", narrowing=own)], grants), Admitted)


def test_join_windows_under_another_grant_are_not_mixed() -> None:
    streams = {"plain": ("S", "T"), "turned": ("T", "S"), "copy": ("S", "T")}
    grants = {
        name: replace(GRANTS["two"], name=name, streams=tuple(StreamRef(each, each) for each in named))
        for name, named in streams.items()
    }
    uneven = (TimeWindow(HOUR, 0), TimeWindow(2 * HOUR, 0))
    joined = replace(entry("plain", 2), streams=("S", "T"), join_windows=uneven)
    for name, windows, fine in (
        ("copy", uneven, True),
        ("copy", uneven[::-1], False),
        ("turned", uneven, False),
        ("gone", uneven, False),
    ):
        answer = admit([joined], [replace(joined, grant=name, join_windows=windows)], grants)
        assert isinstance(answer, Admitted) == fine, (name, windows)
        assert fine or answer.code == "ledger-join-window"  # type: ignore[union-attr]
    even = replace(joined, join_windows=uneven[:1] * 2)
    assert isinstance(admit([even], [replace(even, grant="turned")], grants), Admitted)


def test_join_windows_are_not_mixed() -> None:
    joined = replace(
        entry("two", 2), streams=("S", "T"), join_windows=(TimeWindow(HOUR, 0), TimeWindow(HOUR, 0))
    )
    wider = replace(joined, join_windows=(TimeWindow(HOUR, 0), TimeWindow(2 * HOUR, 0)))
    accept([joined], joined)
    assert refuse([joined], wider).code == "ledger-join-window"


def test_tuple_windows_are_given_one_at_a_time() -> None:
    assert accept([tuples(3, 2)], tuples(3, 2)).continues == (tuples(3, 2),)
    assert refuse([tuples(3, 2)], tuples(6, 2)).code == "ledger-tuples"
    assert refuse([tuples(3, 2)], replace(tuples(3, 2), grant="other")).code == "ledger-tuples"
    assert refuse([tuples(3, 2)], replace(tuples(3, 2), narrowing=at_least(5))).code == "ledger-tuples"
    assert refuse([tuples(3, 2)], entry("two", 2)).code == "ledger-tuples"


def test_a_tuple_window_is_continued_on_later_event_time() -> None:
    before = replace(tuples(3, 2), extent=Extent(0, HOUR))
    assert accept([before], replace(before, extent=Extent(HOUR, None))).continues == (before,)


def test_over_tuple_windows_an_average_is_a_sum() -> None:
    accept([tuples(3, 2)], tuples(3, 2, "AVG"), tuples(4, 2, "MAX"))
    assert refuse([tuples(3, 2)], tuples(4, 2, "AVG")).code == "ledger-tuples"


def test_min_group_allows_one_window_and_one_grouping() -> None:
    small = replace(entry("two", 2), min_group=5, grouping=(("S", "k"),))
    accept([small], replace(small, function=AggFunction.MAX))
    assert refuse([small], replace(small, grouping=())).code == "ledger-min-group"
    assert refuse([small], replace(small, window=TimeWindow(4 * HOUR, 4 * HOUR))).code == "ledger-min-group"
    assert refuse([small], replace(small, function=AggFunction.MAX, grouping=())).code == "ledger-min-group"
    assert refuse([small], entry("one", 2)).code == "ledger-min-group"


def test_under_min_group_windows_do_not_overlap() -> None:
    """Two that share all but a small group differ by it: refused by itself, and beside an equal past."""
    for window in (TimeWindow(4 * HOUR, 2 * HOUR), TupleWindow(4, 3)):
        sliding = replace(entry("two", 2), window=window, min_group=5)
        assert refuse([], sliding).code == "ledger-min-group"
        assert refuse([sliding], sliding).code == "ledger-min-group"
        accept([], replace(sliding, min_group=0))


def test_groupings_are_sets_and_streams_are_multisets() -> None:
    one = replace(entry("two", 2), streams=("T", "S"), grouping=(("S", "b"), ("S", "a")))
    assert one == replace(entry("two", 2), streams=("S", "T"), grouping=(("S", "a"), ("S", "b")))


def test_first_come_first_served() -> None:
    given, refused = admit_each([], [entry("two", 2), entry("three", 3), entry("two", 4)], GRANTS)
    assert given.entries == (entry("two", 2), entry("two", 4))
    assert [each.entry for each in refused] == [entry("three", 3)]


def test_a_long_past_is_read_quickly() -> None:
    past = [replace(entry("two", 2 * (1 + at % 50)), extent=Extent(at, at + 5)) for at in range(2_000)]
    answer = admit(past, [entry("two", 7)], GRANTS)
    assert isinstance(answer, Refused)
    assert answer.grid == LeastWindow(2 * HOUR, 2 * HOUR)

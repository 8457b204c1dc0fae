"""Privacy switches (seed 003, Algorithm 1; R16, R18): for whom a query is open, and what lies within that."""

from __future__ import annotations

from itertools import permutations

import pytest

from sharing_world import make_plan
from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Value
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.rewrite.sharing.model import Network, SwitchKind
from sluicegate.rewrite.sharing.optimize import build_network
from sluicegate.rewrite.sharing.place_switches import place_switches
from sluicegate.rewrite.sharing.run_network import NetworkRun, run_network
from sluicegate.rewrite.sharing.sessions import Element, Readers
from sluicegate.rewrite.sharing.switches import SwitchBoard

SECOND = 1_000_000


def say(sign: str, ts: int, *users: str, query: str = "Q") -> QueryPunctuation:
    return QueryPunctuation(query, frozenset(users), sign == "+", ts)


def close_all(ts: int) -> QueryPunctuation:
    return QueryPunctuation("Q", None, False, ts)


def turn(*said: QueryPunctuation) -> set[str]:
    board = SwitchBoard()
    for each in said:
        board = board.apply(each)
    return set(board.users("Q"))


def test_every_switch_starts_closed() -> None:
    assert turn() == set()
    assert SwitchBoard().find_open() == frozenset()


def test_a_repeated_punctuation_counts_once() -> None:
    """The paper's counter would be 2 after the repetition, and open after the closing."""
    assert turn(say("+", 1, "ann"), say("+", 2, "ann"), say("-", 3, "ann")) == set()
    assert turn(say("-", 1, "ann"), say("-", 2, "ann"), say("+", 3, "ann")) == {"ann"}


def test_one_user_does_not_turn_another() -> None:
    assert turn(say("+", 1, "ann", "bob"), say("-", 2, "ann")) == {"bob"}
    assert turn(say("+", 5, "ann"), say("+", 1, "bob")) == {"ann", "bob"}


def test_an_old_punctuation_is_discarded() -> None:
    assert turn(say("-", 5, "ann"), say("+", 4, "ann")) == set()
    assert turn(say("+", 5, "ann"), say("-", 4, "ann")) == {"ann"}


@pytest.mark.parametrize(
    "order", list(permutations((say("+", 3, "ann"), say("-", 3, "ann"), say("+", 2, "ann"))))
)
def test_of_one_time_the_closing_one_counts(order: tuple[QueryPunctuation, ...]) -> None:
    assert turn(*order) == set()


@pytest.mark.parametrize("order", list(permutations((say("+", 2, "ann"), close_all(3), say("+", 4, "bob")))))
def test_closing_for_everybody_is_one_word_on_each(order: tuple[QueryPunctuation, ...]) -> None:
    assert turn(*order) == {"bob"}


def test_nothing_opens_for_everybody() -> None:
    with pytest.raises(InvariantError, match="names its users"):
        QueryPunctuation("Q", None, True, 1)


def test_a_query_that_left_is_forgotten() -> None:
    board = SwitchBoard().apply(say("+", 1, "ann")).apply(say("+", 1, "ann", query="P"))
    assert board.forget("Q").find_open() == {"P"}


def at(second: int, k: int = 1, n: int = 9) -> dict[str, Value]:
    return {"ts": second * SECOND, "k": k, "g": "a", "n": n}


def of_t(second: int, k: int = 1) -> dict[str, Value]:
    return {"ts": second * SECOND, "k": k, "m": second}


def play(query: str, delay: int = 0, **streams: list[Element]) -> NetworkRun:
    network = build_network({"Q": make_plan("ann", query)})
    readers = {"Q": Readers("Q", frozenset({"ann", "bob"}))}
    return run_network(network, readers, streams, dict.fromkeys(streams, delay * SECOND))


def got(done: NetworkRun, name: str, user: str = "ann") -> list[Value]:
    return [row[name] for row in done.rows.get(("Q", user), [])]


def test_a_punctuation_acts_at_the_tuple_where_it_stands() -> None:
    done = play(
        "SELECT n FROM S",
        S=[
            at(1, n=1),
            say("+", 1, "ann"),
            at(2, n=2),
            say("-", 2, "ann"),
            at(3, n=3),
            say("+", 3, "bob"),
            at(4, n=4),
        ],
    )
    assert got(done, "n") == [2]
    assert got(done, "n", "bob") == [4]


def test_a_closed_branch_takes_no_row() -> None:
    done = play(
        "SELECT n FROM S WHERE k = 1", S=[at(1), at(2), say("+", 1, "ann"), at(3), say("-", 2, "ann"), at(4)]
    )
    assert sorted(done.taken.values()) == [1, 1, 4]


def test_a_late_tuple_is_of_before_the_opening() -> None:
    done = play("SELECT n FROM S", delay=5, S=[at(9), say("+", 1, "ann"), at(7, n=7), at(10, n=10)])
    assert got(done, "n") == [10]


def test_only_windows_that_were_open_from_begin_to_end() -> None:
    query = "SELECT COUNT(*) AS c FROM S [RANGE 10 SECONDS]"
    done = play(
        query,
        S=[at(1), say("+", 1, "ann"), at(5), at(12), at(19), at(21), say("-", 2, "ann"), at(29), at(31)],
    )
    assert [(row["window_start"], row["c"]) for row in done.rows["Q", "ann"]] == [(10 * SECOND, 2)]


def test_a_window_that_the_watermark_had_not_passed_is_not_given() -> None:
    query = "SELECT COUNT(*) AS c FROM S [RANGE 10 SECONDS]"
    streams: list[Element] = [say("+", 1, "ann"), at(5), at(12), say("-", 2, "ann"), at(20)]
    assert got(play(query, S=streams), "c") == [1]
    assert got(play(query, delay=5, S=streams), "c") == []


def test_both_sides_of_a_pair_and_what_a_window_reaches_back_to() -> None:
    pairs = "SELECT m FROM S [RANGE 10 SECONDS], T [RANGE 10 SECONDS] WHERE S.k = T.k"
    streams = {
        "S": [at(1), say("+", 1, "ann"), at(3)],
        "T": [say("+", 1, "ann"), of_t(2), say("-", 2, "ann"), of_t(4)],
    }
    assert got(play(pairs, **streams), "m") == [2]
    counted = f"SELECT COUNT(*) AS c FROM ({pairs}) AS p [RANGE 5 SECONDS]"
    open_ = {
        "S": [at(1), say("+", 1, "ann"), at(6), at(12), at(40)],
        "T": [say("+", 1, "ann"), of_t(7), of_t(13), of_t(40)],
    }
    # [5, 10) and [10, 15) reach back to before the opening, ten seconds earlier
    assert got(play(counted, **open_), "c") == [1]


def test_tuples_are_counted_from_the_opening_for_each_reader() -> None:
    done = play(
        "SELECT SUM(n) AS s FROM S [ROWS 2]",
        S=[say("+", 1, "ann"), at(1, n=1), say("+", 2, "bob"), at(2, n=2), at(3, n=4), at(4, n=8)],
    )
    assert got(done, "s") == [3, 12]
    assert got(done, "s", "bob") == [6]


def test_a_stream_that_missed_the_opening_keeps_the_query_closed() -> None:
    done = play(
        "SELECT m FROM S [RANGE 10 SECONDS], T [RANGE 10 SECONDS] WHERE S.k = T.k",
        S=[say("+", 1, "ann"), at(1)],
        T=[of_t(2)],
    )
    assert done.sessions == ()
    assert sum(count for ident, count in done.taken.items() if ident.startswith("op")) == 0


def test_who_is_not_a_reader_gets_nothing_whatever_a_punctuation_says() -> None:
    done = play("SELECT n FROM S", S=[say("+", 1, "eve"), at(1)])
    assert done.rows == {}


def test_a_query_without_a_terminal_switch_is_not_run() -> None:
    network: Network = build_network({"Q": make_plan("ann", "SELECT n FROM S")})
    switches = [each for each in place_switches(network) if each.kind is not SwitchKind.TERMINAL]
    with pytest.raises(InvariantError, match="no terminal switch"):
        run_network(network, {}, {"S": []}, {}, switches)

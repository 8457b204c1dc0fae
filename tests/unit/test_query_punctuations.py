"""Query-level punctuations as text (seed 003, R16; I6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.query_punctuations import print_query_punctuation, read_query_punctuation
from sluicegate.language.statements import InsertSP
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.source import SourceText


def read(text: str, ts: int = 7) -> QueryPunctuation:
    (statement,) = parse_statements(SourceText("<test>", text))
    assert isinstance(statement, InsertSP)
    return read_query_punctuation(statement, ts)


def test_the_papers_punctuation() -> None:
    found = read("INSERT SP INTO STREAM Stream1 LET QUERY = 'Q2', SRP = user:ann, SIGN = NEGATIVE;")
    assert found == QueryPunctuation("Q2", frozenset({"ann"}), False, 7)


@pytest.mark.parametrize(
    ("srp", "sign", "users"),
    [
        ("user:{ann, bob}", "POSITIVE", {"ann", "bob"}),
        ("dac:ann", "POSITIVE", {"ann"}),
        ("user:NONE", "POSITIVE", set()),
        ("user:ALL", "NEGATIVE", None),
    ],
)
def test_whom_it_names(srp: str, sign: str, users: set[str] | None) -> None:
    found = read(f"INSERT SP INTO STREAM S LET QUERY = 'Q', SRP = {srp}, SIGN = {sign};")
    assert found.users == (None if users is None else frozenset(users))
    assert found.positive is (sign == "POSITIVE")


@pytest.mark.parametrize(
    ("srp", "words"),
    [
        ("user:ALL", "not opened for everybody"),
        ("frbac:Doctor", "`frbac` is no model of users"),
        ("strange:ann", "`strange` is no model of users"),
        ("user:[a, b]", "not ranges of names"),
        ("user:5", "the name of a user is text"),
        ("user:ann WITH GRANT OPTION", "passes no option on"),
    ],
)
def test_what_turns_no_switch_is_refused(srp: str, words: str) -> None:
    with pytest.raises(DiagnosticError, match=words) as caught:
        read(f"INSERT SP INTO STREAM S LET QUERY = 'Q', SRP = {srp}, SIGN = POSITIVE;")
    assert [each.code for each in caught.value.diagnostics] == ["switch-form"]


def test_a_punctuation_for_data_turns_no_switch() -> None:
    with pytest.raises(DiagnosticError, match="names no query"):
        read("INSERT SP INTO STREAM S LET DDP = TUPLES:ALL, SRP = user:ann, SIGN = POSITIVE;")


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@given(NAMES, st.frozensets(NAMES, max_size=3), st.booleans())
def test_what_is_printed_is_read_again(query: str, users: frozenset[str], positive: bool) -> None:
    said = QueryPunctuation(query, users, positive, 7)
    assert read(print_query_punctuation(said, "Stream1") + ";") == said
    everybody = QueryPunctuation(query, None, False, 7)
    assert read(print_query_punctuation(everybody, "Stream1") + ";") == everybody

"""Regular expressions as XPath's `matches` takes them, in time that grows with the text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.policy.xacml.regex import search
from sluicegate.policy.xacml.regex_syntax import PatternError
from sluicegate.policy.xacml.signature import LimitError

MATCHES = [
    ("", ""),
    ("b", "abc"),
    ("^abc$", "abc"),
    ("a|^b", "ba"),
    ("(ab)+c", "xababc"),
    ("a{2,3}$", "caa"),
    ("^a{2}b{1,}$", "aabb"),
    ("a{0,1}b", "b"),
    (".", "é"),
    ("[a-c-[b]]", "c"),
    ("[^a-c]", "d"),
    ("[-a]", "-"),
    ("[a-]", "-"),
    (r"[\]\-x]", "]"),
    (r"\d\s\w\i\c", "5 aa-"),
    (r"\D\S\W", "a5-"),
    (r"\p{Lu}\P{Lu}\p{L}", "Aaé"),
    (r"\.\|\(\)\{\}\$\^", ".|(){}$^"),
    ("(a|b)*?c", "abac"),
    ("()x", "x"),
    (r"[\d.]+", "1.2"),
    ("x*", ""),
]
DOES_NOT = [
    ("^b", "ab"),
    ("a$", "ab"),
    (".", "\n"),
    ("[a-c-[b]]", "b"),
    ("[^a-c]", "a"),
    (r"\d", "x"),
    ("^a{2}$", "aaa"),
    (r"\p{Nd}", "a"),
    ("a^b", "ab"),
]
WRONG = [
    "(",
    ")",
    "[",
    "[]",
    "a{2",
    "a{3,2}",
    "*a",
    "a**",
    r"\q",
    r"\1",
    r"\p{Xx}",
    "[b-a]",
    "a{x}",
    "(?:a)",
    "[a",
    "\\",
]
HUGE = ["a{99999}", "(a{100}){1000}", "(" * 60 + "a" + ")" * 60]


@pytest.mark.parametrize(("pattern", "text"), MATCHES)
def test_matches(pattern: str, text: str) -> None:
    assert search(pattern, text)


@pytest.mark.parametrize(("pattern", "text"), DOES_NOT)
def test_does_not_match(pattern: str, text: str) -> None:
    assert not search(pattern, text)


@pytest.mark.parametrize("pattern", WRONG + HUGE)
def test_wrong_or_too_large(pattern: str) -> None:
    with pytest.raises(PatternError):
        search(pattern, "abc")


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a+)+$x", "(.*)(.*)(.*)[^a]"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    begin = time.monotonic()
    assert not search(pattern, "a" * 3000)
    assert time.monotonic() - begin < 20


def test_work_is_bounded() -> None:
    with pytest.raises(LimitError, match="too much work"):
        search("(a?){2000}b", "a" * 20_000)


PATTERNS = st.recursive(
    st.sampled_from(["a", "b", "[ab]", "[^a]", "."]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda ways: f"({'|'.join(ways)})"),
        inner.map(lambda one: f"({one})*"),
        inner.map(lambda one: f"({one}){{1,2}}"),
        inner.map(lambda one: f"^{one}"),
        inner.map(lambda one: f"({one})$"),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.text("abc", max_size=8))
def test_as_another_engine(pattern: str, text: str) -> None:
    assert search(pattern, text) is (re.search(pattern.replace("$", r"\Z"), text) is not None)

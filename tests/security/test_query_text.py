"""Hostile query texts end in diagnostics, soon, and in nothing else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from query_world import CATALOG, underlined
from sluicegate.errors import DiagnosticError
from sluicegate.language.resolve import read_query

SOON = 5.0
"""Seconds; each of these takes well below one on an idle machine."""

REFUSED = {
    "empty": ("", "syntax"),
    "blank": (" \n\t", "syntax"),
    "large": ("SELECT " + "x" * 10_000_000, "text-too-large"),
    "binary": ("SELECT \x00\x01\x02 FROM A", "unsafe-character"),
    "surrogate": ("SELECT '\ud800' AS x FROM A", "unsafe-character"),
    "brackets": ("SELECT id FROM A WHERE " + "(" * 10_000 + "1" + ")" * 10_000, "too-deep"),
    "braces": ("SELECT id FROM A WHERE id IN " + "{" * 10_000, "too-deep"),
    "joins": ("SELECT 1 AS x FROM A " + "JOIN B ON A.id = B.id " * 10_000, "too-deep"),
    "commas": ("SELECT 1 AS x FROM " + ", ".join(["A"] * 10_000), "too-many-operators"),
    "unions": (" UNION ALL ".join(["SELECT id FROM A"] * 10_000), "too-many-operators"),
    "nested": ("SELECT id FROM (" * 90 + "SELECT id FROM A" + ") AS x" * 90, "too-deep"),
    "nested brackets": ("SELECT id FROM " + "(" * 90 + "SELECT id FROM A" + ")" * 90 + " AS x", "too-deep"),
    "cases": ("SELECT " + "CASE WHEN TRUE THEN " * 5_000 + "1" + " END" * 5_000 + " AS x FROM A", "too-deep"),
    "calls": ("SELECT " + "abs(" * 5_000 + "1" + ")" * 5_000 + " AS x FROM A", "too-deep"),
    "nots": ("SELECT id FROM A WHERE " + "NOT " * 10_000 + "TRUE", "too-deep"),
    "minus": ("SELECT " + "- " * 10_000 + "id AS x FROM A", "too-deep"),
    "sum": ("SELECT id" + " + 1" * 10_000 + " AS x FROM A", "too-deep"),
    "chain": ("SELECT id FROM A WHERE id" + " = 1" * 10_000, "chained-comparison"),
    "unknown": (
        "SELECT id FROM A WHERE " + " OR ".join(f"x{n} = 1" for n in range(20_000)),
        "unknown-attribute",
    ),
    "unknown streams": (" UNION ALL ".join(f"SELECT id FROM s{n}" for n in range(400)), "unknown-stream"),
    "digits": ("SELECT " + "9" * 500_000 + " AS x FROM A", "number-too-large"),
    "digits and a letter": ("SELECT " + "9" * 500_000 + "x FROM A", "bad-number"),
    "exponent": ("SELECT 1e999999999 AS x FROM A", "number-too-large"),
    "open string": ("SELECT 'abc", "unterminated"),
    "quotes": ("SELECT " + "'" * 500_001, "unterminated"),
    "open comment": ("SELECT /*" + "*" * 500_000, "unterminated"),
    "reordered": ('SELECT "a\u202eb" FROM A', "unsafe-character"),
    "reordered in a string": ("SELECT id FROM A WHERE loc = '\u2066x'", "unsafe-character"),
    "zero width, quoted": ('SELECT "a\u200bb" FROM A', "unsafe-character"),
    "zero width": ("SELECT a\u200bb FROM A", "unexpected-character"),
    "look-alike": ("SELECT \u0456d FROM A", "unquoted-name"),
    "wide space": ("SELECT\u00a0id FROM A", "unexpected-character"),
    "hidden qualifier": ('SELECT "#window".start AS x FROM A', "reserved-name"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_soon(name: str) -> None:
    text, code = REFUSED[name]
    begin = time.process_time()
    assert code in [found for found, _ in underlined(text)]
    assert time.process_time() - begin < SOON


READ = {
    "or": "SELECT id FROM A WHERE " + " OR ".join(f"id = {n}" for n in range(10_000)),
    "and": "SELECT id FROM A WHERE " + " AND ".join(f"id <> {n}" for n in range(10_000)),
    "in": "SELECT id FROM A WHERE id IN (" + ", ".join(map(str, range(20_000))) + ")",
    "items": "SELECT " + ", ".join(f"id AS a{n}" for n in range(2_000)) + " FROM A",
    "unions": " UNION ALL ".join(["SELECT id FROM A"] * 300),
    "brackets": "SELECT id FROM A WHERE " + "(" * 99 + "id = 1" + ")" * 99,
    "conjunctions": "SELECT id FROM A WHERE " + "(id = 1 AND " * 90 + "id = 2" + ")" * 90,
    "nested": "SELECT id FROM (" * 19 + "SELECT id FROM A" + ") AS x" * 19,
    "calls": "SELECT " + "abs(" * 90 + "id" + ")" * 90 + " AS x FROM A",
}


@pytest.mark.parametrize("name", READ)
def test_reads_what_is_only_long(name: str) -> None:
    begin = time.process_time()
    read_query(READ[name], CATALOG)
    assert time.process_time() - begin < SOON


WORDS = """SELECT FROM WHERE GROUP BY HAVING UNION ALL JOIN ON AS AND OR NOT IN IS NULL BETWEEN LIKE CASE WHEN THEN ELSE
END CAST ( ) [ ] { } , . ; = <> < - + * / % :: || 'x' "y" 1 2.5 5min 6:00am RANGE ROWS SLIDE HOUR WINDOW UNITED START AT
LATEST TIMESTAMP TIME INTERVAL '1 hour' A B id SID loc ts rate COUNT AVG LAST DISTINCT abs self end RESULT INSERT SP INTO
STREAM LET SRP SIGN TUPLES : frbac LEFT ORDER LIMIT WITH VALUES OVER FILTER EXISTS -- /* */ # ä \u200b \\"""
VALID = (
    "SELECT A.SID, B.rate + 1 AS x FROM A [RANGE 1 HOUR] JOIN B [RANGE 5 min, SLIDE 1 min] ON A.id = B.id WHERE A.loc LIKE 'a%'",
    "SELECT loc, COUNT(DISTINCT SID) AS n FROM A [ROWS 10 SLIDE 2] GROUP BY loc HAVING AVG(rate) BETWEEN 1 AND 2.5",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM A UNION ALL SELECT id FROM B) AS x START AT TIMESTAMP '2026-01-01'",
    "SELECT id FROM A ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:R, SIGN = POSITIVE);",
)
soup = st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join)
select_soup = soup.map(lambda text: f"SELECT id FROM A WHERE {text}")


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A query that is read, with parts taken out, doubled, swapped or replaced."""
    words = draw(st.sampled_from(VALID)).split(" ")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(words) - 1))
        other = draw(st.integers(0, len(words) - 1))
        match draw(st.integers(0, 3)):
            case 0:
                words[at] = draw(st.sampled_from(WORDS.split()))
            case 1:
                words[at], words[other] = words[other], words[at]
            case 2:
                words.insert(at, words[other])
            case _:
                words[at] = words[at][: len(words[at]) // 2]
    return " ".join(words)


@settings(max_examples=300)
@given(st.one_of(soup, select_soup, mutations(), st.text(max_size=40)))
def test_never_fails_otherwise(text: str) -> None:
    assert _find_problems(text) != ""


def _find_problems(text: str) -> str | None:
    """What the diagnostics say; None for a query that is read. Any other exception ends the test."""
    try:
        read_query(text, CATALOG)
    except DiagnosticError as error:
        return str(error)
    return None

"""Lexical forms of the data types, and what they mean."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.policy.xacml.names import DATA_TYPES, DataType
from sluicegate.policy.xacml.temporal import Moment, count_days, moment_at, show_date_time, split_days
from sluicegate.policy.xacml.values import BadValueError, make_value, read_value

T = DataType

SAME = [
    (T.BOOLEAN, "true", " 1 "),
    (T.BOOLEAN, "false", "0"),
    (T.INTEGER, "7", "+007"),
    (T.INTEGER, "-0", "0"),
    (T.DOUBLE, "1.5", "15e-1"),
    (T.DOUBLE, "INF", "+INF"),
    (T.DOUBLE, ".5", "0.50"),
    (T.TIME, "08:00:00Z", "10:30:00+02:30"),
    (T.TIME, "24:00:00", "00:00:00"),
    (T.DATE, "2026-03-01", "2026-03-01Z"),
    (T.DATE_TIME, "2026-03-01T00:30:00+01:00", "2026-02-28T23:30:00Z"),
    (T.DATE_TIME, "2026-12-31T24:00:00Z", "2027-01-01T00:00:00Z"),
    (T.DATE_TIME, "2026-03-01T00:00:00.10Z", "2026-03-01T00:00:00.1Z"),
    (T.DAY_TIME_DURATION, "P1D", "PT24H"),
    (T.DAY_TIME_DURATION, "-PT0S", "P0D"),
    (T.YEAR_MONTH_DURATION, "P1Y", "P12M"),
    (T.HEX_BINARY, "0af7", "0AF7"),
    (T.BASE64_BINARY, "TWlrZQ==", "TWlr ZQ=="),
    (T.RFC822_NAME, "Anna@Medico.COM", "Anna@medico.com"),
    (
        T.X500_NAME,
        "cn=Julius Hibbert, o=Medi Corporation, c=US",
        "CN=julius  hibbert,O=Medi Corporation,C=us",
    ),
    (T.X500_NAME, "cn=a+uid=b,c=US", "uid=b + cn=a; c=US"),
    (T.X500_NAME, r"cn=a\,b,c=US", 'cn="a,b",c=US'),
    (T.X500_NAME, r"cn=a\2Cb", r"2.5.4.3=a\,b"),
    (T.X500_NAME, r"cn=\C3\A9", "cn=É"),
    (T.IP_ADDRESS, "[::1]:80", "[0:0::1]:80"),
    (T.DNS_NAME, "Some.Host:80-", "some.host:80-"),
]

DIFFERENT = [
    (T.STRING, "a", " a"),
    (T.DOUBLE, "NaN", "INF"),
    (T.ANY_URI, "http://a/", "http://A/"),
    (T.TIME, "08:00:00Z", "08:00:00+01:00"),
    (T.RFC822_NAME, "anna@medico.com", "Anna@medico.com"),
    (T.X500_NAME, "cn=a,c=US", "c=US,cn=a"),
    (T.X500_NAME, r"cn=a\\2Cb", r"cn=a\,b"),
    (T.X500_NAME, r"cn=a\+uid=b", "cn=a+uid=b"),
    (T.IP_ADDRESS, "10.0.0.1", "10.0.0.1:80"),
    (T.DATE, "2026-03-01+14:00", "2026-03-01"),
]

WRONG = [
    (T.BOOLEAN, "True"),
    (T.BOOLEAN, ""),
    (T.INTEGER, "1.0"),
    (T.INTEGER, "१"),
    (T.INTEGER, "9" * 5000),
    (T.DOUBLE, "1,5"),
    (T.DOUBLE, "inf"),
    (T.DOUBLE, "0x10"),
    (T.TIME, "24:00:01"),
    (T.TIME, "8:00:00"),
    (T.TIME, "08:00:60"),
    (T.TIME, "08:00:00+14:01"),
    (T.DATE, "2026-02-29"),
    (T.DATE, "26-02-01"),
    (T.DATE, "2026-13-01"),
    (T.DATE_TIME, "2026-03-01"),
    (T.DATE_TIME, "2026-03-01 00:00:00"),
    (T.DAY_TIME_DURATION, "P"),
    (T.DAY_TIME_DURATION, "P1DT"),
    (T.DAY_TIME_DURATION, "P1M"),
    (T.DAY_TIME_DURATION, "PT1.S"),
    (T.YEAR_MONTH_DURATION, "P1D"),
    (T.YEAR_MONTH_DURATION, "-P"),
    (T.HEX_BINARY, "ABC"),
    (T.HEX_BINARY, "XY"),
    (T.BASE64_BINARY, "a"),
    (T.BASE64_BINARY, "!!!!"),
    (T.RFC822_NAME, "medico.com"),
    (T.RFC822_NAME, "a@b@c"),
    (T.X500_NAME, "Julius"),
    (T.X500_NAME, 'cn="open'),
    (T.IP_ADDRESS, "300.0.0.1"),
    (T.IP_ADDRESS, "10.0.0.1:70000"),
    (T.IP_ADDRESS, "::1"),
    (T.DNS_NAME, "-host"),
    (T.DNS_NAME, "a..b"),
    (T.DNS_NAME, "host:-"),
]


@pytest.mark.parametrize(("kind", "one", "other"), SAME)
def test_equal_however_written(kind: DataType, one: str, other: str) -> None:
    first, second = read_value(kind, one), read_value(kind, other)
    assert first.content == second.content
    assert hash(first.content) == hash(second.content)
    assert first != second


@pytest.mark.parametrize(("kind", "one", "other"), DIFFERENT)
def test_not_equal(kind: DataType, one: str, other: str) -> None:
    assert read_value(kind, one).content != read_value(kind, other).content


@pytest.mark.parametrize(("kind", "text"), WRONG)
def test_not_of_the_type(kind: DataType, text: str) -> None:
    with pytest.raises(BadValueError, match=f"is not a {kind.short}"):
        read_value(kind, text)


def test_every_type_has_a_wrong_text_or_takes_all() -> None:
    takes_all = {T.STRING, T.ANY_URI, T.XPATH_EXPRESSION}
    assert {kind for kind, _ in WRONG} | takes_all == set(DataType)


def test_not_a_number_is_itself() -> None:
    assert read_value(T.DOUBLE, "NaN").content is make_value(T.DOUBLE, math.nan + 1).content


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (T.DOUBLE, "27.5"),
        (T.DOUBLE, "1.0E6"),
        (T.DOUBLE, "-1.5E-7"),
        (T.DOUBLE, "-INF"),
        (T.DOUBLE, "0.000001"),
        (T.BOOLEAN, "true"),
        (T.TIME, "08:05:07.25-05:00"),
        (T.DATE, "-0044-03-15"),
        (T.DATE, "12026-01-01Z"),
        (T.DATE_TIME, "2026-03-01T12:00:00Z"),
        (T.DAY_TIME_DURATION, "-P1DT2H3M4.5S"),
        (T.DAY_TIME_DURATION, "PT0S"),
        (T.YEAR_MONTH_DURATION, "-P1Y2M"),
        (T.YEAR_MONTH_DURATION, "P0M"),
        (T.HEX_BINARY, "0AF7"),
        (T.BASE64_BINARY, "TWlrZQ=="),
        (T.INTEGER, "-12"),
    ],
)
def test_canonical_text(kind: DataType, text: str) -> None:
    assert make_value(kind, read_value(kind, text).content).text == text


@given(st.integers(-3_000_000, 5_000_000))
def test_days_and_dates_are_inverse(days: int) -> None:
    assert count_days(*split_days(days)) == days


@given(st.integers(0, 4_000_000_000_000_000))
def test_a_moment_is_shown_as_it_is_read(micros: int) -> None:
    moment = moment_at(micros)
    again = read_value(T.DATE_TIME, show_date_time(moment)).content
    assert again == moment
    assert isinstance(again, Moment)
    assert again.zone == 0


@given(st.floats())
def test_a_double_is_read_as_it_is_shown(number: float) -> None:
    again = read_value(T.DOUBLE, make_value(T.DOUBLE, number).text).content
    assert again == number or (math.isnan(again) and math.isnan(number))


def test_former_names_of_types_mean_the_same() -> None:
    former = "http://www.w3.org/TR/2002/WD-xquery-operators-20020816#dayTimeDuration"
    assert DATA_TYPES[former] is T.DAY_TIME_DURATION

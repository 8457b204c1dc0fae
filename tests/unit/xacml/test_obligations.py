"""Obligations of a decision as one grant: what is fulfilled together, and what cannot be fulfilled at all."""

from __future__ import annotations

import pytest

from sluicegate.expr.text import to_text
from sluicegate.expr.types import DOUBLE, STRING, TIMESTAMP
from sluicegate.graph.operators import AggFunction
from sluicegate.language.xacml.obligations import (
    ATTRIBUTE,
    CONDITION,
    FILTER,
    FUNCTION,
    MAP,
    SIZE,
    STEP,
    TYPE,
    WINDOW,
    Refusal,
    fulfil,
)
from sluicegate.policy.model import Grant, LeastWindow, Privilege, Stream
from sluicegate.policy.xacml.context import Assignment, Notice
from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.values import make_value, read_value

WEATHER = Stream(
    "weather",
    (("at", TIMESTAMP), ("rain", DOUBLE), ("wind", DOUBLE), ("place", STRING), ("Rain", DOUBLE)),
    event_time="at",
)
ARCHIVE = Stream("archive", (("rain", DOUBLE),))


def oblige(name: str, *values: tuple[str, str], prefix: str = "exacml:obligation:") -> Notice:
    assigned = [Assignment(prefix + part, read_value(DataType.STRING, text)) for part, text in values]
    return Notice(name, tuple(assigned), binding=True)


def window(size: str = "5", step: str = "2", kind: str = "tuple", *functions: str) -> Notice:
    listed = [(FUNCTION, each) for each in functions or ("wind:avg",)]
    return oblige(WINDOW, (TYPE, kind), (SIZE, size), (STEP, step), *listed)


def grant(*obligations: Notice, stream: Stream = WEATHER) -> Grant:
    found = fulfil(obligations, stream, "ura")
    assert isinstance(found, Grant), found
    return found


def refusal(*obligations: Notice, stream: Stream = WEATHER) -> str:
    found = fulfil(obligations, stream, "ura")
    assert isinstance(found, Refusal), found
    return found.reason


def names(found: Grant) -> list[str]:
    return [each.name for each in found.attributes]


def rights(found: Grant) -> list[tuple[AggFunction, str | None]]:
    return [(each.function, each.attribute.name if each.attribute else None) for each in found.rights]


def test_no_obligation_is_all_of_the_stream() -> None:
    found = grant()
    assert (found.name, found.subject.name, found.subject.is_user) == ("xacml:weather", "ura", True)
    assert found.privilege is Privilege.READ
    assert names(found) == ["at", "rain", "wind", "place", "Rain"]
    assert not found.grant_option


def test_several_conditions_hold_together() -> None:
    found = grant(
        oblige(FILTER, (CONDITION, "wind > 1"), (CONDITION, " PLACE = 'x' ")),
        oblige(FILTER, (CONDITION, "wind > 1 OR wind < 0"), prefix="pCloud:obligation:"),
    )
    text = to_text(found.predicate)
    assert text == "weather.wind > 1 AND weather.place = 'x' AND (weather.wind > 1 OR weather.wind < 0)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("snow > 1", "snow"),
        ("RAIN > 1", "RAIN"),
        ("wind > self.level", "nothing else"),
        ("wind > limit_of('x')", "nothing else"),
        ("wind", "not a condition"),
        ("wind > 1; DROP", "expected"),
        ("AVG(wind) > 1", "AVG"),
        ("wind > 'a'", "compare"),
        ("", "expected"),
        ("wind > 1 OR", "expected"),
        ("EXISTS (SELECT * FROM weather)", ""),
        ("NULL", "not a condition"),
    ],
)
def test_a_condition_names_attributes_and_literals_alone(text: str, reason: str) -> None:
    assert reason in refusal(oblige(FILTER, (CONDITION, text)))


def test_a_condition_is_never_computed_from_what_is_asked() -> None:
    """A user called `x' OR 'a' = 'a` could otherwise write its own."""
    made = make_value(DataType.STRING, "place = 'x' OR 'a' = 'a'")
    notice = Notice(FILTER, (Assignment("exacml:obligation:" + CONDITION, made),), binding=True)
    assert "not computed" in refusal(notice)


def test_maps_have_attributes_in_common() -> None:
    found = grant(
        oblige(MAP, (ATTRIBUTE, "wind"), (ATTRIBUTE, "rain")),
        oblige(MAP, (ATTRIBUTE, "WIND"), (ATTRIBUTE, "at")),
    )
    assert names(found) == ["wind"]
    assert "in common" in refusal(oblige(MAP, (ATTRIBUTE, "wind")), oblige(MAP, (ATTRIBUTE, "at")))
    assert "several attributes" in refusal(oblige(MAP, (ATTRIBUTE, "RAIN")))
    assert "no attribute" in refusal(oblige(MAP, (ATTRIBUTE, "snow")))


def test_a_map_becomes_what_windows_may_be_narrowed_by() -> None:
    found = grant(
        oblige(MAP, (ATTRIBUTE, "wind"), (ATTRIBUTE, "at")),
        window("5", "2", "tuple", "at:lastval", "wind:Max"),
    )
    assert found.privilege is Privilege.AGGREGATE
    assert rights(found) == [(AggFunction.LAST, "at"), (AggFunction.MAX, "wind")]
    assert found.least == LeastWindow(5, 2, rows=True)
    assert [each.name for each in found.narrow_by] == ["at", "wind"]
    assert grant(window()).narrow_by == ()


def test_event_time_is_not_narrowed_by_where_windows_are_by_time() -> None:
    found = grant(oblige(MAP, (ATTRIBUTE, "wind"), (ATTRIBUTE, "at")), window("60", "60", "time", "wind:Max"))
    assert [each.name for each in found.narrow_by] == ["wind"]


def test_a_map_takes_away_what_windows_would_show() -> None:
    mapped = oblige(MAP, (ATTRIBUTE, "rain"))
    assert rights(grant(mapped, window("5", "2", "tuple", "rain:avg", "wind:avg"))) == [
        (AggFunction.AVG, "rain")
    ]
    assert "in common" in refusal(mapped, window())


def test_of_windows_the_larger_size_and_step_count() -> None:
    found = grant(
        window("60", "90", "time", "wind:avg", "wind:sum"), window("2 minutes", "30", "TIME", "wind:AVG")
    )
    assert found.least == LeastWindow(120_000_000, 90_000_000)
    assert rights(found) == [(AggFunction.AVG, "wind")]


def test_windows_of_two_kinds_or_without_a_common_function_give_nothing() -> None:
    assert "both" in refusal(window(), window("5", "2", "time"))
    assert "in common" in refusal(window(), window("5", "2", "tuple", "wind:max"))


@pytest.mark.parametrize(
    "notice",
    [
        window("0"),
        window("-5"),
        window("five"),
        window("5", ""),
        window("5", "2", "rows"),
        window("5", "2", "tuple", "wind"),
        window("5", "2", "tuple", "wind:median"),
        window("5", "2", "tuple", "snow:avg"),
        window("5", "2", "tuple", "place:avg"),
        window("5", "2", "tuple", "*:count"),
        window("5 minutes", "2", "tuple"),
        window("9" * 30),
        oblige(WINDOW, (TYPE, "tuple"), (SIZE, "5"), (FUNCTION, "wind:avg")),
        oblige(WINDOW, (TYPE, "tuple"), (TYPE, "time"), (SIZE, "5"), (STEP, "5"), (FUNCTION, "wind:avg")),
        oblige(FILTER),
        oblige(MAP),
        oblige(MAP, (CONDITION, "wind > 1")),
        oblige(MAP, (ATTRIBUTE, "wind"), ("stream-map-more-id", "x")),
        oblige(FILTER, (CONDITION, "wind > 1"), prefix="other:obligation:"),
        oblige("exacml:obligation:stream-blur"),
        oblige("pCloud:obligation:stream-filter", (CONDITION, "wind > 1")),
    ],
    ids=str,
)
def test_what_is_not_understood_is_not_permitted(notice: Notice) -> None:
    assert refusal(notice)
    assert refusal(grant_nothing_else(), notice)


def grant_nothing_else() -> Notice:
    return oblige(FILTER, (CONDITION, "wind > 1"))


def test_a_table_has_no_windows() -> None:
    assert "table" in refusal(window("5", "2", "tuple", "rain:avg"), stream=ARCHIVE)
    assert names(grant(oblige(MAP, (ATTRIBUTE, "Rain")), stream=ARCHIVE)) == ["rain"]

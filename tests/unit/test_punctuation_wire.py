"""Punctuations as devices send them: read strictly, refused with a code, and only from those who may send them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import TIMESTAMP
from sluicegate.language.load import read_catalog
from sluicegate.language.punctuation_codes import PUNCTUATION_CODES
from sluicegate.language.punctuation_wire import (
    MOST_CHARACTERS,
    MOST_VALUES,
    Arrived,
    read_punctuation,
    read_punctuation_text,
    write_punctuation,
)
from sluicegate.language.punctuators import may_punctuate
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.punctuation import Anything, Constant, DataDescription, OneOf, Range, Restriction

CATALOG = read_catalog(
    """
    CREATE STREAM HeartRate (ts TIMESTAMP, Patient_id INT, Beats INT) TIMESTAMP BY ts OWNER clinic
      PUNCTUATED BY Patient_id;
    CREATE STREAM Log (ts TIMESTAMP, word STRING) TIMESTAMP BY ts PUNCTUATED BY ts;
    CREATE ROLE Doctor;
    CREATE ROLE Device;
    CREATE USER ann ROLES (Doctor);
    CREATE USER clinic;
    CREATE USER d1 ROLES (Device) SET (Patient_id = 1);
    CREATE USER gone ROLES (Device) SET (Patient_id = 2);
    ALTER USER gone DISABLE;
    CREATE USER lost ROLES (Device);
    CREATE USER ward SET (Low = 100, High = 200);
    CREATE USER early;
    SET FACT opened('ward') = TIMESTAMP '2026-01-01 09:00:00';
    CREATE GRANT feed APPEND ON HeartRate WHERE Patient_id = self.Patient_id TO Device;
    CREATE GRANT wards APPEND ON HeartRate WHERE Patient_id >= self.Low AND Patient_id <= self.High
      DURING [opened('ward'), NULL] TO USER ward;
    CREATE GRANT never APPEND ON HeartRate DURING [opened('other'), NULL] TO USER early;
    """,
    folder=Path(),
)
STREAM = CATALOG.streams["HeartRate"]
ARRIVED = Arrived(STREAM, "d1", 1_767_261_600_000_000)
GOOD: dict[str, Any] = {"ddp": {"tuples": 1}, "srp": ["Doctor"], "ts": "2026-01-01T10:00:00", "sn": 1}


def code_of(found: object) -> str:
    with pytest.raises(DiagnosticError) as error:
        read_punctuation(found, ARRIVED, CATALOG)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code in PUNCTUATION_CODES
    assert len(diagnostic.message) < 200
    return diagnostic.code


def test_the_least_that_is_read() -> None:
    found = read_punctuation(GOOD, ARRIVED, CATALOG)
    ddp = DataDescription(tuples=Constant(1))
    assert found == Punctuation("d1", 1_767_261_600_000_000, 1, ddp, Restriction("frbac", Constant("Doctor")))


def test_all_that_is_read() -> None:
    sent = {
        "ddp": {"streams": ["HeartRate", "Log"], "tuples": {"open": [1, 9]}, "attributes": "Beats"},
        "srp": ["dac:ann", "dac:d1"],
        "sign": "-",
        "immutable": True,
        "grant_option": True,
        "ts": "2026-01-01T09:59:59.5Z",
        "sn": 3,
    }
    found = read_punctuation_text(json.dumps(sent), ARRIVED, CATALOG)
    assert found.ddp.tuples == Range(1, 9, closed=False)
    assert found.srp == Restriction("dac", OneOf(("ann", "d1")), grant_option=True)
    assert (found.positive, found.immutable, found.sn) == (False, True, 3)
    assert read_punctuation(write_punctuation(found, STREAM.attributes[1][1]), ARRIVED, CATALOG) == found


@pytest.mark.parametrize("srp", [["*"], ["frbac:*"], {"model": "frbac", "subjects": "*"}])
def test_all_roles(srp: object) -> None:
    assert read_punctuation({**GOOD, "srp": srp}, ARRIVED, CATALOG).srp == Restriction("frbac", Anything())


def test_an_unknown_model_is_read_and_denies() -> None:
    assert read_punctuation({**GOOD, "srp": ["magic:x"]}, ARRIVED, CATALOG).srp.model == "magic"


def test_times_as_keys() -> None:
    arrived = Arrived(CATALOG.streams["Log"], "clinic")
    sent = {**GOOD, "ddp": {"tuples": {"closed": ["2026-01-01T00:00:00", "2026-01-02T00:00:00"]}}}
    found = read_punctuation(sent, arrived, CATALOG)
    assert found.ddp.tuples == Range(1_767_225_600_000_000, 1_767_312_000_000_000, closed=True)
    assert read_punctuation(write_punctuation(found, TIMESTAMP), arrived, CATALOG) == found
    with pytest.raises(DiagnosticError, match="sp-pattern"):
        read_punctuation({**GOOD, "ddp": {"tuples": {"closed": ["noon", "night"]}}}, arrived, CATALOG)
    with pytest.raises(DiagnosticError, match="sp-pattern"):
        read_punctuation({**GOOD, "ddp": {"tuples": 5.5}}, arrived, CATALOG)


@pytest.mark.parametrize(
    ("part", "value", "code"),
    [
        ("ts", "2026-01-01T10:00:00.000001", "sp-future"),
        ("ts", 5, "sp-time"),
        ("ts", None, "sp-time"),
        ("sn", 0, "sp-number"),
        ("sn", -1, "sp-number"),
        ("sn", True, "sp-number"),
        ("sn", "1", "sp-number"),
        ("sn", 10**30, "sp-number"),
        ("ddp", {"tuples": {"closed": [1]}}, "sp-pattern"),
        ("ddp", {"tuples": {"closed": [1, 2], "open": [1, 2]}}, "sp-pattern"),
        ("ddp", {"tuples": [[1]]}, "sp-pattern"),
        ("ddp", {"tuples": 2**40}, "sp-pattern"),
        ("ddp", {"tuples": 1.5}, "sp-pattern"),
        ("ddp", {"tuples": True}, "sp-pattern"),
        ("ddp", {"tuples": float("nan")}, "sp-pattern"),
        ("ddp", {"streams": 5}, "sp-pattern"),
        ("ddp", {"rows": "*"}, "sp-form"),
        ("ddp", None, "sp-form"),
        ("ddp", {"streams": "Nothing"}, "sp-unknown-stream"),
        ("ddp", {"attributes": ["Beats", "Pulse"]}, "sp-unknown-attribute"),
        ("srp", "Doctor", "sp-form"),
        ("srp", ["Doctor", 5], "sp-form"),
        ("srp", {"model": "frbac"}, "sp-form"),
        ("srp", ["ann"], "sp-unknown-subject"),
        ("srp", ["user:nobody"], "sp-unknown-subject"),
        ("srp", ["Doctor", "user:ann"], "sp-models"),
        ("srp", ["Doctor"] * (MOST_VALUES + 1), "sp-size"),
        ("ddp", {"tuples": list(range(MOST_VALUES + 1))}, "sp-size"),
        ("sign", 1, "sp-form"),
        ("immutable", "no", "sp-form"),
        ("grant_option", 1, "sp-form"),
        ("query", "Q2", "sp-form"),
    ],
)
def test_what_is_refused(part: str, value: object, code: str) -> None:
    assert code_of({**GOOD, part: value}) == code


@pytest.mark.parametrize("part", sorted(GOOD))
def test_nothing_is_filled_in(part: str) -> None:
    assert code_of({name: value for name, value in GOOD.items() if name != part}) == "sp-form"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "sp-form"),
        ("[" * 50_000, "sp-form"),
        ('{"sn": 1, "sn": 2}', "sp-form"),
        ('{"ddp": {"tuples": NaN}}', "sp-form"),
        (json.dumps({**GOOD, "srp": ["r" * 1_000_000]}), "sp-size"),
        (" " * (MOST_CHARACTERS + 1), "sp-size"),
    ],
    ids=["empty", "deep", "twice", "nan", "a megabyte of roles", "blank"],
)
def test_texts_that_are_refused(text: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as error:
        read_punctuation_text(text, ARRIVED, CATALOG)
    assert [each.code for each in error.value.diagnostics] == [code]


def made(sender: str, tuples: object, ts: str = "2026-01-01T10:00:00") -> Punctuation:
    return read_punctuation({**GOOD, "ddp": {"tuples": tuples}, "ts": ts}, Arrived(STREAM, sender), CATALOG)


@pytest.mark.parametrize(
    ("sender", "tuples"),
    [
        ("clinic", {"closed": [1, 500]}),
        ("d1", 1),
        ("d1", [1]),
        ("d1", "*"),
        ("d1", None),
        ("d1", {"closed": [1, 1]}),
        ("d1", {"open": [0, 2]}),
        ("ward", {"closed": [100, 200]}),
        ("ward", [100, 150]),
    ],
)
def test_who_may_punctuate(sender: str, tuples: object) -> None:
    assert may_punctuate(CATALOG, sender, "HeartRate", made(sender, tuples)) is None


@pytest.mark.parametrize(
    ("sender", "tuples"),
    [
        ("d1", 2),
        ("d1", [1, 2]),
        ("d1", {"closed": [0, 2]}),
        ("gone", "*"),
        ("lost", 1),
        ("ann", "*"),
        ("stranger", "*"),
        ("ward", {"closed": [99, 200]}),
        ("early", "*"),
    ],
)
def test_who_may_not(sender: str, tuples: object) -> None:
    said = may_punctuate(CATALOG, sender, "HeartRate", made(sender, tuples))
    assert said is not None
    assert said.code == "sp-forged"


def test_nobody_sends_for_another() -> None:
    assert may_punctuate(CATALOG, "d1", "HeartRate", made("clinic", 1)) is not None
    assert may_punctuate(CATALOG, "clinic", "Nothing", made("clinic", 1)) is not None


def test_an_append_grant_that_has_not_begun() -> None:
    assert may_punctuate(CATALOG, "ward", "HeartRate", made("ward", "*", "2026-01-01T08:00:00")) is not None

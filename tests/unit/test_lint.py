"""Warnings of `sluicegate check`."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from sluicegate.errors import DiagnosticError, Severity
from sluicegate.expr.nodes import NULL, And, Column, Compare, Expr, FactRef, Literal, Op, SelfRef
from sluicegate.expr.types import DOUBLE, STRING, TIMESTAMP
from sluicegate.graph.operators import AggFunction
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import (
    AggRight,
    During,
    Fact,
    Grant,
    LeastWindow,
    Privilege,
    Role,
    Stream,
    StreamRef,
    Subject,
    User,
)
from sluicegate.rewrite.lint import LINT_CODES, lint
from sluicegate.rewrite.lint_punctuations import PUNCTUATION_LINT_CODES
from sluicegate.source import SourceText, Span

POS, SID = Column("P", "Pos", DOUBLE), Column("P", "SID", STRING)
PLATOON = Column("P", "Platoon", STRING)
START, END = FactRef("start", (Literal("a", STRING),)), FactRef("end", (Literal("a", STRING),))
ON_P = (StreamRef("Position", "P"),)
POSITION = Stream(
    "Position", (("ts", TIMESTAMP), ("SID", STRING), ("Platoon", STRING), ("Pos", DOUBLE)), "ts"
)

READ = Grant("read", Subject("Doctor"), Privilege.READ, ON_P, (POS, SID))
TOTAL = Grant(
    "total",
    Subject("Doctor"),
    Privilege.AGGREGATE,
    ON_P,
    rights=(AggRight(AggFunction.SUM, POS),),
    least=LeastWindow(60, 60),
)


def pos(op: Op, value: float) -> Expr:
    return Compare(op, POS, Literal(value, DOUBLE))


def is_platoon(name: str) -> Expr:
    return Compare(Op.EQ, PLATOON, Literal(name, STRING))


def at(time_: int) -> Literal:
    return Literal(time_, TIMESTAMP)


def catalog_of(*grants: Grant, facts: tuple[Fact, ...] = (), stream: Stream = POSITION) -> Catalog:
    return Catalog(
        streams={"Position": stream},
        roles={"Doctor": Role("Doctor")},
        users={"paul": User("paul", ("Doctor",))},
        facts={(each.name, each.args): each for each in facts},
        grants={grant.name: grant for grant in grants},
    )


def codes(catalog: Catalog) -> list[str]:
    found = lint(catalog)
    assert all(each.severity is Severity.WARNING for each in found)
    assert {each.code for each in found} <= set(LINT_CODES) | set(PUNCTUATION_LINT_CODES)
    return [each.code for each in found]


def test_a_good_catalog_has_no_warnings() -> None:
    assert codes(catalog_of(READ)) == []
    assert codes(catalog_of(READ, TOTAL)) == []


def test_the_place_is_told_where_it_is_known() -> None:
    span = Span(SourceText("a.sql", "CREATE GRANT read"), 13, 17)
    (found,) = lint(catalog_of(replace(READ, closed="`Pos` was dropped")), {("grant", "read"): span})[:1]
    assert found.span == span
    assert found.message == "grant `read` allows nothing: `Pos` was dropped"


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        (replace(READ, predicate=And((pos(Op.GT, 5), pos(Op.LT, 3)))), ["contradictory-grant"]),
        (replace(READ, predicate=And((pos(Op.GT, 5), pos(Op.LT, 7)))), []),
        (replace(READ, predicate=And((is_platoon("X"), is_platoon("Y")))), ["contradictory-grant"]),
        (replace(READ, predicate=Compare(Op.GT, POS, FactRef("target", ()))), ["unset-fact"]),
        (replace(READ, predicate=Compare(Op.GT, POS, FactRef("target", (SelfRef("x"),)))), ["unset-fact"]),
        (replace(READ, during=During(at(5), at(3))), ["empty-during"]),
        (replace(READ, during=During(at(5), at(5))), []),
        (replace(READ, during=During(START, END)), ["unopened-during"]),
        (replace(READ, during=During(NULL, END)), ["unopened-during"]),
        (replace(READ, during=During(at(5), END)), []),
        (replace(READ, min_group=3), ["min-group-on-read"]),
        (replace(TOTAL, min_group=3), []),
        (replace(TOTAL, least=LeastWindow(60, 30)), ["step-below-size"]),
    ],
)
def test_a_grant_by_itself(grant: Grant, expected: list[str]) -> None:
    assert codes(catalog_of(grant)) == expected


def test_facts_that_are_set() -> None:
    facts = (
        Fact("start", ("a",), at(5)),
        Fact("end", ("a",), at(3)),
        Fact("target", (), Literal(1.0, DOUBLE)),
    )
    near = replace(READ, predicate=Compare(Op.GT, POS, FactRef("target", ())))
    assert codes(catalog_of(near, facts=facts)) == []
    assert codes(catalog_of(replace(READ, during=During(START, END)), facts=facts)) == ["empty-during"]


def test_a_table_has_no_event_time() -> None:
    table = replace(POSITION, event_time=None)
    assert codes(catalog_of(replace(READ, during=During(at(5), NULL)), stream=table)) == ["during-on-table"]


@pytest.mark.parametrize(
    ("other", "shadowed"),
    [
        ({"attributes": (POS,)}, True),
        ({"predicate": pos(Op.GT, 9)}, True),
        ({"predicate": pos(Op.GT, 9), "during": During(at(5), NULL)}, True),
        ({}, True),
        ({"attributes": (POS, SID, PLATOON)}, False),
        ({"predicate": pos(Op.GT, 3)}, False),
        ({"grant_option": True}, False),
        ({"subject": Subject("paul", True)}, False),
    ],
)
def test_shadowed_grants(other: dict[str, object], shadowed: bool) -> None:
    wide = replace(READ, name="a", predicate=pos(Op.GT, 5))
    narrow = replace(replace(wide, name="b"), **other)
    found = [each.message for each in lint(catalog_of(wide, narrow)) if each.code == "shadowed-grant"]
    if shadowed:
        assert found == ["grant `b` gives nothing that `a` does not give"]
    else:
        assert "grant `b` gives nothing that `a` does not give" not in found


def test_aggregates_that_can_be_subtracted() -> None:
    part = replace(TOTAL, name="part", predicate=is_platoon("X"))
    assert codes(catalog_of(TOTAL, part)) == ["overlapping-aggregates"]
    assert codes(catalog_of(part, replace(part, name="rest", predicate=is_platoon("Y")))) == []
    other = replace(part, name="rest", predicate=Compare(Op.NE, PLATOON, Literal("X", STRING)))
    assert codes(catalog_of(part, other)) == []
    early, late = During(NULL, at(5)), During(at(6), NULL)
    assert codes(catalog_of(replace(TOTAL, during=early), replace(part, during=late))) == []
    counts = replace(part, name="counts", rights=(AggRight(AggFunction.COUNT, None),))
    assert codes(catalog_of(TOTAL, counts)) == []


def test_aggregates_of_roles_that_one_user_holds() -> None:
    other = replace(TOTAL, name="part", subject=Subject("Nurse"), predicate=is_platoon("X"))
    catalog = catalog_of(TOTAL, other)
    catalog = replace(catalog, roles=catalog.roles | {"Nurse": Role("Nurse")})
    apart = {"paul": User("paul", ("Doctor",)), "ann": User("ann", ("Nurse",))}
    assert codes(replace(catalog, users=apart)) == []
    assert codes(replace(catalog, users={"eve": User("eve", ("Doctor", "Nurse"))})) == [
        "overlapping-aggregates"
    ]


def test_attributes_linked_by_a_common_one() -> None:
    who_where = replace(READ, name="where", attributes=(SID, POS))
    who_what = replace(READ, name="what", attributes=(SID, PLATOON))
    assert codes(catalog_of(who_where, who_what)) == ["linked-attributes"]
    assert codes(catalog_of(replace(who_where, attributes=(POS,)), who_what)) == []
    apart = [replace(who_where, predicate=is_platoon("X")), replace(who_what, predicate=is_platoon("Y"))]
    assert codes(catalog_of(*apart)) == []
    own = replace(who_what, subject=Subject("paul", True))
    assert codes(catalog_of(who_where, own)) == ["linked-attributes"]


def test_names_that_lead_nowhere() -> None:
    catalog = Catalog(
        streams={"Position": POSITION, "Other": replace(POSITION, name="Other")},
        roles={"Doctor": Role("Doctor"), "Chief": Role("Chief", ("Doctor",)), "Idle": Role("Idle")},
        users={
            "paul": User("paul", ("Chief",)),
            "bob": User("bob"),
            "off": User("off", ("Idle",), disabled=True),
        },
        grants={"read": READ},
    )
    assert [(each.code, each.message) for each in lint(catalog)] == [
        ("role-without-users", "nobody holds role `Idle`"),
        ("role-without-grants", "role `Idle` has no grant"),
        ("user-without-grants", "user `bob` has no grant"),
        ("unread-stream", "nobody can read stream `Other`"),
    ]


def test_a_stream_granted_to_a_role_that_nobody_holds_is_unread() -> None:
    catalog = replace(catalog_of(READ), users={})
    assert codes(catalog) == ["role-without-users", "unread-stream"]


def test_where_providers_decide_roles_need_no_grants() -> None:
    catalog = catalog_of(stream=replace(POSITION, governed_by_provider=True))
    assert codes(catalog) == []


def large_catalog(shared: bool) -> Catalog:
    """10,000 grants: over 100 roles and 20 streams, or all to one role on one stream."""
    grants = {}
    for at_ in range(10_000):
        base = READ if at_ % 2 else TOTAL
        role = "r0" if shared else f"r{at_ % 100}"
        stream = "S0" if shared else f"S{(at_ // 100) % 20}"
        predicate = And((is_platoon(f"p{at_ % 997}"), pos(Op.GT, at_), pos(Op.LT, at_ + 10)))
        grants[f"g{at_}"] = replace(
            base,
            name=f"g{at_}",
            subject=Subject(role),
            streams=(StreamRef(stream, "P"),),
            predicate=predicate,
        )
    roles = {f"r{at_}": Role(f"r{at_}") for at_ in range(100)}
    users = {f"u{at_}": User(f"u{at_}", (f"r{at_ % 100}", f"r{(at_ * 7) % 100}")) for at_ in range(1_000)}
    streams = {f"S{at_}": replace(POSITION, name=f"S{at_}") for at_ in range(20)}
    return Catalog(streams=streams, roles=roles, users=users, grants=grants)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True], ids=["spread", "one-role"])
def test_a_large_catalog(shared: bool) -> None:
    catalog = large_catalog(shared)
    begun = time.process_time()
    found = lint(catalog)
    assert time.process_time() - begun < 8  # two seconds, with room for a busy machine
    assert ("check-cut-short" in {each.code for each in found}) is shared


PUNCTUATED = """
CREATE ROLE Doctor; CREATE USER dora ROLES (Doctor); CREATE USER clinic;
CREATE STREAM S (ts TIMESTAMP, id INT, x DOUBLE) TIMESTAMP BY ts OWNER clinic PUNCTUATED BY id GOVERNED BY PROVIDER;
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("DDP = TUPLES:{1, 2}, SRP = frbac:{Doctor}", None),
        ("DDP = TUPLES:ALL, SRP = frbac:Docter", "unknown-subject: punctuation `p` names the role `Docter`, which does not exist"),
        ("DDP = TUPLES:ALL, SRP = user:{dora, dan}", "unknown-subject: punctuation `p` names the user `dan`, who does not exist"),
    ],
)  # fmt: skip
def test_punctuations_of_the_server(text: str, told: str | None) -> None:
    catalog = read_catalog(f"{PUNCTUATED} CREATE SP p INTO STREAM S LET {text}, SIGN = POSITIVE;")
    assert [f"{each.code}: {each.message}" for each in lint(catalog)] == ([] if told is None else [told])


@pytest.mark.parametrize(
    "text",
    [
        "DDP = TUPLES:'a', SRP = frbac:Doctor",
        "DDP = TUPLES:['a', 'b'], SRP = frbac:Doctor",
        "DDP = TUPLES:[3, 1], SRP = frbac:Doctor",
        "DDP = TUPLES:1.5, SRP = frbac:Doctor",
        "DDP = TUPLES:[0.5, 1.5], SRP = frbac:Doctor",
        "DDP = TUPLES:{'a', 1}, SRP = frbac:{Doctor}",
        "DDP = TUPLES:ALL AND ATTRIBUTES:y, SRP = frbac:Doctor",
        "DDP = STREAMS:T AND TUPLES:ALL, SRP = frbac:Doctor",
    ],
)
def test_punctuations_of_the_server_that_would_narrow_nothing_are_errors(text: str) -> None:
    with pytest.raises(DiagnosticError, match="sp-"):
        read_catalog(f"{PUNCTUATED} CREATE SP p INTO STREAM S LET {text}, SIGN = POSITIVE;")


def test_what_results_state_and_grants_that_decide_nothing() -> None:
    catalog = read_catalog(
        PUNCTUATED
        + "CREATE STREAM R OWNER dora AS SELECT ts, id FROM S"
        + " ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:Nobody, SIGN = POSITIVE);"
        + "CREATE GRANT g READ (*) ON R TO Doctor; CREATE GRANT w APPEND ON S TO Doctor;"
    )
    assert [each.message for each in lint(catalog)] == [
        "ON RESULT of `R` names the role `Nobody`, which does not exist",
        "grant `g` decides nothing: `R` is governed by the policies of its tuples",
    ]

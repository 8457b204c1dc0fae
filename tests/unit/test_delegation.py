"""R19: what a holder of the grant option may pass on, and what falls with a grant. Cycles of roles too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate.expr.nodes import NULL, TRUE, And, Column, Compare, Expr, FactRef, Literal, Op, SelfRef
from sluicegate.expr.types import DOUBLE, INT, STRING, TIMESTAMP
from sluicegate.graph.operators import AggFunction
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.delegation import check_delegation, dependents, orphans, parents
from sluicegate.policy.model import (
    AggRight,
    During,
    Follow,
    Grant,
    LeastWindow,
    Privilege,
    Role,
    StreamRef,
    Subject,
    User,
)
from sluicegate.policy.roles import find_cycle, juniors, seniors

POS = Column("P", "Pos", DOUBLE)
SID = Column("P", "SID", STRING)
PLATOON = Column("P", "Platoon", STRING)
START, END = FactRef("start", (Literal("a", STRING),)), FactRef("end", (Literal("a", STRING),))
ON_P = (StreamRef("P", "P"),)

READ = Grant("read", Subject("Doctor"), Privilege.READ, ON_P, (POS, SID), grant_option=True)
TOTAL = Grant(
    "total",
    Subject("Doctor"),
    Privilege.AGGREGATE,
    ON_P,
    rights=(AggRight(AggFunction.SUM, POS), AggRight(AggFunction.COUNT, None)),
    least=LeastWindow(60, 60),
    by=(PLATOON,),
    narrow_by=(SID,),
    min_group=5,
    grant_option=True,
)


def is_platoon(value: Expr | str, op: Op = Op.EQ) -> Expr:
    return Compare(op, PLATOON, Literal(value, STRING) if isinstance(value, str) else value)


def at(time: int) -> Literal:
    return Literal(time, TIMESTAMP)


def pos(op: Op, value: float) -> Expr:
    return Compare(op, POS, Literal(value, DOUBLE))


def catalog_of(*grants: Grant, **users: User) -> Catalog:
    known = {
        "paul": User("paul", ("Surgeon",), (("Platoon", Literal("X", STRING)),)),
        "ann": User("ann", ("Nurse",)),
        "bob": User("bob"),
    }
    return Catalog(
        roles={
            "Doctor": Role("Doctor"),
            "Surgeon": Role("Surgeon", ("Doctor",)),
            "Nurse": Role("Nurse"),
        },
        users=known | users,
        grants={grant.name: grant for grant in grants},
    )


def pass_on(parent: Grant, **changes: object) -> Grant:
    base = replace(parent, name="new", subject=Subject("Nurse"), grant_option=False)
    return replace(base, **changes)


def reason(parent: Grant, **changes: object) -> str | None:
    return check_delegation(catalog_of(parent), "paul", pass_on(parent, **changes))


def test_the_same_may_be_passed_on() -> None:
    assert reason(READ) is None
    assert reason(TOTAL) is None
    assert reason(READ, grant_option=True) is None


def test_only_by_who_holds_the_option() -> None:
    catalog = catalog_of(READ)
    assert check_delegation(catalog, "ann", pass_on(READ)) == (
        "`ann` holds no READ grant with the grant option on exactly `P`"
    )
    assert check_delegation(catalog, "nobody", pass_on(READ)) is not None
    assert check_delegation(catalog_of(replace(READ, grant_option=False)), "paul", pass_on(READ)) is not None
    assert check_delegation(catalog_of(replace(READ, closed="gone")), "paul", pass_on(READ)) is not None
    disabled = catalog_of(READ, paul=User("paul", ("Surgeon",), disabled=True))
    assert check_delegation(disabled, "paul", pass_on(READ)) is not None


def test_only_the_same_privilege_on_the_same_streams() -> None:
    assert reason(READ, privilege=Privilege.AGGREGATE, attributes=(), rights=TOTAL.rights) is not None
    assert reason(READ, streams=(StreamRef("P", "P"), StreamRef("P", "Q"))) is not None


def test_a_grant_does_not_rest_on_itself() -> None:
    assert check_delegation(catalog_of(READ), "paul", replace(READ, subject=Subject("Nurse"))) is not None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"attributes": (POS, PLATOON)}, "it gives more: `Platoon`"),
        ({"predicate": TRUE, "attributes": (POS,)}, None),
        ({"predicate": pos(Op.GT, 5)}, None),
    ],
)
def test_a_read_grant_may_be_narrowed(changes: dict[str, object], why: str | None) -> None:
    found = reason(READ, **changes)
    assert found == (why and f"under `read` {why}")


def test_a_read_predicate_lies_within_the_parents() -> None:
    parent = replace(READ, predicate=pos(Op.GT, 5))
    assert reason(parent, predicate=pos(Op.GT, 7)) is None
    assert reason(parent, predicate=And((pos(Op.GT, 5), pos(Op.LT, 9)))) is None
    assert reason(parent, predicate=pos(Op.GT, 3)) == "under `read` its predicate is not within the parent's"
    assert reason(parent, predicate=TRUE) is not None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rights": (AggRight(AggFunction.AVG, POS),)}, "it gives more: `AVG(Pos)`"),
        ({"rights": (AggRight(AggFunction.COUNT, None),)}, None),
        ({"by": (PLATOON, SID)}, "BY is wider"),
        ({"narrow_by": (SID, POS)}, "NARROW BY is wider"),
        ({"by": (), "narrow_by": ()}, None),
        ({"least": LeastWindow(60, 30)}, "the least window is smaller, or of another kind"),
        ({"least": LeastWindow(60, 60, rows=True)}, "the least window is smaller, or of another kind"),
        ({"least": None}, "the least window is smaller, or of another kind"),
        ({"least": LeastWindow(120, 60)}, None),
        ({"min_group": 4}, "MIN GROUP is below 5"),
        ({"min_group": 6}, None),
        ({"predicate": pos(Op.GT, 5)}, "its predicate is not the same as the parent's"),
    ],
)
def test_limits_of_an_aggregate_grant(changes: dict[str, object], why: str | None) -> None:
    assert reason(TOTAL, **changes) == (why and f"under `total` {why}")


def test_an_aggregate_predicate_may_be_written_in_another_way() -> None:
    parent = replace(TOTAL, predicate=And((pos(Op.GT, 5), pos(Op.LT, 9))))
    assert reason(parent, predicate=And((pos(Op.LT, 9), pos(Op.GT, 5)))) is None
    assert reason(parent, predicate=And((pos(Op.GT, 5), pos(Op.LT, 9), pos(Op.LT, 10)))) is None


@pytest.mark.parametrize(
    ("parent", "during", "allowed"),
    [
        (None, None, True),
        (None, During(START, END), True),
        (During(at(5), at(9)), None, False),
        (During(at(5), at(9)), During(at(6), at(9)), True),
        (During(at(5), at(9)), During(at(4), at(9)), False),
        (During(at(5), at(9)), During(at(5), at(10)), False),
        (During(at(5), at(9)), During(NULL, at(9)), False),
        (During(at(5), at(9)), During(at(5), NULL), False),
        (During(at(5), NULL), During(at(5), at(9)), True),
        (During(at(5), NULL), During(at(5), END), True),
        (During(NULL, at(9)), During(START, at(9)), True),
        (During(START, END), During(START, END), True),
        (During(START, END), During(at(5), END), False),
        (During(START, END), During(START, at(9)), False),
        (During(at(5), at(9)), During(at(5), END), False),
        (During(at(5), END), During(at(6), END), True),
        (During(NULL, END), During(NULL, END), True),
        (During(NULL, END), During(at(5), END), False),  # while `end` is not set the parent gives nothing
    ],
)
def test_during_is_no_wider(parent: During | None, during: During | None, allowed: bool) -> None:
    assert (reason(replace(READ, during=parent), during=during) is None) is allowed


def test_self_in_the_parent_is_the_grantor() -> None:
    parent = replace(READ, predicate=is_platoon(SelfRef("Platoon", STRING)))
    assert reason(parent, predicate=is_platoon("X")) is None
    assert reason(parent, predicate=And((is_platoon("X"), is_platoon(SelfRef("Platoon", STRING))))) is None
    assert reason(parent) is not None
    assert reason(parent, predicate=is_platoon("Y")) is not None


def test_self_in_an_aggregate_parent_is_the_grantor() -> None:
    parent = replace(TOTAL, predicate=is_platoon(SelfRef("Platoon", STRING), Op.NE))
    assert reason(parent, predicate=is_platoon("X", Op.NE)) is None
    assert reason(parent) is not None


def test_self_in_a_fact_of_during_is_the_grantor() -> None:
    mine = FactRef("start", (SelfRef("Platoon", STRING),))
    parent = replace(READ, during=During(mine, NULL))
    assert reason(parent) is not None
    assert reason(parent, during=During(FactRef("start", (Literal("X", STRING),)), NULL)) is None


def test_a_missing_or_moving_profile_attribute_passes_nothing_on() -> None:
    parent = replace(READ, predicate=is_platoon(SelfRef("Platoon", STRING)))
    moving = User(
        "paul", ("Doctor",), (("Platoon", Literal("X", STRING)),), Follow("P", ("Platoon",), "SID", 60)
    )
    for user in (User("paul", ("Doctor",)), moving):
        catalog = catalog_of(parent, paul=user)
        assert check_delegation(catalog, "paul", pass_on(parent, predicate=is_platoon("X"))) is not None
        assert check_delegation(catalog, "paul", pass_on(parent)) is not None


def test_aliases_may_differ_and_swap() -> None:
    a, b = Column("a", "n", INT), Column("b", "n", INT)
    x, y = Column("x", "n", INT), Column("y", "n", INT)
    parent = replace(
        READ,
        streams=(StreamRef("P", "a"), StreamRef("P", "b")),
        attributes=(a,),
        predicate=Compare(Op.LT, a, b),
    )
    streams = (StreamRef("P", "x"), StreamRef("P", "y"))
    swapped = {"streams": streams, "attributes": (y,), "predicate": Compare(Op.LT, y, x)}
    assert reason(parent, **swapped) is None
    assert reason(parent, **swapped | {"attributes": (x,)}) is not None


DERIVED = pass_on(READ, name="d1", subject=Subject("bob", True), grantor="paul", grant_option=True)
FURTHER = pass_on(READ, name="d2", attributes=(POS,), grantor="bob")


def test_what_a_grant_rests_on() -> None:
    catalog = catalog_of(READ, DERIVED, FURTHER)
    assert parents(catalog, READ) == ()
    assert parents(catalog, DERIVED) == ("read",)
    assert parents(catalog, FURTHER) == ("d1",)
    assert orphans(catalog) == ()


def test_what_falls_with_a_grant() -> None:
    catalog = catalog_of(READ, DERIVED, FURTHER)
    assert dependents(catalog, "read") == ("d1", "d2")
    assert dependents(catalog, "d1") == ("d2",)
    assert dependents(catalog, "d2") == dependents(catalog, "unknown") == ()


def test_a_second_parent_holds_it() -> None:
    catalog = catalog_of(READ, replace(READ, name="second"), DERIVED, FURTHER)
    assert dependents(catalog, "read") == ()


def test_two_that_rest_on_each_other_fall_together() -> None:
    back = pass_on(READ, name="back", subject=Subject("paul", True), grantor="bob", grant_option=True)
    catalog = catalog_of(READ, DERIVED, back)
    assert orphans(catalog) == ()
    assert dependents(catalog, "read") == ("back", "d1")


@pytest.mark.parametrize(
    "paul",
    [User("paul", ("Nurse",)), User("paul", ("Surgeon",), disabled=True)],
    ids=["lost-role", "disabled"],
)
def test_a_grantor_who_lost_the_right_leaves_orphans(paul: User) -> None:
    assert orphans(catalog_of(READ, DERIVED, FURTHER, paul=paul)) == ("d1", "d2")


def test_a_changed_profile_leaves_orphans() -> None:
    parent = replace(READ, predicate=is_platoon(SelfRef("Platoon", STRING)))
    derived = pass_on(parent, predicate=is_platoon("X"), grantor="paul")
    assert orphans(catalog_of(parent, derived)) == ()
    moved = User("paul", ("Surgeon",), (("Platoon", Literal("Y", STRING)),))
    assert orphans(catalog_of(parent, derived, paul=moved)) == ("new",)


def test_cycles_of_roles() -> None:
    roles = {"A": Role("A", ("B",)), "B": Role("B", ("C",)), "C": Role("C")}
    assert find_cycle(roles) is None
    assert find_cycle(roles | {"C": Role("C", ("A",))}) == ("A", "B", "C", "A")
    assert find_cycle({"A": Role("A", ("A",))}) == ("A", "A")
    assert find_cycle({"A": Role("A", ("missing",))}) is None


def test_a_long_chain_of_roles_is_no_cycle() -> None:
    roles = {f"r{at}": Role(f"r{at}", (f"r{at + 1}",)) for at in range(3_000)}
    assert find_cycle(roles) is None
    assert len(juniors(roles, "r0")) == 2_999


def test_seniors_and_juniors() -> None:
    roles = {"A": Role("A", ("B", "C")), "B": Role("B", ("D",)), "C": Role("C", ("D",)), "D": Role("D")}
    assert juniors(roles, "A") == {"B", "C", "D"}
    assert seniors(roles, "D") == {"A", "B", "C"}
    assert juniors(roles, "D") == seniors(roles, "A") == juniors(roles, "unknown") == frozenset()

"""Who can see a stream or an attribute, by which grant, until when."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from sluicegate.expr.nodes import NULL, Column, Compare, FactRef, Literal, Op, SelfRef
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
from sluicegate.rewrite.who import Entry, who

HOUR = 3_600_000_000
POS, SID = Column("P", "Pos", DOUBLE), Column("P", "SID", STRING)
PLATOON = Column("P", "Platoon", STRING)
START, END = FactRef("start", (Literal("a", STRING),)), FactRef("finish", (Literal("a", STRING),))
ON_P = (StreamRef("Position", "P"),)
POSITION = Stream(
    "Position", (("ts", TIMESTAMP), ("SID", STRING), ("Platoon", STRING), ("Pos", DOUBLE)), "ts"
)

OWN = Grant(
    "own",
    Subject("Doctor"),
    Privilege.READ,
    ON_P,
    (POS, SID),
    predicate=Compare(Op.EQ, PLATOON, SelfRef("Platoon", STRING)),
)
OTHERS = Grant(
    "others",
    Subject("Doctor"),
    Privilege.AGGREGATE,
    ON_P,
    rights=(
        AggRight(AggFunction.AVG, POS),
        AggRight(AggFunction.COUNT_DISTINCT, SID),
        AggRight(AggFunction.COUNT, None),
    ),
    during=During(START, END),
    least=LeastWindow(HOUR, HOUR),
    by=(PLATOON,),
    min_group=5,
)
DIRECT = Grant("direct", Subject("ann", True), Privilege.READ, ON_P, (SID,))


def fact(name: str, hours: int) -> Fact:
    return Fact(name, ("a",), Literal(hours * HOUR, TIMESTAMP))


def catalog_of(*grants: Grant, facts: tuple[Fact, ...] = (), stream: Stream = POSITION) -> Catalog:
    return Catalog(
        streams={"Position": stream},
        roles={"Doctor": Role("Doctor"), "Surgeon": Role("Surgeon", ("Doctor",))},
        users={
            "ann": User("ann"),
            "paul": User("paul", ("Surgeon",)),
            "zoe": User("zoe", ("Doctor",), disabled=True),
        },
        facts={(each.name, each.args): each for each in facts},
        grants={grant.name: grant for grant in grants},
    )


def test_readers_of_an_attribute() -> None:
    catalog = catalog_of(OWN, OTHERS, DIRECT, facts=(fact("start", 1),))
    assert who(catalog, "Position", "Pos") == [
        Entry(
            "paul",
            "others",
            "aggregate",
            "Doctor",
            functions=("AVG(Pos)",),
            streams=("Position",),
            window="at least 1 hour every 1 hour",
            min_group=5,
            since="1970-01-01 01:00:00",
            until="finish('a') is not set",
        ),
        Entry(
            "paul",
            "own",
            "read",
            "Doctor",
            attributes=("Pos",),
            streams=("Position",),
            condition="P.Platoon = self.Platoon",
        ),
    ]


def test_readers_of_a_stream() -> None:
    catalog = catalog_of(OWN, OTHERS, DIRECT)
    entries = who(catalog, "Position")
    assert [(each.principal, each.grant, each.role) for each in entries] == [
        ("ann", "direct", None),
        ("paul", "others", "Doctor"),
        ("paul", "own", "Doctor"),
    ]
    assert entries[1].functions == ("AVG(Pos)", "COUNT(*)", "COUNT(DISTINCT SID)")
    assert entries[1].attributes == ("Platoon",)


def test_keys_of_groups_are_seen() -> None:
    (entry,) = who(catalog_of(OTHERS), "Position", "Platoon")
    assert entry.attributes == ("Platoon",)
    assert entry.functions == ()


def test_until_when() -> None:
    def span(during: During, *facts: Fact) -> tuple[str | None, str | None, bool]:
        (entry,) = who(catalog_of(replace(DIRECT, during=during), facts=facts), "Position")
        return entry.since, entry.until, entry.open

    one, two = "1970-01-01 01:00:00", "1970-01-01 02:00:00"
    literal = During(Literal(HOUR, TIMESTAMP), Literal(2 * HOUR, TIMESTAMP))
    assert span(literal) == (one, two, True)
    assert span(During(START, END), fact("start", 1), fact("finish", 2)) == (one, two, True)
    assert span(During(START, END), fact("start", 1)) == (one, "finish('a') is not set", True)
    assert span(During(START, END)) == ("start('a') is not set", "finish('a') is not set", False)
    assert span(During(NULL, END)) == (None, "finish('a') is not set", False)
    assert span(During(NULL, NULL)) == (None, None, True)


def test_a_fact_of_each_principal() -> None:
    during = During(FactRef("start", (SelfRef("action", STRING),)), NULL)
    catalog = catalog_of(replace(OWN, during=during), facts=(fact("start", 1),))
    users = {
        "paul": User("paul", ("Doctor",), (("action", Literal("a", STRING)),)),
        "bob": User("bob", ("Doctor",)),
    }
    bob, paul = who(replace(catalog, users=users), "Position")
    assert (paul.since, paul.open) == ("1970-01-01 01:00:00", True)
    assert not bob.open


def test_what_gives_no_sight() -> None:
    catalog = catalog_of(
        replace(OWN, closed="gone"), replace(DIRECT, privilege=Privilege.APPEND, attributes=())
    )
    assert who(catalog, "Position") == who(catalog, "unknown") == []


def test_one_side_of_a_join() -> None:
    joined = replace(
        OWN, streams=(*ON_P, StreamRef("Health", "H")), attributes=(POS, Column("H", "Heart", DOUBLE))
    )
    (entry,) = who(catalog_of(joined), "Position")
    assert entry.attributes == ("Pos",)
    assert entry.streams == ("Health", "Position")
    assert who(catalog_of(joined), "Position", "Heart") == []


def test_where_providers_decide() -> None:
    catalog = catalog_of(stream=replace(POSITION, governed_by_provider=True, punctuated_by="SID"))
    assert [(each.principal, each.kind) for each in who(catalog, "Position", "Pos")] == [("*", "provider")]
    assert who(catalog, "Position", "unknown") == []


def test_entries_become_json() -> None:
    (entry,) = who(catalog_of(DIRECT), "Position")
    assert json.loads(json.dumps(entry.to_json()))["attributes"] == ["SID"]


def test_a_large_catalog() -> None:
    roles = {f"r{at}": Role(f"r{at}", (f"r{at // 2}",) if at else ()) for at in range(200)}
    users = {f"u{at}": User(f"u{at}", (f"r{at % 200}",)) for at in range(10_000)}
    grants = {
        f"g{at}": replace(
            OWN, name=f"g{at}", subject=Subject(f"r{at % 200}"), streams=(StreamRef(f"S{at % 500}", "P"),)
        )
        for at in range(10_000)
    }
    begun = time.process_time()
    entries = who(Catalog(roles=roles, users=users, grants=grants), "S7", "Pos")
    assert entries
    assert time.process_time() - begun < 2


RESULTS = """
CREATE STREAM P (ts TIMESTAMP, id STRING, x INT, y INT) TIMESTAMP BY ts OWNER boss;
CREATE USER boss; CREATE USER ann; CREATE USER pat; CREATE USER eve;
CREATE GRANT own READ (*) ON P TO USER ann;
CREATE STREAM Mine OWNER ann AS SELECT ts, id, x FROM P;
CREATE STREAM Few OWNER pat AS SELECT ts, id FROM Mine WHERE x > 1;
CREATE GRANT mine READ (*) ON Mine TO USER pat;
CREATE GRANT few READ (id) ON Few TO USER eve;
"""


def _told(text: str, stream: str, attribute: str | None = None) -> list[tuple[str, str, str | None]]:
    found = who(read_catalog(text), stream, attribute)
    return [(each.principal, each.kind, each.through) for each in found]


def test_readers_of_named_results_see_what_these_are_made_of() -> None:
    assert _told(RESULTS, "P") == [("ann", "read", None), ("pat", "read", "Mine"), ("eve", "read", "Few")]
    assert _told(RESULTS, "P", "x") == _told(RESULTS, "P")
    assert _told(RESULTS, "P", "y") == [("ann", "read", None)]
    assert _told(RESULTS, "Mine") == [("pat", "read", None), ("ann", "owner", None), ("eve", "read", "Few")]


def test_nobody_sees_anything_through_a_result_that_has_ended() -> None:
    ended = RESULTS.replace("CREATE GRANT own READ (*) ON P TO USER ann;", "")
    assert _told(ended, "P") == []
    assert ("ann", "owner", None) not in _told(ended, "Mine")

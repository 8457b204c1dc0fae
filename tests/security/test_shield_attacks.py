"""Ways around the shield that were found by looking for them: each was open once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.fold import fold_together
from sluicegate.language.load import read_catalog
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.punctuation_wire import Arrived, read_punctuation_text
from sluicegate.language.resolve import read_query
from sluicegate.policy.classes import Member, PolicyClass
from sluicegate.policy.punctuation import Anything, Constant, Restriction
from sluicegate.policy.verdict import mask_attributes, standing_of
from sluicegate.policy.who import Who, read_who, write_who
from sluicegate.rewrite.explain import explain
from sluicegate.runtime.network.authorize import authorize
from sluicegate.runtime.network.graphs import Graphs
from sluicegate.runtime.network.seats import Seat, seat_catalog

STREAM = """CREATE STREAM S (ts TIMESTAMP, id {key}, v INT) TIMESTAMP BY ts WATERMARK '5 seconds'
OWNER clinic PUNCTUATED BY id;
CREATE USER clinic; CREATE ROLE Doctor; CREATE ROLE Suspended;
"""
INT = STREAM.format(key="INT")


def test_a_kept_graph_is_not_used_when_a_role_inherits_otherwise() -> None:
    world = INT + "CREATE USER u ROLES (A, Doctor); CREATE GRANT s READ (*) ON S TO A; CREATE ROLE A{};"
    query, graphs = "SELECT SUM(v) AS k FROM S [RANGE 1 MINUTE]", Graphs()
    before = graphs.authorize(read_catalog(world.format(" INHERITS Doctor")), "u", query)
    after = graphs.authorize(read_catalog(world.format("")), "u", query)
    assert after.mark == authorize(read_catalog(world.format("")), "u", query).mark != before.mark


def test_a_role_that_a_session_does_not_use_still_denies() -> None:
    catalog = read_catalog(
        INT + "CREATE USER u ROLES (Doctor, Suspended); CREATE GRANT s READ (*) ON S TO Doctor;"
    )
    doctor = Restriction("frbac", Constant("Doctor"))
    denied = Member(Anything(), Restriction("frbac", Constant("Suspended")), positive=False)
    standing = standing_of(seat_catalog(catalog, Seat("u", frozenset({"Doctor"}))), "u")
    assert mask_attributes(PolicyClass(frozenset({Member(Anything(), doctor)})), (), standing, ["v"])["v"]
    policy = PolicyClass(frozenset({Member(Anything(), doctor), denied}))
    assert mask_attributes(policy, (), standing, ["v"]) == {"v": 0}
    assert read_who(write_who(Who(standing))) == Who(standing)


def test_a_session_reads_no_more_by_its_own_result_than_its_roles_allow() -> None:
    text = """CREATE STREAM S (ts TIMESTAMP, v INT) TIMESTAMP BY ts WATERMARK '5 seconds';
    CREATE ROLE Doctor; CREATE ROLE Clerk; CREATE USER u ROLES (Doctor, Clerk);
    CREATE GRANT s READ (*) ON S TO Doctor; CREATE STREAM R OWNER u AS SELECT ts, v FROM S;"""
    catalog = read_catalog(text)
    assert authorize(catalog, "u", "SELECT v FROM R").reads
    with pytest.raises(DiagnosticError):
        authorize(
            seat_catalog(catalog, Seat("u", frozenset({"Clerk"}))), "u", "SELECT v FROM R", makers=catalog
        )


OWN = """CREATE STREAM S (ts TIMESTAMP, v INT) TIMESTAMP BY ts WATERMARK '5 seconds';
CREATE ROLE Doctor; CREATE ROLE Clerk; CREATE USER u ROLES (Doctor, Clerk) SET (ward = 1); CREATE USER w;
CREATE GRANT s READ (*) ON S TO Doctor WITH GRANT OPTION; CREATE STREAM R OWNER u AS SELECT ts, v FROM S;
CREATE GRANT mine READ (*) ON R TO USER u; CREATE GRANT clerks READ (*) ON R TO Clerk;
CREATE GRANT theirs READ (*) ON R TO USER w WITH GRANT OPTION;
CREATE STREAM Chain OWNER u AS SELECT ts, v FROM R; CREATE GRANT chain READ (*) ON Chain TO Clerk;
CREATE STREAM Back OWNER w AS SELECT ts, v FROM R; CREATE GRANT back READ (*) ON Back TO USER u;
CREATE STREAM Told OWNER u AS SELECT ts, v FROM S
ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:Clerk, SIGN = POSITIVE);
CREATE STREAM Other (ts TIMESTAMP, v INT) TIMESTAMP BY ts WATERMARK '5 seconds' OWNER w;
CREATE GRANT others READ (*) ON Other TO USER w; CREATE STREAM Free OWNER w AS SELECT ts, v FROM Other;
CREATE GRANT free READ (*) ON Free TO Clerk;"""
SEATS = [
    Seat("u", frozenset({"Clerk"})),
    Seat("u", frozenset({"Clerk"}), claimed=True),
    Seat("u", None, (("ward", None),)),
]


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("name", ["R", "Chain", "Back", "Told"])
def test_no_grant_opens_what_a_user_made_with_more_than_its_session_has(name: str, seat: Seat) -> None:
    """Nor what somebody else made of it, nor what an ON RESULT says of it; with all that the user has it is open."""
    catalog, query = read_catalog(OWN), f"SELECT v FROM {name}"
    seated = seat_catalog(catalog, seat)
    assert authorize(catalog, "u", query).reads
    with pytest.raises(DiagnosticError) as refused:
        authorize(seated, "u", query, makers=catalog)
    told = [each.message for each in refused.value.diagnostics]
    assert f"`{name}` is made with all that `u` has: this session leaves some of it aside" in told
    found = explain(seated, "u", read_query(query, seated).root)
    assert not found.used


@pytest.mark.parametrize("seat", SEATS)
def test_others_read_what_they_may_whatever_session_its_maker_has(seat: Seat) -> None:
    catalog = read_catalog(OWN)
    seated = seat_catalog(catalog, seat)
    assert authorize(seated, "w", "SELECT v FROM R", makers=catalog).grants == ("theirs",)
    assert authorize(seated, "u", "SELECT v FROM Free", makers=catalog).grants == ("free",)


@pytest.mark.parametrize(
    ("key", "assigned", "code"),
    [
        ("INT", "DDP = TUPLES:'120', SRP = frbac:Doctor", "sp-pattern"),
        ("BOOLEAN", "DDP = TUPLES:1, SRP = frbac:Doctor, SIGN = NEGATIVE", "sp-pattern"),
        ("INT", "DDP = TUPLES:[200, 100], SRP = frbac:Doctor", "sp-pattern"),
        ("INT", "DDP = ATTRIBUTES:V, SRP = frbac:Doctor", "sp-unknown-attribute"),
        ("INT", "DDP = ATTRIBUTES:[x, z], SRP = frbac:Doctor", "sp-unknown-attribute"),
        ("INT", "DDP = TUPLES:ALL, SRP = frbac:(A, B), SIGN = NEGATIVE", "sp-unknown-subject"),
        ("INT", "DDP = STREAMS:T, SRP = frbac:Doctor", "sp-unknown-stream"),
        ("INT", "DDP = TUPLES:ALL, SRP = frbac:doctor, SIGN = NEGATIVE", "sp-unknown-subject"),
    ],
)
def test_a_punctuation_of_the_server_that_would_narrow_nothing_is_refused(
    key: str, assigned: str, code: str
) -> None:
    with pytest.raises(DiagnosticError) as caught:
        read_catalog(STREAM.format(key=key) + f"CREATE SP x INTO STREAM S LET {assigned};")
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].span is not None


NARROWED = (
    INT
    + """CREATE USER ann;
CREATE SP a INTO STREAM S LET DDP = STREAMS:{S, gone} AND TUPLES:ALL, SRP = frbac:Suspended, SIGN = NEGATIVE;
CREATE SP b INTO STREAM S LET DDP = TUPLES:ALL AND ATTRIBUTES:v, SRP = frbac:Doctor, SIGN = POSITIVE;
CREATE SP c INTO STREAM S LET DDP = TUPLES:ALL, SRP = user:ann, SIGN = NEGATIVE;
"""
)


@pytest.mark.parametrize(
    "change", ["DROP ROLE Suspended CASCADE", "DROP USER ann CASCADE", "ALTER STREAM S DROP v"]
)
def test_what_the_server_narrows_by_is_not_dropped_from_under_it(change: str) -> None:
    with pytest.raises(DiagnosticError, match="in-use"):
        read_catalog(f"{NARROWED} {change};")


def test_a_catalog_with_such_punctuations_is_read_back() -> None:
    catalog = read_catalog(NARROWED + "DROP ROLE Doctor;")
    assert fold_together(catalog_statements(catalog)).punctuations == catalog.punctuations


def test_patterns_of_one_key_are_not_read_for_another() -> None:
    text = INT + "CREATE SP x INTO STREAM S LET DDP = TUPLES:1, SRP = frbac:Doctor;"
    with pytest.raises(DiagnosticError, match="describe tuples by `id`"):
        read_catalog(text + "ALTER STREAM S PUNCTUATED BY v;")


@pytest.mark.parametrize(
    ("key", "ddp"),
    [("INT", {"tuples": "*"}), ("TIMESTAMP", {"tuples": None})],
)
def test_a_hostile_text_is_refused_and_raises_nothing_else(key: str, ddp: dict[str, object]) -> None:
    catalog = read_catalog(STREAM.format(key=key))
    made = json.dumps({"ddp": ddp, "srp": ["Doctor"], "ts": "2026-01-01T10:00:00", "sn": 1})
    deep = '{"closed":' * 900 + "1" + "}" * 900
    text = made.replace("null", deep) if key == "TIMESTAMP" else made.replace("Doctor", "\\ud800")
    with pytest.raises(DiagnosticError):
        read_punctuation_text(text, Arrived(catalog.streams["S"], "clinic", None), catalog)


def test_a_class_table_that_lost_lines_is_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from sluicegate.runtime.feed.source_log import SourceLog
    from sluicegate.runtime.shield.append import append_elements
    from sluicegate.runtime.shield.shield import Shield

    catalog = read_catalog(INT)
    stream, moment = catalog.streams["S"], 1767261600000000
    sp = json.dumps({"ddp": {"tuples": "*"}, "srp": ["Doctor"], "ts": "2026-01-01T10:00:00", "sn": 1})
    columns = {
        "ts": pa.array([None, moment], pa.timestamp("us", "UTC")),
        "id": pa.array([None, 1], pa.int32()),
        "v": pa.array([None, 1], pa.int32()),
        "_sp": pa.array([sp, None], pa.string()),
        "_sp_ts": pa.array([None, moment], pa.timestamp("us", "UTC")),
        "_sp_count": pa.array([None, 1], pa.int64()),
        "_sender": pa.array(["clinic", "clinic"]),
    }
    columns |= {name: pa.nulls(2, pa.string()) for name in ("_partition", "_problem", "_raw")}
    log = SourceLog(tmp_path, stream)
    assert append_elements(log, Shield(log, lambda: catalog), pa.table(columns), 0, "clinic").rows == 1
    (tmp_path / "shield" / "classes.jsonl").write_bytes(b"")
    with pytest.raises(DiagnosticError, match="lost policy classes"):
        Shield(SourceLog(tmp_path, stream), lambda: catalog)

"""What a principal may change and write, and when what it was given ends (bypass 28)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate.expr.evaluate import is_true
from sluicegate.expr.nodes import Column, FactRef, SelfRef, walk
from sluicegate.expr.types import INT
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.policy.catalog import Catalog
from sluicegate.service.identity.appends import MayAppend, may_append
from sluicegate.service.identity.bearers import BearerKind
from sluicegate.service.identity.changes import Allowed, Denied, hide_unknown, may_change
from sluicegate.service.identity.principal import Principal, Refused, seat
from sluicegate.source import SourceText
from unit.identity_world import CATALOG, PASSWORD, World, make_world


@pytest.fixture
def world() -> World:
    return make_world()


def ask(world: World, principal: Principal, text: str) -> Allowed | Denied:
    return may_change(principal, parse_statements(SourceText("<test>", text)), world.catalog)


def change(world: World, text: str) -> None:
    world.catalog = apply(world.catalog, parse_statements(SourceText("<test>", text)))


def code(found: Allowed | Denied) -> str:
    return found.code if isinstance(found, Denied) else "allowed"


def test_administrators_may_change_anything(world: World) -> None:
    found = ask(world, world.sign_in("root"), "CREATE ROLE Intern; ALTER USER nina ADD ROLE Doctor;")
    assert isinstance(found, Allowed)
    assert found.author is None
    assert "Doctor" in found.catalog.roles_of("nina")
    assert "Doctor" not in world.catalog.roles_of("nina")


def test_bypass_16_everybody_else_may_change_nothing(world: World) -> None:
    texts = [
        "CREATE ROLE Intern;",
        "CREATE USER eve;",
        "ALTER USER nina ADD ROLE administrator;",
        "ALTER USER nina SET (Ward = 1);",
        "ALTER ROLE Nurse INHERITS administrator;",
        "DROP GRANT heart;",
        "DROP STREAM Heart CASCADE;",
        "ALTER STREAM Heart OWNER nina;",
        "CREATE OR REPLACE GRANT ward READ (*) ON Heart TO Nurse;",
        "CREATE GRANT mine READ (ts, Beats) ON Heart TO USER nina;",
        "SET FACT open('x') = 1;",
        "CREATE STREAM Own (ts TIMESTAMP) TIMESTAMP BY ts OWNER nina;",
    ]
    nina = world.sign_in("nina")
    assert {code(ask(world, nina, text)) for text in texts} <= {"not-allowed", "may-not-grant"}


def test_an_owner_grants_on_its_own_streams_alone(world: World) -> None:
    owner = world.sign_in("hospital")
    allowed = ask(world, owner, "CREATE GRANT b READ (ts) ON Breath TO Nurse; DROP GRANT ward;")
    assert isinstance(allowed, Allowed)
    assert allowed.author == "hospital"
    assert code(ask(world, owner, "ALTER STREAM Heart ADD Ward INT;")) == "allowed"
    assert code(ask(world, owner, "CREATE GRANT p READ (ts) ON Payroll TO Nurse;")) == "unknown-stream"
    assert code(ask(world, owner, "SET FACT open('x') = 1;")) == "not-allowed"


@pytest.mark.parametrize(
    "source",
    [
        "KEY (k) FROM sqlite OPTIONS (path = '/x.db', table = 'staff')",
        "TIMESTAMP BY T FROM ais OPTIONS (udp = 'localhost:1')",
        "TIMESTAMP BY T FROM kafka OPTIONS (subscribe = 'x', kafka.bootstrap.servers = 'localhost:1')",
    ],
)
def test_an_owner_does_not_choose_what_is_read_from_a_source(world: World, source: str) -> None:
    attributes = "k INT, x INT" if "KEY" in source else "T TIMESTAMP, SID BIGINT"
    change(world, f"CREATE STREAM Fed ({attributes}) OWNER hospital {source};")
    widen = ["ALTER STREAM Fed ADD Lat DOUBLE;"]
    widen += ["ALTER STREAM Fed KEY (x);", "ALTER STREAM Fed KEY (k, x);"] if "KEY" in source else []
    owner, root = world.sign_in("hospital"), world.sign_in("root")
    assert [code(ask(world, owner, text)) for text in widen] == ["not-allowed"] * len(widen)
    assert [code(ask(world, root, text)) for text in widen] == ["allowed"] * len(widen)
    # less, or the same, is the owner's to say
    assert code(ask(world, owner, f"ALTER STREAM Fed DROP {'x' if 'KEY' in source else 'SID'};")) == "allowed"
    if "KEY" in source:
        assert code(ask(world, owner, "ALTER STREAM Fed KEY (k);")) == "allowed"


def test_the_grant_option_counts_for_active_roles_only(world: World) -> None:
    text = "CREATE GRANT pass_on READ (ts, Beats) ON Heart TO Nurse;"
    assert code(ask(world, world.sign_in("chen"), text)) == "allowed"
    assert code(ask(world, world.sign_in("chen", roles=["Nurse"]), text)) == "may-not-grant"


def test_the_grant_option_gives_no_more_than_was_held(world: World) -> None:
    chen = world.sign_in("chen")
    assert code(ask(world, chen, "CREATE GRANT w READ (ts) ON Heart TO Nurse;")) == "allowed"
    denied = ask(world, chen, "CREATE GRANT w READ (Secret) ON Heart TO Nurse;")
    unknown = ask(world, chen, "CREATE GRANT w READ (Nothing) ON Heart TO Nurse;")
    assert code(denied) == code(unknown) == "unknown-attribute"


def test_refusals_do_not_tell_what_the_principal_may_not_know(world: World) -> None:
    nina, chen = world.sign_in("nina"), world.sign_in("chen")
    for hidden, made_up in (("Payroll", "Payrall"), ("Breath", "Breaths")):
        told = ask(world, nina, f"CREATE GRANT g READ (ts) ON {hidden} TO Nurse;")
        other = ask(world, nina, f"CREATE GRANT g READ (ts) ON {made_up} TO Nurse;")
        assert isinstance(told, Denied)
        assert isinstance(other, Denied)
        assert told.message.replace(hidden, "X") == other.message.replace(made_up, "X")
        assert told.findings[0].help == other.findings[0].help
    whole = ask(world, chen, "CREATE GRANT all_of_it READ (*) ON Heart TO Nurse;")
    assert isinstance(whole, Denied)
    assert "Secret" not in str(whole)
    assert whole.code == "may-not-grant"


def test_a_named_result_cannot_ask_for_streams_that_are_hidden(world: World) -> None:
    found = ask(world, world.sign_in("nina"), "CREATE STREAM Pay AS SELECT ts, Salary FROM Payroll;")
    assert code(found) == "unknown-stream"


def test_a_named_result_of_everything_is_of_everything_known(world: World) -> None:
    nina, owner = world.sign_in("nina"), world.sign_in("hospital")
    star, named = (f"CREATE STREAM Copy AS SELECT {what} FROM Heart;" for what in ("*", "ts, Beats"))
    assert code(ask(world, nina, star)) == "not-allowed"
    assert [code(ask(world, *each)) for each in ((nina, named), (owner, star))] == ["allowed"] * 2
    change(world, star.replace("AS", "OWNER hospital AS") + "CREATE GRANT c READ (ts) ON Copy TO Nurse;")
    assert code(ask(world, nina, named.replace("Copy", "Other"))) == "allowed"


def test_a_named_result_is_not_made_in_a_session_that_leaves_roles_aside(world: World) -> None:
    """It would have the rows of all of its maker's roles, and the session could let anybody read them."""
    text = "CREATE STREAM Copy AS SELECT ts, Beats FROM Heart;"
    found = ask(
        world, world.sign_in("chen", roles=["Nurse"]), "CREATE GRANT a READ (ts) ON Heart TO Nurse;" + text
    )
    assert isinstance(found, Denied)
    assert found.code == "role-inactive"
    assert "`Copy`" in found.message
    assert code(ask(world, world.sign_in("chen"), text)) == "allowed"
    assert code(ask(world, world.sign_in("nina", roles=["Nurse"]), text)) == "allowed"


def test_what_is_known_has_ones_grants_and_nothing_else(world: World) -> None:
    nina = world.sign_in("nina")
    known = hide_unknown(nina, seat(nina, world.catalog))
    assert {name: [each for each, _ in stream.attributes] for name, stream in known.streams.items()} == {
        "Heart": ["ts", "Beats"]
    }
    assert set(known.grants) == {"ward"}
    owner = world.sign_in("hospital")
    assert set(hide_unknown(owner, world.catalog).grants) == {"feed", "heart", "ward"}


def test_a_token_without_the_scope_changes_nothing(world: World) -> None:
    made = world.auth.accounts.bearers.issue(BearerKind.TOKEN, "root", ["read"], 60)
    root = world.bearer(made.text)
    assert isinstance(root, Principal)
    assert not root.is_admin
    assert code(ask(world, root, "CREATE ROLE Intern;")) == "scope-missing"


def device(world: World, scope: str = "push:Heart") -> Principal:
    made = world.auth.accounts.bearers.issue(BearerKind.TOKEN, "device120", [scope], 60)
    found = world.bearer(made.text)
    assert isinstance(found, Principal)
    return found


def test_a_writer_writes_what_its_grant_allows(world: World) -> None:
    found = may_append(device(world), "Heart", world.catalog)
    assert isinstance(found, MayAppend)
    assert found.grants == ("feed",)
    patient = Column("Heart", "Patient_id", INT)
    assert [is_true(found.predicate, {patient: value}) for value in (120, 121, None)] == [True, False, False]


def test_who_may_not_write(world: World) -> None:
    refused = [
        may_append(device(world), "Breath", world.catalog),
        may_append(device(world, "read"), "Heart", world.catalog),
        may_append(device(world, "push:*"), "Breath", world.catalog),
        may_append(device(world, "push:*"), "Nothing", world.catalog),
        may_append(world.sign_in("nina"), "Heart", world.catalog),
        may_append(world.sign_in("hospital"), "Heart", world.catalog),
        may_append(world.sign_in("root"), "Heart", world.catalog),
    ]
    codes = [each.code if isinstance(each, Refused) else "may" for each in refused]
    assert codes == ["scope-missing"] * 2 + ["may-not-append"] * 5
    assert refused[2] == refused[3]


def append_with(world: World, clause: str, more: str = "") -> list[bool]:
    """For patients 120 and 121 at 10 seconds, and 120 at 30 seconds."""
    world.catalog = read_catalog(
        CATALOG.replace("WHERE Patient_id = self.Patient_id TO Device", f"{clause} TO Device") + more
    )
    found = may_append(device(world), "Heart", world.catalog)
    assert isinstance(found, MayAppend)
    assert not [node for node in walk(found.predicate) if isinstance(node, FactRef | SelfRef)]
    heart = dict(world.catalog.streams["Heart"].attributes)
    patient, ts = (Column("Heart", name, heart[name]) for name in ("Patient_id", "ts"))
    rows = [(120, 10), (121, 10), (120, 30)]
    return [is_true(found.predicate, {patient: who, ts: at * 1_000_000}) for who, at in rows]


def test_facts_and_times_of_a_writers_grant_are_values(world: World) -> None:
    facts = "SET FACT sick('w') = 121; SET FACT begins('w') = TIMESTAMP '1970-01-01 00:00:20';"
    assert append_with(world, "WHERE Patient_id = sick('w')", facts) == [False, True, False]
    assert append_with(world, "WHERE Patient_id = sick('x')", facts) == [False, False, False]
    assert append_with(world, "WHERE Patient_id = self.Nothing") == [False, False, False]
    assert append_with(world, "DURING [begins('w'), begins('x')]", facts) == [False, False, True]
    assert append_with(world, "DURING [begins('x'), NULL]", facts) == [False, False, False]


def test_bypass_28_a_disabled_account(world: World) -> None:
    chen = world.sign_in()
    token = world.auth.accounts.issue_token(chen, world.catalog, "chen", ["read"], 60)
    assert world.still(chen) is None
    change(world, "ALTER USER chen DISABLE;")
    assert world.still(chen) == "user-disabled"
    assert not isinstance(token, Refused)
    assert world.code(token.text) == "user-disabled"
    assert seat(chen, world.catalog).grants_to("chen") == ()


def test_bypass_28_a_dropped_user(world: World) -> None:
    chen = world.sign_in()
    change(world, "DROP USER chen CASCADE;")
    assert world.still(chen) == "user-unknown"


def test_bypass_28_a_lost_role(world: World) -> None:
    nurse, all_roles = world.sign_in("chen", roles=["Nurse"]), world.sign_in("chen")
    change(world, "ALTER USER chen DROP ROLE Cardiologist;")
    assert (world.still(nurse), world.still(all_roles)) == (None, "role-lost")
    assert seat(all_roles, world.catalog).roles_of("chen") == {"Nurse"}


def test_bypass_28_a_role_lost_by_inheritance(world: World) -> None:
    chen = world.sign_in()
    change(world, "ALTER ROLE Cardiologist INHERITS NONE;")
    assert world.still(chen) == "role-lost"


def test_bypass_28_an_expired_token(world: World) -> None:
    token = world.bearer(world.issuer.token())
    session = world.sign_in()
    assert isinstance(token, Principal)
    world.clock.move(299.9)
    assert world.still(token) is None
    world.clock.move(0.1)
    assert world.still(token) == "token-expired"
    world.clock.move(8 * 3_600)
    assert world.still(session) == "token-expired"


def test_bypass_28_a_clock_set_back_keeps_nobody_in(world: World) -> None:
    token = world.bearer(world.issuer.token())
    assert isinstance(token, Principal)
    world.clock.move(300)
    world.clock.set_back = 1_000
    assert world.still(token) == "token-expired"


def test_bypass_28_a_revoked_session_ends_within_a_second(world: World) -> None:
    chen, nina = world.sign_in("chen"), world.sign_in("nina")
    assert world.still(chen) is None
    world.auth.accounts.revoke(chen, chen.session)
    world.clock.move(0.25)
    assert (world.still(chen), world.still(nina)) == ("token-revoked", None)


def test_bypass_28_everything_of_a_user_ends_at_once_the_issuers_tokens_too(world: World) -> None:
    session, token = world.sign_in(), world.bearer(world.issuer.token())
    other = world.bearer(world.issuer.token(sub="nina"))
    assert isinstance(token, Principal)
    assert isinstance(other, Principal)
    text = world.issuer.token()
    world.clock.move(1)
    world.auth.accounts.end_all("chen")
    assert (world.still(session), world.still(token), world.still(other)) == ("token-revoked",) * 2 + (None,)
    assert world.code(text) == "token-revoked"
    world.clock.move(1)
    assert isinstance(world.bearer(world.issuer.token()), Principal)
    assert world.sign_in("chen").user == "chen"


def test_bypass_28_a_store_that_does_not_answer_ends_everything_within_a_second(world: World) -> None:
    chen = world.sign_in()
    assert world.still(chen) is None
    world.database.close()
    world.clock.move(0.9)
    assert world.still(chen) is None
    world.clock.move(0.1)
    assert world.still(chen) == "identity-store"


def test_many_questions_are_one_to_the_store(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    readers = [world.sign_in() for _ in range(20)]
    asked: list[str] = []
    real = world.database.query
    monkeypatch.setattr(
        world.database, "query", lambda sql, params=(): asked.append(sql) or real(sql, params)
    )
    for _ in range(4):
        assert [world.still(each) for each in readers] == [None] * 20
        world.clock.move(0.1)
    assert len(asked) == 4, "two snapshots of two statements"


def test_a_session_opened_after_the_snapshot_is_valid(world: World) -> None:
    assert world.still(world.sign_in()) is None
    assert world.still(world.sign_in()) is None


def test_handles_belong_to_user_and_active_roles(world: World) -> None:
    keys = {world.sign_in(roles=roles).key for roles in (["Nurse"], ["Doctor"], ["Doctor"])}
    assert len(keys) == 2


def test_a_seat_has_active_roles_only(world: World) -> None:
    nurse = world.sign_in("chen", roles=["Nurse"])
    assert [grant.name for grant in seat(nurse, world.catalog).grants_to("chen")] == ["ward"]
    assert seat(world.sign_in("chen"), world.catalog) is world.catalog
    empty: Catalog = replace(world.catalog, users={})
    assert seat(nurse, empty) is empty
    assert PASSWORD not in repr(nurse)

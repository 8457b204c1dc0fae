"""Local users, lock-out, API tokens and sessions; the header that says who is asking (bypass 31)."""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError
from sluicegate.service.identity.attempts import name_client, name_user
from sluicegate.service.identity.authenticator import Authenticator, SignedIn
from sluicegate.service.identity.bearers import BearerKind, Issued, hash_secret
from sluicegate.service.identity.database import (
    DatabaseDownError,
    Parameter,
    Row,
    SqliteDatabase,
    StoreDatabase,
    create_tables,
)
from sluicegate.service.identity.passwords import Passwords
from sluicegate.service.identity.principal import Principal, Refused, SignIn
from sluicegate.service.identity.scopes import ALL, check_scope, covers
from sluicegate.service.identity.settings import IdentitySettings, LockSettings, PasswordSettings
from sluicegate.service.store import open_store
from unit.identity_world import CHEAP, HOME, PASSWORD, HandClock, World, encode_part, make_world

WRONG = "not the password"


@pytest.fixture
def world() -> World:
    return make_world()


def attempt(world: World, user: str, password: str = WRONG, client: str = HOME) -> str:
    found = world.auth.sign_in(user, password, client)
    return found.code if isinstance(found, Refused) else "in"


def test_signing_in_opens_a_session_that_is_used_as_a_bearer(world: World) -> None:
    signed = world.auth.sign_in("chen", PASSWORD, HOME)
    assert isinstance(signed, SignedIn)
    found = world.bearer(signed.text)
    assert found == signed.principal
    assert (signed.principal.sign_in, signed.principal.scopes) == (SignIn.PASSWORD, ALL)
    assert signed.principal.roles == {"Cardiologist", "Doctor", "Nurse"}
    assert signed.text not in repr(signed)


def test_a_session_activates_a_subset_of_the_roles(world: World) -> None:
    assert world.sign_in(roles=["Doctor"]).roles == {"Doctor"}
    assert world.sign_in(roles=["Cardiologist"]).roles == {"Cardiologist", "Doctor"}
    assert world.sign_in(roles=[]).roles == set()
    refused = world.auth.sign_in("chen", PASSWORD, HOME, roles=["administrator"])
    assert isinstance(refused, Refused)
    assert refused.code == "role-not-held"


def test_administrators_are_named_or_hold_the_role(world: World) -> None:
    assert world.sign_in("root").is_admin
    assert not world.sign_in("root", roles=[]).is_admin
    assert not world.sign_in("chen").is_admin
    named = make_world(administrators=frozenset({"chen"}), administrator_role=None)
    assert named.sign_in("chen").is_admin
    assert not named.sign_in("root").is_admin


def test_users_unknown_disabled_or_dropped_get_one_answer(world: World) -> None:
    users = dict(world.catalog.users)
    users["nina"] = replace(users["nina"], disabled=True)
    del users["hospital"]
    world.catalog = replace(world.catalog, users=users)
    tried = [
        ("nobody", PASSWORD),
        ("nina", PASSWORD),
        ("hospital", PASSWORD),
        ("chen", WRONG),
        ("", ""),
        ("a\0", "b"),
    ]
    assert {attempt(world, user, password) for user, password in tried} == {"sign-in-failed"}
    assert attempt(world, "\ud800", PASSWORD) == "sign-in-failed"


def test_unknown_users_cost_one_hash_as_known_ones_do(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    done: Counter[str] = Counter()
    real = PasswordHasher.verify

    def count(self: PasswordHasher, hash: str, password: bytes) -> bool:
        done[hash.rpartition("$")[0].rpartition("$")[0]] += 1
        return real(self, hash, password)

    monkeypatch.setattr(PasswordHasher, "verify", count)
    for user in ("chen", "nobody"):
        attempt(world, user)
    assert list(done.values()) == [2], "the same parameters for both"


def test_a_changed_parameter_is_taken_on_at_the_next_sign_in(world: World) -> None:
    stored = "SELECT password_hash FROM identity_accounts WHERE user_name = 'chen'"
    before = world.database.query(stored)
    dearer = Passwords(world.database, world.clock, replace(CHEAP, time_cost=2))
    assert dearer.check("chen", WRONG) is not None
    assert world.database.query(stored) == before
    assert dearer.check("chen", PASSWORD) is None
    ((after,),) = world.database.query(stored)
    assert "t=2" in str(after)
    assert str(after).startswith("$argon2id$")
    assert dearer.check("chen", PASSWORD) is None


def test_the_default_parameters_are_pinned() -> None:
    made = PasswordSettings()
    assert (made.time_cost, made.memory_kib, made.parallelism) == (3, 65_536, 4)


@pytest.mark.parametrize("password", ["short", "x" * 1_025, "é" * 600, "\ud800" * 20, ""])
def test_passwords_that_nobody_may_have(world: World, password: str) -> None:
    refused = world.auth.accounts.set_password("chen", password)
    assert refused is not None
    assert refused.code == "password-weak"
    assert not password or password not in refused.message


def test_a_password_is_not_the_users_name(world: World) -> None:
    assert world.auth.accounts.set_password("Cardiologist-Chen", "cardiologist-chen") is not None


def test_composed_and_decomposed_letters_are_one_password(world: World) -> None:
    assert world.auth.accounts.set_password("chen", "e\u0301toile du nord") is None
    assert attempt(world, "chen", "\u00e9toile du nord") == "in"


def test_a_new_password_ends_sessions_but_not_tokens(world: World) -> None:
    session = world.sign_in()
    token = world.auth.accounts.issue_token(session, world.catalog, "chen", ["read"], 60)
    assert isinstance(token, Issued)
    world.auth.accounts.set_password("chen", "another password")
    assert world.still(session) == "token-revoked"
    assert isinstance(world.bearer(token.text), Principal)


def test_lock_out_doubles_from_the_limit_on(world: World) -> None:
    assert [attempt(world, "chen") for _ in range(6)] == ["sign-in-failed"] * 5 + ["sign-in-blocked"]
    waits = []
    for _ in range(4):
        blocked = world.auth.sign_in("chen", PASSWORD, HOME)
        assert isinstance(blocked, Refused)
        assert blocked.retry_seconds is not None
        waits.append(blocked.retry_seconds)
        world.clock.move(blocked.retry_seconds - 0.001)
        assert attempt(world, "chen", PASSWORD) == "sign-in-blocked"
        world.clock.move(0.001)
        assert attempt(world, "chen") == "sign-in-failed"
    assert waits == [2, 4, 8, 16]


def test_lock_out_has_a_longest_wait_and_ends_with_the_right_password(world: World) -> None:
    for _ in range(20):
        attempt(world, "chen", client="2001:db8::1")
        world.clock.move(900)
    assert attempt(world, "chen", PASSWORD) == "in"
    assert attempt(world, "chen") == "sign-in-failed"
    assert attempt(world, "chen", PASSWORD) == "in"


def test_users_that_do_not_exist_are_locked_out_alike(world: World) -> None:
    assert [attempt(world, "nobody") for _ in range(6)] == [attempt(world, "nina") for _ in range(6)]


def test_an_address_that_guesses_at_many_users_is_locked_out(world: World) -> None:
    codes = [attempt(world, f"user{number}") for number in range(32)]
    assert codes == ["sign-in-failed"] * 30 + ["sign-in-blocked"] * 2
    assert attempt(world, "chen", PASSWORD) == "sign-in-blocked"
    assert attempt(world, "chen", PASSWORD, "198.51.100.1") == "in"


def test_ones_own_password_buys_no_guesses_at_others(world: World) -> None:
    codes = []
    for number in range(40):
        codes.append(attempt(world, f"user{number}"))
        attempt(world, "nina", PASSWORD)
    assert codes.count("sign-in-failed") == 30


def test_a_guess_that_overtakes_another_is_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second reads and counts between the first's reading and counting."""
    for _ in range(4):
        attempt(world, "chen")
    real, overtaking = world.database.query, ["chen"]

    def query(sql: str, params: Sequence[Parameter] = ()) -> list[Row]:
        rows = real(sql, params)
        if overtaking and params == (name_user("chen"),):
            assert attempt(world, overtaking.pop(), client="198.51.100.1") == "sign-in-failed"
        return rows

    monkeypatch.setattr(world.database, "query", query)
    assert attempt(world, "chen", PASSWORD) == "sign-in-blocked"


def test_of_guesses_at_the_same_time_no_more_are_looked_at_than_the_limit(world: World) -> None:
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda _: attempt(world, "chen"), range(12)))
    assert found.count("sign-in-failed") <= 5


def test_addresses_are_counted_by_who_holds_them() -> None:
    assert name_client("::ffff:192.0.2.7") == name_client("192.0.2.7")
    assert name_client("2001:db8::1") == name_client("2001:db8::ffff%eth0") != name_client("2001:db8:1::1")
    assert name_client("not an address") == name_client("") == "client:unknown"


def test_nothing_that_was_typed_is_logged_or_kept(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    attempt(world, "my password by mistake", "secret that was typed")
    signed = world.auth.sign_in("chen", PASSWORD, HOME)
    assert isinstance(signed, SignedIn)
    world.bearer(signed.text[:-1] + "x")
    assert [record.getMessage().split(" from ")[0] for record in caplog.records] == [
        "sign-in refused sign-in-failed",
        "refused token-unknown" if not signed.text.endswith("x") else "unreachable",
    ]
    tables = ("identity_accounts", "identity_attempts", "identity_bearers")
    kept = caplog.text + str([world.database.query(f"SELECT * FROM {table}") for table in tables])
    secret = signed.text.rpartition(f"{signed.principal.session}_")[2]
    for typed in ("my password by mistake", "secret that was typed", PASSWORD, secret, signed.text):
        assert typed not in kept


def issue(world: World, **more: Any) -> Issued:
    asked: dict[str, Any] = {"user": "chen", "scopes": ["read"], "seconds": 3_600} | more
    made = world.auth.accounts.issue_token(world.sign_in("chen"), world.catalog, **asked)
    assert isinstance(made, Issued), made
    return made


def test_a_token_is_stored_as_a_hash_and_shown_once(world: World) -> None:
    made = issue(world, label="dashboard")
    prefix, id_, secret = made.text.split("_", 2)
    assert (prefix, id_, len(secret)) == ("sg", made.bearer.id, 43)
    ((stored,),) = world.database.query("SELECT secret_hash FROM identity_bearers WHERE id = ?", (id_,))
    assert stored == hash_secret(secret)
    assert secret not in repr(made)
    assert world.code(f"sg_{id_}_{stored}"[:71]) == "token-unknown"
    assert world.code(f"ss_{id_}_{secret}") == "token-unknown"


def test_a_token_has_scopes_expiry_and_an_end(world: World) -> None:
    made = issue(world, scopes=["read", "push:Heart"], seconds=10)
    found = world.bearer(made.text)
    assert isinstance(found, Principal)
    assert (found.sign_in, found.scopes) == (SignIn.TOKEN, {"read", "push:Heart"})
    assert (found.may("push:Heart"), found.may("push:Breath"), found.may("grant")) == (True, False, False)
    world.clock.move(10)
    assert world.code(made.text) == "token-expired"
    other = issue(world)
    assert world.auth.accounts.revoke(world.sign_in("nina"), other.bearer.id) is False
    assert world.auth.accounts.revoke(world.sign_in("chen"), other.bearer.id) is True
    assert world.auth.accounts.revoke(world.sign_in("chen"), other.bearer.id) is False
    assert world.code(other.text) == "token-revoked"


def test_last_use_is_noted_once_a_minute(world: World) -> None:
    made = issue(world)
    first = world.clock.now().wall
    world.bearer(made.text)
    world.clock.move(59)
    world.bearer(made.text)
    mine = world.auth.accounts.list_bearers(world.sign_in("chen"), "chen")
    assert [each.last_used for each in mine if each.id == made.bearer.id] == [first]
    assert world.auth.accounts.list_bearers(world.sign_in("nina"), "chen") == ()


def test_who_may_make_which_tokens(world: World) -> None:
    accounts, chen, root = world.auth.accounts, world.sign_in("chen"), world.sign_in("root")

    def made(principal: Principal, **more: Any) -> str:
        asked: dict[str, Any] = {"user": principal.user, "scopes": ["read"], "seconds": 60} | more
        found = accounts.issue_token(principal, world.catalog, **asked)
        return found.code if isinstance(found, Refused) else "made"

    assert (
        made(chen)
        == made(chen, roles=["Doctor"])
        == made(root, user="device120", scopes=["push:Heart"])
        == "made"
    )
    assert made(chen, user="nina") == made(chen, scopes=["admin"]) == made(chen, scopes=[]) == "scope-missing"
    assert made(chen, roles=["administrator"]) == "role-not-held"
    assert made(world.sign_in("chen", roles=["Nurse"]), roles=["Doctor"]) == "role-not-held"
    assert made(root, user="gone") == "user-unknown"
    token = world.bearer(issue(world).text)
    assert isinstance(token, Principal)
    assert made(token) == "scope-missing"
    with pytest.raises(DiagnosticError, match="unknown scope"):
        made(root, scopes=["push: "])


def test_a_token_keeps_the_roles_of_the_session_that_made_it(world: World) -> None:
    narrow = world.sign_in("chen", roles=["Nurse"])
    made = world.auth.accounts.issue_token(narrow, world.catalog, "chen", ["read"], 60)
    assert isinstance(made, Issued)
    found = world.bearer(made.text)
    assert isinstance(found, Principal)
    assert found.roles == {"Nurse"}


def test_a_token_lives_no_longer_than_the_settings_allow(world: World) -> None:
    made = issue(world, seconds=1e9)
    assert made.bearer.expires_at - made.bearer.created_at == 366 * 86_400 * 1_000_000


def test_an_account_is_not_inherited_by_the_next_user_of_that_name(world: World) -> None:
    made = issue(world)
    whole = world.catalog
    world.catalog = replace(whole, users={name: user for name, user in whole.users.items() if name != "chen"})
    assert world.code(made.text) == "user-unknown"
    assert world.auth.accounts.forget_missing(world.catalog) == {"chen"}
    world.catalog = whole
    assert world.code(made.text) == "token-revoked"
    assert attempt(world, "chen", PASSWORD) == "sign-in-failed"


def test_what_was_signed_for_a_dropped_user_without_an_account_does_not_seat_the_next(world: World) -> None:
    accounts, whole = world.auth.accounts, world.catalog
    at = [replace(whole, version=number) for number in range(3)]
    accounts.forget_missing(at[1], lambda _: frozenset())
    assert "dora" not in accounts.cutoffs()
    assert "dora" not in accounts.passwords.users() | accounts.bearers.users()
    accounts.forget_missing(at[2], lambda _: frozenset({"dora"}))
    assert accounts.cutoffs()["dora"] > 0


def test_a_gateway_that_is_behind_does_not_drop_anybody_again(world: World) -> None:
    accounts, whole = world.auth.accounts, world.catalog
    asked: list[int] = []

    def find(since: int) -> frozenset[str]:
        asked.append(since)
        return frozenset({"chen"})

    at = [replace(whole, version=number) for number in range(5)]
    assert accounts.forget_missing(at[1], find) == frozenset()
    issue(world)
    assert accounts.forget_missing(at[3], find) == {"chen"}
    assert accounts.set_password("chen", PASSWORD) is None
    assert accounts.forget_missing(at[2], find) == frozenset()
    assert accounts.forget_missing(at[3], find) == frozenset()
    assert asked == [1]


def test_old_ones_are_purged(world: World) -> None:
    issue(world, seconds=10)
    world.clock.move(100)
    assert world.auth.accounts.bearers.purge(50) == 1
    assert world.auth.accounts.bearers.purge(50) == 0


GUESSED = make_world()


def shape_token(data: bytes) -> str:
    return f"sg_{data[:12].hex()}_{encode_part(data[12:])}"


@settings(max_examples=40)
@given(st.text(max_size=90) | st.binary(min_size=44, max_size=44).map(shape_token))
def test_no_guessed_text_is_a_token(text: str) -> None:
    world = GUESSED
    assert isinstance(world.auth.accounts.bearers.find(text), Refused)


@given(
    st.frozensets(st.sampled_from(["read", "grant", "admin", "push:*", "push:A", "push:B"])),
    st.text(max_size=4),
)
def test_a_scope_is_covered_by_itself_and_pushes_by_push_any(scopes: frozenset[str], name: str) -> None:
    for scope in ("read", "grant", "admin"):
        assert covers(scopes, scope) == (scope in scopes)
    assert covers(scopes, f"push:{name}") == (f"push:{name}" in scopes or "push:*" in scopes)


def test_scopes_that_mean_nothing_are_refused() -> None:
    for scope in ("", "push:", "write", "READ", "push: x", "admin:*"):
        with pytest.raises(DiagnosticError):
            check_scope(scope)


def test_bypass_31_identity_comes_from_the_authorization_header_alone(world: World) -> None:
    assert list(inspect.signature(Authenticator.authenticate).parameters) == [
        "self",
        "authorization",
        "client",
    ]
    text = issue(world).text
    assert isinstance(world.auth.authenticate(["Bearer " + text], HOME), Principal)
    assert isinstance(world.auth.authenticate("bearer " + text, HOME), Principal)
    missing = [None, [], ()]
    malformed = [
        "", " ", text, "Bearer", "Bearer ", f"Bearer  {text}", f"Basic {text}", f"Bearer {text} root", f"Bearer {text},x",
        ["Bearer " + text, "Bearer " + text], f"Bearer\t{text}", "Bearer ünknown", "Bearer " + "x" * 20_000,
    ]  # fmt: skip
    assert {_code(world.auth.authenticate(each, HOME)) for each in missing} == {"credentials-missing"}
    assert {_code(world.auth.authenticate(each, HOME)) for each in malformed} == {"credentials-malformed"}


def test_bypass_31_a_token_cannot_be_used_for_another_user(world: World) -> None:
    mine, others = issue(world), world.auth.accounts.bearers.issue(BearerKind.TOKEN, "root", ["admin"], 60)
    secret = mine.text.rpartition(mine.bearer.id + "_")[2]
    assert world.code(f"sg_{others.bearer.id}_{secret}") == "token-unknown"


def _code(found: Principal | Refused) -> str:
    return found.code if isinstance(found, Refused) else "in"


def test_a_store_that_is_down_lets_nobody_in(world: World) -> None:
    text = issue(world).text
    world.database.close()
    assert world.code(text) == "identity-store"
    assert attempt(world, "chen", PASSWORD) == "identity-store"


def test_a_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "identity.db"
    database = SqliteDatabase(file)
    create_tables(database)
    assert file.stat().st_mode & 0o777 == 0o600
    database.close()
    with pytest.raises(DatabaseDownError):
        database.query("SELECT 1")


def test_accounts_can_live_in_the_catalogs_store(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store.db"))
    database = store.open_database()
    shared = StoreDatabase(database)
    clock = HandClock()
    chosen = IdentitySettings(passwords=CHEAP, lock=LockSettings(user_limit=2))
    auth = Authenticator(chosen, shared, lambda: GUESSED.catalog, clock)
    assert auth.accounts.set_password("chen", PASSWORD) is None
    codes = [_code_of(auth.sign_in("chen", word, HOME)) for word in (PASSWORD, WRONG, WRONG, PASSWORD)]
    assert codes == ["in", "sign-in-failed", "sign-in-failed", "sign-in-blocked"]
    database.close()
    store.close()


def _code_of(found: SignedIn | Refused) -> str:
    return found.code if isinstance(found, Refused) else "in"

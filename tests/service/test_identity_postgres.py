"""Accounts, tokens and lock-out in a real PostgreSQL: the statements mean there what they mean in a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from sluicegate.language.fold import apply
from sluicegate.language.parse_statements import parse_statements
from sluicegate.service.identity.database import DatabaseDownError, StoreDatabase
from sluicegate.service.identity.principal import Principal, Refused
from sluicegate.service.identity.settings import LockSettings
from sluicegate.service.sharing import Sharing
from sluicegate.service.store import open_store
from sluicegate.source import SourceText
from unit.identity_world import HOME, PASSWORD, World, make_world

pytestmark = pytest.mark.slow


@pytest.fixture
def accounts(postgres_url: str) -> Iterator[StoreDatabase]:
    with open_store(postgres_url) as store:
        database = store.open_database()
        yield StoreDatabase(database)
        database.close()


@pytest.fixture
def world(accounts: StoreDatabase) -> World:
    return make_world(database=accounts, lock=LockSettings(user_limit=2))


def _code(found: object) -> str:
    return found.code if isinstance(found, Refused) else "in"


def _issue(world: World, user: str = "chen") -> tuple[str, str]:
    found = world.auth.accounts.issue_token(world.sign_in("root"), world.catalog, user, ["read"], 60.0)
    assert not isinstance(found, Refused)
    return found.bearer.id, found.text


def test_passwords_and_lock_out(world: World) -> None:
    words = (PASSWORD, "wrong horse", "wrong horse", PASSWORD)
    assert [_code(world.auth.sign_in("chen", word, HOME)) for word in words] == [
        "in", "sign-in-failed", "sign-in-failed", "sign-in-blocked",
    ]  # fmt: skip
    world.auth.accounts.attempts.unlock("chen")
    assert world.auth.accounts.set_password("chen", "another horse battery") is None
    assert _code(world.auth.sign_in("chen", "another horse battery", HOME)) == "in"
    assert world.auth.accounts.passwords.users() == {"chen", "nina", "root", "hospital"}


def test_guesses_made_together_are_all_counted(world: World) -> None:
    found: list[str] = []

    def guess() -> None:
        found.append(_code(world.auth.sign_in("nina", "wrong horse", HOME)))

    threads = [threading.Thread(target=guess) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found.count("sign-in-failed") <= 2
    assert set(found) <= {"sign-in-failed", "sign-in-blocked", "sign-in-busy"}


def test_tokens_expire_are_revoked_and_forgotten(world: World) -> None:
    (id_, text), (_, other) = _issue(world), _issue(world, "nina")
    principal = world.bearer(text)
    assert isinstance(principal, Principal)
    assert world.still(principal) is None
    assert world.auth.accounts.revoke(world.sign_in("root"), id_)
    assert not world.auth.accounts.revoke(world.sign_in("root"), id_)
    assert world.code(text) == "token-revoked"
    world.clock.move(61)
    assert world.code(other) == "token-expired"
    world.clock.move(100)
    assert world.auth.accounts.bearers.purge(50.0) >= 2
    assert world.code(text) == world.code(other) == "token-unknown"


def test_everything_of_a_user_ends(world: World, accounts: StoreDatabase) -> None:
    session = world.sign_in("nina")
    world.auth.accounts.end_all("nina")
    world.auth.accounts.end_all("nina")
    world.clock.move(1)
    assert world.still(session) == "token-revoked"
    world.catalog = apply(world.catalog, parse_statements(SourceText("<x>", "DROP USER chen;")))
    assert world.auth.accounts.forget_missing(world.catalog) == {"chen"}
    assert "chen" not in world.auth.accounts.passwords.users()
    assert accounts.query("SELECT count(*) FROM identity_cutoffs") == [(2,)]


def test_paused_streams_are_seen_by_others(accounts: StoreDatabase) -> None:
    one, two = Sharing(accounts), Sharing(accounts)
    one.pause("Heart", "hospital", 1)
    one.pause("Heart", "hospital", 2)
    assert two.refresh()
    assert two.paused == {"Heart"}
    one.resume("Heart")
    assert two.refresh()
    assert two.paused == frozenset()


def test_a_statement_that_fails_is_a_store_that_is_down(accounts: StoreDatabase) -> None:
    with pytest.raises(DatabaseDownError):
        accounts.query("SELECT * FROM nothing")
    assert accounts.query("SELECT 1") == [(1,)]

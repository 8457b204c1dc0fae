"""Proofs of the authorization server: functions of a state, a catalog and a moment."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError, InvariantError
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.service.authorization.proofs import Ground, judge_grants, prove
from sluicegate.service.authorization.state import (
    Admit,
    Cancel,
    Content,
    Create,
    Drop,
    Issue,
    Policy,
    Refuse,
    Revoke,
    State,
    Subscribe,
    Turned,
    Word,
    fold_words,
)
from sluicegate.service.authorization.steady import SteadyClock
from sluicegate.service.authorization.turns import Opened, Turns, find_turns
from sluicegate.service.authorization.words import Words, read_content, write_content
from sluicegate.service.identity.clock import Now
from sluicegate.service.store import open_store

CATALOG = """
CREATE ROLE Doctor; CREATE ROLE Chief INHERITS Doctor; CREATE ROLE Guest;
CREATE USER ann ROLES (Doctor); CREATE USER cho ROLES (Chief); CREATE USER gil ROLES (Guest); CREATE USER own;
CREATE STREAM P (ts TIMESTAMP, id STRING) TIMESTAMP BY ts OWNER own;
CREATE GRANT all_p READ (ts, id) ON P TO Doctor;
"""
SHARED = Create("Q", "own", "SELECT id FROM P")
END = 100


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_catalog(CATALOG)


def said(*contents: Content) -> State:
    return fold_words(State(), [Word(at, at, "root", each) for at, each in enumerate(contents, 1)])


def ask(state: State, catalog: Catalog, user: str = "ann", now: int = 50) -> Ground:
    return prove(state, catalog, now, "Q", user, judge_grants(catalog)).ground


def wish(user: str = "ann", *roles: str, expires: int = END) -> Subscribe:
    return Subscribe("Q", user, roles or ("Doctor",), expires)


ROLE, BADGE = Admit("Q", None, "Doctor", None), Admit("Q", None, "Doctor", "badge")
CASES: dict[str, tuple[tuple[Content, ...], Ground]] = {
    "all is there": ((SHARED, ROLE, wish()), Ground.PROVEN),
    "no query": ((ROLE, wish()), Ground.NO_QUERY),
    "no subscription": ((SHARED, ROLE), Ground.NO_SUBSCRIPTION),
    "cancelled": ((SHARED, ROLE, wish(), Cancel("Q", "ann")), Ground.NO_SUBSCRIPTION),
    "over": ((SHARED, ROLE, wish(expires=50)), Ground.OVER),
    "renewed": ((SHARED, ROLE, wish(expires=50), wish()), Ground.PROVEN),
    "not admitted": ((SHARED, Admit("Q", "gil", None, None), wish()), Ground.NOT_ADMITTED),
    "by name": ((SHARED, Admit("Q", "ann", None, None), wish()), Ground.PROVEN),
    "refused": ((SHARED, ROLE, wish(), Refuse("Q", None, "Doctor", None)), Ground.NOT_ADMITTED),
    "user and role, not both": ((SHARED, Admit("Q", "ann", "Guest", None), wish()), Ground.NOT_ADMITTED),
    "a role that the session left out": ((SHARED, ROLE, Subscribe("Q", "ann", (), END)), Ground.NOT_ADMITTED),
    "a role that is only claimed": ((SHARED, Admit("Q", None, "Guest", None), wish("ann", "Guest")), Ground.NOT_ADMITTED),
    "no credential": ((SHARED, BADGE, wish()), Ground.NO_CREDENTIAL),
    "another's credential": ((SHARED, BADGE, wish(), Issue("badge", "cho", END)), Ground.NO_CREDENTIAL),
    "credential": ((SHARED, BADGE, wish(), Issue("badge", "ann", END)), Ground.PROVEN),
    "credential over": ((SHARED, BADGE, wish(), Issue("badge", "ann", 50)), Ground.CREDENTIAL_OVER),
    "credential revoked": (
        (SHARED, BADGE, wish(), Issue("badge", "ann", END), Revoke("badge", "ann")),
        Ground.CREDENTIAL_REVOKED,
    ),
    "credential given again": (
        (SHARED, BADGE, wish(), Issue("badge", "ann", END), Revoke("badge", "ann"), Issue("badge", "ann", END)),
        Ground.PROVEN,
    ),
    "one policy of two": ((SHARED, BADGE, ROLE, wish()), Ground.PROVEN),
    "dropped": ((SHARED, ROLE, wish(), Drop("Q")), Ground.NO_QUERY),
    "made anew": ((SHARED, ROLE, wish(), Drop("Q"), SHARED), Ground.NO_SUBSCRIPTION),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_proof_needs_all_its_parts(case: str, catalog: Catalog) -> None:
    contents, ground = CASES[case]
    assert ask(said(*contents), catalog) is ground


def test_the_catalog_has_the_last_word(catalog: Catalog) -> None:
    everybody = said(
        SHARED,
        *(Admit("Q", user, None, None) for user in ("ann", "cho", "gil", "eve")),
        *(Subscribe("Q", user, ("Doctor", "Chief", "Guest"), END) for user in ("ann", "cho", "gil", "eve")),
    )
    assert ask(everybody, catalog, "cho") is Ground.PROVEN
    assert ask(everybody, catalog, "gil") is Ground.NOT_GRANTED
    assert ask(everybody, catalog, "eve") is Ground.NO_USER
    off = catalog.with_user(replace(catalog.users["ann"], disabled=True))
    assert ask(everybody, off) is Ground.DISABLED
    bare = catalog.with_user(replace(catalog.users["ann"], roles=()))
    assert ask(everybody, bare) is Ground.NOT_GRANTED


def test_whatever_goes_wrong_is_no_proof(catalog: Catalog) -> None:
    def fail(*_: object) -> bool:
        raise ArithmeticError

    assert prove(said(SHARED, ROLE, wish()), catalog, 1, "Q", "ann", fail).ground is Ground.UNKNOWN
    broken = said(Create("Q", "own", "SELECT FROM"), ROLE, wish())
    assert ask(broken, catalog) is Ground.NOT_GRANTED


def test_a_proof_ends_with_the_first_of_its_parts(catalog: Catalog) -> None:
    state = said(SHARED, BADGE, wish(), Issue("badge", "ann", 70))
    proof = prove(state, catalog, 1, "Q", "ann", judge_grants(catalog))
    assert proof.until == 70
    assert ask(state, catalog, now=69) is Ground.PROVEN
    assert ask(state, catalog, now=70) is Ground.CREDENTIAL_OVER
    longer = fold_words(state, [Word(9, 9, "root", Admit("Q", "ann", None, None))])
    assert prove(longer, catalog, 1, "Q", "ann", judge_grants(catalog)).until == END


def test_the_difference_is_exact_and_closes_first() -> None:
    one, moved, anew = Opened("h", 1, ("S",), 5), Opened("h", 1, ("S", "T"), 5), Opened("h", 2, ("S",), 5)
    assert find_turns({("Q", "a"): one}, {("Q", "a"): replace(one, until=9)}) == Turns((), ())
    for other in (moved, anew):
        both = (("Q", "a"),)
        assert find_turns({("Q", "a"): one}, {("Q", "a"): other}) == Turns(both, both)
    found = find_turns({("Q", "a"): one, ("Q", "b"): one}, {("Q", "b"): one, ("Q", "c"): one})
    assert found == Turns((("Q", "a"),), (("Q", "c"),))


def test_a_policy_that_admits_everybody_cannot_be_made() -> None:
    with pytest.raises(InvariantError):
        Policy("Q")


class _Clock:
    def __init__(self, *found: Now) -> None:
        self._found = list(found)

    def now(self) -> Now:
        return self._found.pop(0)


def test_time_does_not_go_back_when_the_clock_is_set() -> None:
    clock = SteadyClock(_Clock(Now(1000, 0), Now(1000, 5), Now(10, 7), Now(2000, 9), Now(10, 9)))
    assert [clock.now() for _ in range(3)] == [1005, 1007, 2000]
    assert clock.now(at_least=3000) == 3000


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
MAYBE = st.none() | TEXTS
CONTENTS: st.SearchStrategy[Content] = st.one_of(
    st.builds(Create, TEXTS, TEXTS, TEXTS),
    st.builds(Admit, TEXTS, MAYBE, MAYBE, TEXTS),
    st.builds(Issue, TEXTS, TEXTS, st.integers(0, 2**62)),
    st.builds(Subscribe, TEXTS, TEXTS, st.lists(TEXTS).map(tuple), st.integers(0, 2**62)),
    st.builds(Turned, TEXTS, st.lists(TEXTS).map(tuple), st.booleans(), st.integers(0, 2**62), TEXTS, st.just(())),
)  # fmt: skip


@given(CONTENTS)
def test_words_are_read_as_they_were_written(content: Content) -> None:
    assert read_content(write_content(content)) == content


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "open"}', '{"kind": "drop"}', '{"kind": "drop", "name": "a", "x": 1}'])  # fmt: skip
def test_a_word_that_is_not_ours_is_refused(text: str) -> None:
    with pytest.raises(DiagnosticError) as raised:
        read_content(text)
    assert raised.value.diagnostics[0].code == "store-damaged"


def test_words_in_a_store_are_only_added(tmp_path: object) -> None:
    with open_store(f"{tmp_path}/store.db") as store:
        database = store.open_database()
        words = Words(database)
        state, _ = words.add(State(), "own", 5, lambda _: [SHARED])
        later, _ = words.add(State(), "own", 7, lambda found: [ROLE] if "Q" in found.queries else [])
        assert state.queries["Q"].number == 1
        assert (later.number, later.policies_of("Q")) == (2, (Policy("Q", role="Doctor"),))
        assert fold_words(State(), words.since(0)) == later == fold_words(state, words.since(1))

        def refuse(_: State) -> list[Content]:
            raise ArithmeticError

        with pytest.raises(ArithmeticError):
            words.add(later, "own", 9, refuse)
        for sql in ("DELETE FROM sluicegate_shared", "UPDATE sluicegate_shared SET actor = 'x'"):
            with pytest.raises(DiagnosticError), database.transaction(write=True) as found:
                found.run(sql)
        assert len(words.since(0)) == 2
        database.close()

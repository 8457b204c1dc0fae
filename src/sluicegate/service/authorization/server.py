"""The server: keeps the state up to date, and has the engine's switches follow its proofs (R16, R18).

Everything starts closed, also after a restart: what was open is closed first, and opens again by proofs that hold then.
Whoever asks may be any thread; the engine is told under one lock, so that no closing is overtaken by an older opening.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sluicegate.errors import DiagnosticError
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.seats import Seat, seat_json
from sluicegate.service.authorization.events import ACTOR, write_event
from sluicegate.service.authorization.hearing import Hearing
from sluicegate.service.authorization.missing import Dropped, find_dropped, find_missing
from sluicegate.service.authorization.proofs import Ground, Proof, prove
from sluicegate.service.authorization.state import (
    Content,
    Key,
    Seen,
    SharedQuery,
    State,
    Subscription,
    Turned,
    Word,
    fold_words,
)
from sluicegate.service.authorization.steady import SteadyClock
from sluicegate.service.authorization.turns import Opened, find_touched, find_turns
from sluicegate.service.authorization.words import Words
from sluicegate.service.identity.clock import Clock
from sluicegate.service.identity.principal import Principal
from sluicegate.service.store import Entry, Event, Store
from sluicegate.service.store.database import Database

if TYPE_CHECKING:
    from sluicegate.runtime.engine import Engine

_LOG = logging.getLogger("sluicegate.gateway")
_NEVER = 2**62
_UNTOLD = -1
_LENGTH = 32
_AGAIN = 60_000_000
"""After which what the engine refused is asked again, if anything is looked at: a limit may have been the reason."""
_KEPT = 3_600_000_000
"""How long the run of an expired subscription waits to be renewed."""


def name_shared_handle(query: SharedQuery, subscription: Subscription) -> str:
    """The same for the same query, user and roles, also after a restart; another for a query made anew by that name."""
    content = json.dumps([query.name, query.number, seat_json(subscription.seat)], sort_keys=True)
    return hashlib.sha256(b"sluicegate shared 1\0" + content.encode()).hexdigest()[:_LENGTH]


class AuthorizationServer:
    """Of one gateway; the words are in the store, and other gateways' are taken in by `refresh`."""

    def __init__(
        self,
        words: Words,
        engine: Engine,
        clock: SteadyClock,
        record: Callable[[Sequence[Event]], object],
        history: Callable[[int], Sequence[Entry]] = lambda _: (),
    ) -> None:
        self._history, self._version = history, -1
        self.words, self.engine, self._clock, self.record = words, engine, clock, record
        self.lock = threading.RLock()
        self.hearing = Hearing(self)
        self.state = fold_words(State(), words.since(0))
        self._open: dict[Key, Opened] = {}
        self.grounds: Mapping[Key, Ground] = {}
        """Of each subscription, why its switch is as it is."""
        self._deadlines: dict[str, int] = {}
        """By handle, until when something may be handed over; replaced whole, and read without the lock."""
        self._handles: dict[str, Subscription] = {}
        """Whose results these are, or were: their readers are told how it ended."""
        self._named: dict[Key, tuple[int, tuple[str, ...], str]] = {}
        self._proofs: Mapping[Key, Proof] = {}
        self._denied: dict[tuple[int, Seat], int] = {}
        """What the engine refused under this catalog, by the query's number and the seat, and until when that counts."""
        self._proven = State()
        """What the proofs were made of."""
        self._seen: tuple[int, Catalog | None] = (-1, None)
        self._next = 0
        self._ts = 0

    def now(self) -> int:
        return self._clock.now(self.state.latest)

    def begin(self) -> None:
        """Close what was open before the restart, let go what nobody is subscribed to, and open what is proven now."""
        with self.lock:
            for name in sorted({each.switch for each in self.engine.running if each.switch is not None}):
                ts = self.next_ts()
                told = self.engine.tell(QueryPunctuation(name, None, False, ts))
                self._note([Turned(name, (), False, ts, "the gateway starts", told)])
            self.look()

    def refresh(self) -> None:
        """Take in what other gateways, or commands, have said."""
        words = self.words.since(self.state.number)
        if words:
            with self.lock:
                self.state = fold_words(self.state, words)

    def say(self, actor: str, decide: Callable[[State], Sequence[Content]]) -> tuple[Word, ...]:
        """Add words; when it returns, the engine's switches are as the proofs then are."""
        with self.lock:
            self.state, made = self.words.add(self.state, actor, self.now(), decide)
            self.look()
            return made

    def look(self) -> None:
        """Turn the switches whose proofs have another outcome; costs nothing while nothing can have changed."""
        with self.lock:
            now, catalog = self.now(), self.engine.catalog
            seen = (self.state.number, catalog)
            if now < self._next and self._seen[0] == seen[0] and self._seen[1] is catalog:
                return
            self._forget_missing(catalog)
            self._turn(catalog, now)
            self._seen = (self.state.number, catalog)

    def is_late(self, running: Running) -> bool:
        """Whether a proof has ended, or its switch could not be closed yet: then nothing of it is handed over."""
        if running.switch is None:
            return False
        deadline = self._deadlines.get(running.handle, _NEVER)
        return deadline != _NEVER and self.now() >= deadline

    def is_open(self, key: Key) -> bool:
        return key in self._open and self.grounds.get(key) is not Ground.CLOSED

    def find_handle(self, key: Key) -> str | None:
        """Under which a subscription's results are read."""
        subscription = self.state.subscriptions.get(key)
        query = None if subscription is None else self.state.queries.get(subscription.query)
        return None if subscription is None or query is None else name_shared_handle(query, subscription)

    def find_subscription(self, handle: str) -> Subscription | None:
        """Also one that has ended since the gateway started."""
        return self._handles.get(handle)

    def may_read(self, principal: Principal, handle: str, catalog: Catalog) -> bool:
        """Whoever subscribed, in a session with all roles of the subscription that it still has: never by fewer."""
        found = self._handles.get(handle)
        if found is None or found.user != principal.user or principal.claimed or principal.profile:
            return False
        return catalog.roles_of(found.user) & set(found.roles) <= principal.roles

    def _turn(self, catalog: Catalog, now: int) -> None:
        """What is to close comes before all else: starting a query takes its time, and may fail."""
        state, proofs = self.state, self._prove_touched(catalog, now)
        lasting = self._find_lasting(proofs)
        self._close_others(lasting, proofs)
        self._remove_unwanted(now)
        after = lasting | self._start_proven(proofs, now)
        self.grounds = {key: each.ground for key, each in proofs.items()}
        opening = find_turns(self._open, after).opening
        # should the telling fail half-way: neither forgotten, so that it is closed, nor taken for done
        self._open |= {key: replace(after[key], number=_UNTOLD) for key in opening}
        self._tell(opening, True, after, proofs)
        self._open = after
        # only now: what failed on the way is proven anew
        self._proofs, self._proven = proofs, state
        self._deadlines = {each.handle: each.until for each in after.values()}
        self._next = min([*(each.until for each in after.values()), *self._find_releases()], default=_NEVER)

    def _find_releases(self) -> list[int]:
        """When runs that are not open are to be given back."""
        closed = (each for key, each in self.state.subscriptions.items() if key not in self._open)
        return [
            each.expires + _KEPT
            for each in closed
            if self.engine.find(self._find_known_handle(each.key)) is not None
        ]

    def _prove_touched(self, catalog: Catalog, now: int) -> dict[Key, Proof]:
        """Whether grants give anything is asked of the engine, when the rest is proven."""
        state, known = self.state, self._proofs
        if self._seen[1] is not catalog:
            known, self._denied = {}, {}
        touched = find_touched(self._proven, state)
        proofs = {}
        for key in state.subscriptions:
            found = None if key in touched else known.get(key)
            if found is None or now >= found.until:
                found = self._prove(catalog, now, key)
                self._handles[self._find_known_handle(key)] = state.subscriptions[key]
            proofs[key] = found
        return proofs

    def _prove(self, catalog: Catalog, now: int, key: Key) -> Proof:
        """What does not hold is not asked again before something touches it; what could not be told, soon."""
        found = prove(self.state, catalog, now, *key, lambda *_: True)
        if found.may_open:
            return found
        return replace(found, until=now + _AGAIN if found.ground is Ground.UNKNOWN else _NEVER)

    def _find_lasting(self, proofs: Mapping[Key, Proof]) -> dict[Key, Opened]:
        """Of what is open, what stays so; the engine knows its run, and an owner's closing stands in the stream already."""
        found = {}
        for key, opened in self._open.items():
            proof = proofs.get(key)
            if proof is not None and proof.may_open and self._find_known_handle(key) == opened.handle:
                running = self.engine.find(opened.handle)
                made = None if running is None else self._describe(running, proof.until)
                if made is not None and made.is_same(opened):
                    found[key] = made
        return found

    def _describe(self, running: Running, until: int) -> Opened:
        return Opened(running.handle, running.number, self._find_timed(running), until)

    def _close_others(self, lasting: Mapping[Key, Opened], proofs: Mapping[Key, Proof]) -> None:
        closing = find_turns(self._open, lasting).closing
        closed = {self._open[key].handle: 0 for key in closing}
        # from here on, whatever fails: what is to close is not handed over, and what lasts only as long as its proof
        self._deadlines = {**{each.handle: each.until for each in lasting.values()}, **closed}
        self._next = 0
        self._tell(closing, False, self._open, proofs)
        self._open = {key: each for key, each in self._open.items() if key not in closing}

    def _start_proven(self, proofs: dict[Key, Proof], now: int) -> dict[Key, Opened]:
        """What is to be open besides; a proof that the engine's grants do not bear out ends here."""
        found: dict[Key, Opened] = {}
        for key, proof in list(proofs.items()):
            if proof.holds and key not in self._open:
                running = self._run_once(self.state.subscriptions[key], now)
                if running is None:
                    proofs[key] = Proof(Ground.NOT_GRANTED, now + _AGAIN)
                else:
                    found[key] = self._describe(running, proof.until)
        return found

    def _run_once(self, subscription: Subscription, now: int) -> Running | None:
        """What the engine refused is not asked of it again under this catalog, but for what may pass by itself."""
        asked = (self.state.queries[subscription.query].number, subscription.seat)
        if now < self._denied.get(asked, 0):
            return None
        found = self._run(subscription)
        if found is None:
            self._denied[asked] = now + _AGAIN
        return found

    def _find_known_handle(self, key: Key) -> str:
        """Names of handles are kept: there are as many as subscriptions, and each look asks for all."""
        subscription = self.state.subscriptions[key]
        query = self.state.queries.get(subscription.query)
        number = 0 if query is None else query.number
        known = self._named.get(key)
        if known is None or known[:2] != (number, subscription.roles):
            name = "" if query is None else name_shared_handle(query, subscription)
            known = self._named[key] = (number, subscription.roles, name)
        return known[2]

    def _run(self, subscription: Subscription) -> Running | None:
        query = self.state.queries[subscription.query]
        handle = name_shared_handle(query, subscription)
        found = self.engine.find(handle)
        if found is not None:
            return found
        try:
            self.engine.register(subscription.seat, query.text, handle, query.name)
        except DiagnosticError:
            return None
        except Exception as error:  # noqa: BLE001 — what cannot be started is not open
            _LOG.warning("a shared query could not be started: %s", type(error).__name__)
            return None
        return self.engine.find(handle)

    def _find_timed(self, running: Running) -> tuple[str, ...]:
        streams = self.engine.catalog.streams
        return tuple(
            name
            for name in sorted(running.allowed.streams)
            if name in streams and streams[name].event_time is not None
        )

    def _tell(
        self,
        keys: Sequence[Key],
        positive: bool,
        opened: Mapping[Key, Opened],
        proofs: Mapping[Key, Proof],
    ) -> None:
        """One punctuation for users of a query that read it from the same streams, so that it stands in no other."""
        groups: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
        for query, user in keys:
            ground = proofs.get((query, user), Proof(self._find_ground(query))).ground
            moved = ground is Ground.PROVEN and not positive
            reason = "the query reads other streams, or runs anew" if moved else ground.value
            groups.setdefault((query, opened[query, user].streams, reason), []).append(user)
        for (query, _, reason), users in groups.items():
            self._tell_one(query, tuple(users), positive, reason)

    def _find_ground(self, query: str) -> Ground:
        return Ground.NO_SUBSCRIPTION if query in self.state.queries else Ground.NO_QUERY

    def _tell_one(self, query: str, users: tuple[str, ...], positive: bool, reason: str) -> None:
        ts = self.next_ts()
        streams = self.engine.tell(QueryPunctuation(query, frozenset(users), positive, ts))
        try:
            self._note([Turned(query, users, positive, ts, reason, streams)])
        except BaseException:
            if positive:
                # what is not on record is not open
                self.engine.tell(QueryPunctuation(query, frozenset(users), False, self.next_ts()))
            raise

    def _note(self, turned: Sequence[Turned]) -> None:
        """To the history and the audit log."""
        self.state, _ = self.words.add(self.state, ACTOR, self.now(), lambda _: turned)
        version = self.engine.catalog.version
        self.record([write_event(each, version) for each in turned])

    def next_ts(self) -> int:
        """Later than all that was said before: an older word would be discarded, and with it a closing."""
        self._ts = max(self.now(), self._ts + 1, self.state.latest + 1)
        return self._ts

    def _remove_unwanted(self, now: int) -> None:
        """Runs of subscriptions that are no more, or ended long ago; their switches are closed by then."""
        wanted = {
            self._find_known_handle(key)
            for key, each in self.state.subscriptions.items()
            if now < each.expires + _KEPT
        }
        for each in self.engine.running:
            if each.switch is not None and each.handle not in wanted:
                self.engine.remove(each.handle)
        for key in self._named.keys() - self.state.subscriptions.keys():
            del self._named[key]

    def _forget_missing(self, catalog: Catalog) -> None:
        """What was said of users and roles that the catalog dropped: those made later by these names are others."""

        def decide(state: State) -> Sequence[Content]:
            # of before the first look nothing is known to be another's
            since = state.seen or catalog.version
            dropped = find_dropped(self._history(since)) if since < catalog.version else Dropped()
            seen = [Seen(catalog.version)] if dropped or not state.seen else []
            return [*find_missing(state, catalog, dropped), *seen]

        if catalog.version != self._version or find_missing(self.state, catalog):
            self.state, _ = self.words.add(self.state, ACTOR, self.now(), decide)
            self._version = catalog.version


def open_authorization(database: Database, engine: Engine, clock: Clock, store: Store) -> AuthorizationServer:
    """Over a store's database; nothing is open before `begin`."""
    return AuthorizationServer(
        Words(database),
        engine,
        SteadyClock(clock),
        lambda found: store.audit.record(*found),
        store.history,
    )

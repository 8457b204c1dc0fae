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
from sluicegate.runtime.network.seats import seat_json
from sluicegate.service.authorization.events import ACTOR, write_event
from sluicegate.service.authorization.hearing import Hearing
from sluicegate.service.authorization.missing import find_missing
from sluicegate.service.authorization.proofs import Ground, Proof, prove
from sluicegate.service.authorization.state import (
    Content,
    Key,
    SharedQuery,
    State,
    Subscription,
    Turned,
    Word,
    fold_words,
)
from sluicegate.service.authorization.steady import SteadyClock
from sluicegate.service.authorization.turns import Opened, find_turns
from sluicegate.service.authorization.words import Words
from sluicegate.service.identity.clock import Clock
from sluicegate.service.identity.principal import Principal
from sluicegate.service.store import AuditLog, Event
from sluicegate.service.store.database import Database

if TYPE_CHECKING:
    from sluicegate.runtime.engine import Engine

_LOG = logging.getLogger("sluicegate.gateway")
_NEVER = 2**62
_UNTOLD = -1
_LENGTH = 32


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
    ) -> None:
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
        return key in self._open

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
        named = {self.find_handle(key): each for key, each in self.state.subscriptions.items()}
        self._handles |= {handle: each for handle, each in named.items() if handle is not None}
        self._remove_unwanted(set(named))
        proofs = self._prove_all(catalog, now)
        after = self._run_proven(proofs)
        self.grounds = {key: each.ground for key, each in proofs.items()}
        turns = find_turns(self._open, after)
        closed = {self._open[key].handle: 0 for key in turns.closing}
        kept = {each.handle: each.until for key, each in after.items() if key in self._open}
        # from here on, whatever fails: what is to close is not handed over, and what lasts only as long as its proof
        self._deadlines = {**kept, **closed}
        self._next = 0
        self._tell(turns.closing, False, self._open, proofs)
        self._open = {key: each for key, each in self._open.items() if key not in turns.closing}
        # should the telling fail half-way: neither forgotten, so that it is closed, nor taken for done
        self._open |= {key: replace(after[key], number=_UNTOLD) for key in turns.opening}
        self._tell(turns.opening, True, after, proofs)
        self._open = after
        self._deadlines = {each.handle: each.until for each in after.values()}
        self._next = min((each.until for each in after.values()), default=_NEVER)

    def _prove_all(self, catalog: Catalog, now: int) -> dict[Key, Proof]:
        """Whether grants give anything is asked of the engine, when the rest is proven."""
        return {
            key: prove(self.state, catalog, now, *key, lambda *_: True) for key in self.state.subscriptions
        }

    def _run_proven(self, proofs: dict[Key, Proof]) -> dict[Key, Opened]:
        """What is to be open; a proof that the engine's grants do not bear out ends here."""
        after: dict[Key, Opened] = {}
        for key, proof in list(proofs.items()):
            if proof.holds:
                running = self._run(self.state.subscriptions[key])
                if running is None:
                    proofs[key] = Proof(Ground.NOT_GRANTED)
                else:
                    after[key] = Opened(
                        running.handle, running.number, self._find_timed(running), proof.until
                    )
        return after

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
        found = self.engine.find(handle)
        if found is not None and subscription.user in self.engine.switching.open_users(query.name):
            # it ran before, and the last word on it may still be an opening
            self._tell_one(query.name, (subscription.user,), False, "the query starts anew")
        return found

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

    def _remove_unwanted(self, wanted: set[str | None]) -> None:
        """Runs of subscriptions that are no more; their switches go with them."""
        for each in self.engine.running:
            if each.switch is not None and each.handle not in wanted:
                self._close_run(each)

    def _close_run(self, running: Running) -> None:
        key = (running.switch or "", running.user)
        if key in self._open:
            self._tell([key], False, self._open, {})
            del self._open[key]
        self.engine.remove(running.handle)

    def _forget_missing(self, catalog: Catalog) -> None:
        """What was said of users and roles that the catalog dropped: those made later by these names are others."""
        gone = find_missing(self.state, catalog)
        if gone:
            self.state, _ = self.words.add(self.state, ACTOR, self.now(), lambda now: gone)


def open_authorization(
    database: Database, engine: Engine, clock: Clock, audit: AuditLog
) -> AuthorizationServer:
    """Over a store's database; nothing is open before `begin`."""
    return AuthorizationServer(
        Words(database), engine, SteadyClock(clock), lambda found: audit.record(*found)
    )

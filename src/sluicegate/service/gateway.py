"""The gateway: a store of catalog versions, an engine that runs queries under the newest, and who may ask what of both.

Everything here may be called from any thread and may wait; HTTP is `app`'s part. A change is in force everywhere when
`change` returns (R10): stored, put in force here, acknowledged by every gateway that may still deliver.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

from sluicegate.errors import DiagnosticError, InvariantError
from sluicegate.language.statements import SetClock, Statement
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.rewrite.explain import Explanation
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.seats import Seat
from sluicegate.runtime.stages import DECISION, RECORD, stage, time_stages
from sluicegate.service.authorization.desk import Desk
from sluicegate.service.authorization.server import open_authorization
from sluicegate.service.clockwork import Clockwork
from sluicegate.service.decisions import Decisions, explain_query, find_decision, read_known
from sluicegate.service.dropped import DroppedUsers
from sluicegate.service.guarding import Guard
from sluicegate.service.identity.authenticator import Authenticator
from sluicegate.service.identity.changes import Denied, may_change
from sluicegate.service.identity.clock import Clock, SystemClock
from sluicegate.service.identity.database import StoreDatabase
from sluicegate.service.identity.jwks import Fetch
from sluicegate.service.identity.principal import Principal, find_seat, seat
from sluicegate.service.identity.watch import Watch
from sluicegate.service.metrics import Metrics
from sluicegate.service.naming import name_handle, normalize
from sluicegate.service.outcomes import Changed, Registered, compare_runs
from sluicegate.service.preview import preview_change
from sluicegate.service.pushing import Pushing
from sluicegate.service.refusals import refuse
from sluicegate.service.sending import Sending
from sluicegate.service.settings import Settings
from sluicegate.service.sharing import Sharing
from sluicegate.service.store import Event, Store, Verification
from sluicegate.service.store.folding import read_change

if TYPE_CHECKING:
    from sluicegate.runtime.engine import Engine

Run: TypeAlias = tuple[int, int]
"""A query's number and version."""
_LOG = logging.getLogger("sluicegate.gateway")
_TRIES = 5
_MOST_REASONS = 20
_FORGET_SECONDS = 3600.0
_CLOCK = "clock"
"""Who is shown to have moved it."""


class Gateway:
    """Built from its parts, so that tests can give others; `start` begins to watch, `stop` lets everything go."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        engine: Callable[[Catalog], Engine],
        clock: Clock | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        self.settings, self.store = settings, store
        self.metrics = Metrics()
        self._clock = clock or SystemClock()
        self._database = store.open_database()
        accounts = StoreDatabase(self._database)
        self.sharing = Sharing(accounts)
        self.catalog = store.load()
        self.authenticator = Authenticator(
            settings.identity, accounts, lambda: self.catalog, self._clock, fetch
        )
        self.guard = Guard(
            Watch(self.authenticator.accounts, self._clock), self._clock, settings.identity.trust_seconds
        )
        self.engine = engine(self._put_in_place(self.catalog))
        self.decisions = Decisions()
        self.pushing = Pushing(self)
        self.clockwork = Clockwork(self, self._clock, self._move_clock)
        self.authorization = open_authorization(self._database, self.engine, self._clock, store)
        self.engine.feeds.judge_said = self.authorization.hearing.hear_feed
        self.shared = Desk(self, self.authorization)
        self.sending = Sending(self)
        self._dropped = DroppedUsers(
            store, self.authenticator.accounts, self.engine, Path(settings.state) / "users"
        )
        self._owners: dict[str, Seat] = {each.handle: each.seat for each in self.engine.running}
        self._applying, self._registering = threading.RLock(), threading.Lock()
        self._is_broken, self._forget_at = False, 0.0
        self.gateway = settings.gateway or uuid4().hex[:12]
        self.lease = store.lease(self.gateway, settings.lease_seconds, settings.lease_margin)
        self.ended: Callable[[list[Principal]], None] = lambda _: None
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def accounts(self) -> StoreDatabase:
        return StoreDatabase(self._database)

    def start(self) -> None:
        """Begin to deliver: a lease, the engine's ticks, and a look at what changed several times a second."""
        self.lease.renew(self.catalog.version)
        self.lease.keep(lambda: self.catalog.version)
        self._dropped.forget(self.catalog)
        self.clockwork.look()
        self.authorization.begin()
        self._watch = self.store.watch(self._follow, self.catalog.version, self.settings.watch_seconds)
        for name, work in (("gateway-watch", self._look), ("gateway-clock", self._follow_clock)):
            self._threads.append(threading.Thread(target=work, name=name, daemon=True))
            self._threads[-1].start()
        self.engine.start()
        self.sending.start()

    def stop(self) -> None:
        """Deliver nothing from now on; everything is on disk."""
        self._stopping.set()
        self.lease.stop()
        if self._threads:
            self._watch.stop()
        for thread in self._threads:
            thread.join()
        self.sending.stop()
        self.engine.stop()
        self._database.close()
        self.store.close()

    def find_obstacle(self) -> str | None:
        """Why this gateway may deliver nothing at all now, as a code; costs no more than a look at a clock."""
        if self._is_broken:
            return "gateway-closed"
        return None if self.lease.valid() else "gateway-lease"

    def find_run(self, handle: str) -> Run | None:
        """Which query has the handle now, and in which version; None where none runs."""
        running = self.engine.find(handle)
        # a query that begins anew counts its versions from the first again: its number tells it from the one before
        return None if running is None else (running.number, running.version)

    def find_reason(self, principal: Principal, handle: str, run: Run | None) -> str | None:
        """Why rows that were found for this run must not be handed to the principal now (R10, bypass 28)."""
        if self.find_run(handle) != run:
            return "version"
        running = self.engine.find(handle)
        if running is not None and (self.clockwork.is_late(running) or self.authorization.is_late(running)):
            return "gateway-closed"
        return self.find_obstacle() or self.guard.find_reason(principal)

    def check_open(self) -> None:
        code = self.find_obstacle()
        if code is not None:
            raise refuse(code, "this gateway delivers nothing at the moment", 1.0)

    def check_principal(self, principal: Principal) -> None:
        """Right before an answer with rows leaves: whoever asked is still the one who may."""
        code = self.guard.enter(principal, self.catalog)
        self.guard.leave(principal)
        if code is not None:
            raise refuse(code, "the session has ended")

    def explain(self, principal: Principal, query: str, graphs: int) -> Explanation:
        """The decision on a query, for the caller, under what is in force."""
        self.clockwork.settle(find_seat(principal), query)
        catalog = seat(principal, self.engine.catalog)
        key = (principal.key, query, graphs)
        found: Explanation = self.decisions.find(
            key,
            principal.user,
            catalog,
            lambda: explain_query(catalog, principal.user, query, graphs, self.engine.graphs.manner),
        )
        return found

    def register(self, principal: Principal, query: str, request: str = "") -> Registered:
        """Start the query, or find it running: the same query of the same principal has one handle."""
        with time_stages() as times:
            running, created = self._register(principal, query, request)
        return Registered(running, created, self.engine.catalog.version, times)

    def _register(self, principal: Principal, query: str, request: str) -> tuple[Running, bool]:
        self.check_open()
        where = find_seat(principal)
        with stage(DECISION):
            text = normalize(query)
            handle = name_handle(where, text)
            self.clockwork.settle(where, text)
        running = self.engine.find(handle)
        if running is not None:
            if (running.seat, running.query) != (where, text):
                raise InvariantError("two queries that differ have one handle")
            return running, False
        try:
            with stage(DECISION):
                read_known(seat(principal, self.engine.catalog), principal.user, query)
            running = self._start(where, text, handle)
        except DiagnosticError as error:
            self._audit_denied(principal, "register", text, error, request)
            raise
        with stage(RECORD):
            self._audit_register(principal, running, request)
        return running, True

    def _start(self, where: Seat, text: str, handle: str) -> Running:
        with self._registering:
            found = self.engine.find(handle)
            if found is None:
                mine = sum(each.user == where.user for each in self.engine.running)
                if mine >= self.settings.most_queries:
                    raise refuse("query-limit", f"you have {mine} queries already")
                self.engine.register(where, text, handle)
                self._owners[handle] = where
                found = self.engine.find(handle)
            if found is None:
                raise refuse("query-unknown", "the query was withdrawn while it was registered")
            return found

    def _audit_register(self, principal: Principal, running: Running, request: str) -> None:
        decision = find_decision(running.allowed).value
        self.metrics.count("sluicegate_registrations_total", decision=decision)
        self.record(
            principal,
            "register",
            f"{running.handle} {running.query}",
            grants=running.allowed.grants,
            decision=decision,
            notices=tuple(each.message for each in running.allowed.notices[:_MOST_REASONS]),
            request=request,
        )

    def _audit_denied(
        self, principal: Principal, action: str, text: str, error: DiagnosticError, request: str
    ) -> None:
        codes = tuple(dict.fromkeys(each.code for each in error.diagnostics[:_MOST_REASONS]))
        self.metrics.count("sluicegate_registrations_total", decision="deny")
        self.record(principal, action, text, decision="deny", notices=codes, request=request)

    def record(
        self,
        principal: Principal,
        action: str,
        subject: str,
        *,
        grants: tuple[str, ...] = (),
        decision: str = "",
        notices: tuple[str, ...] = (),
        request: str = "",
    ) -> None:
        """To the audit log; on disk when this returns."""
        version = self.engine.catalog.version
        self.store.audit.record(
            Event(principal.user, action, subject, version, grants, decision, notices, request)
        )

    def find_own(self, principal: Principal, handle: str) -> Seat:
        """The seat of a query of the caller's; another's, and one that does not exist, are refused alike."""
        owner = self._owners.get(handle)
        if owner is not None and owner == find_seat(principal):
            return owner
        if self.authorization.may_read(principal, handle, self.catalog):
            return find_seat(principal)
        raise refuse("query-unknown", "you have no query of this handle")

    def find_running(self, principal: Principal, handle: str) -> Running:
        """A query of the caller's that runs; administrators may look at, not read, all."""
        running = self.engine.find(handle)
        if running is None or not (principal.is_admin or self._is_own(principal, running)):
            raise refuse("query-unknown", "you have no query of this handle")
        return running

    def _is_own(self, principal: Principal, running: Running) -> bool:
        shared = running.switch is not None
        return running.seat == find_seat(principal) or (
            shared and self.authorization.may_read(principal, running.handle, self.catalog)
        )

    def may_know(self, principal: Principal, running: Running) -> bool:
        """Whether the principal may know of a query: its own, and those that name nothing but its streams."""
        mine = self._is_own(principal, running)
        streams = [self.catalog.streams.get(name) for name in running.allowed.asked]
        return (
            principal.is_admin or mine or all(each is not None and principal.owns(each) for each in streams)
        )

    def list_running(self, principal: Principal) -> list[Running]:
        running = self.engine.running
        return [each for each in running if principal.is_admin or self._is_own(principal, each)]

    def drop(self, principal: Principal, handle: str, request: str = "") -> None:
        running = self.find_running(principal, handle)
        if running.switch is not None:
            self.shared.cancel(principal, running.switch, running.user, request)
            return
        self.engine.remove(handle)
        self.record(principal, "drop", handle, request=request)

    def pause(self, principal: Principal, handle: str) -> Running:
        self.find_own(principal, handle)
        self.engine.pause(handle)
        return self.find_running(principal, handle)

    def resume(self, principal: Principal, handle: str) -> Running:
        self.find_own(principal, handle)
        self.engine.resume(handle)
        return self.find_running(principal, handle)

    def change(
        self,
        principal: Principal,
        statements: str,
        reason: str = "",
        *,
        dry_run: bool = False,
        expected: int | None = None,
        request: str = "",
    ) -> Changed:
        """Make a change of the catalog; when it returns, it is in force wherever rows are handed over (R10)."""
        return self.change_by(
            principal, read_change(statements), reason, dry_run=dry_run, expected=expected, request=request
        )

    def change_by(
        self,
        principal: Principal,
        parsed: Sequence[Statement],
        reason: str = "",
        *,
        dry_run: bool = False,
        expected: int | None = None,
        request: str = "",
    ) -> Changed:
        """As `change`, by statements that were read already."""
        if any(isinstance(each, SetClock) for each in parsed):
            raise refuse("clock-own", "the clock is set by the gateway alone")
        if len(parsed) > self.settings.most_statements:
            raise refuse(
                "body-too-large", f"a change has at most {self.settings.most_statements:,} statements"
            )
        return self._change(principal, parsed, reason, dry_run, expected, request)

    def rollback(self, principal: Principal, version: int, reason: str, request: str = "") -> Changed:
        """A new version whose state is that of an old one; administrators only."""
        if not principal.is_admin:
            raise refuse("administrators-only", "only administrators roll back")
        with self._applying:
            before = self.engine.running
            entry = self.store.rollback(version, None, reason, actor=principal.user, request=request)
            withdrawn = self._take()
            made = compare_runs(entry.version, before, self.engine.running, withdrawn)
        return self._finish(made)

    def _change(
        self,
        principal: Principal,
        parsed: Sequence[Statement],
        reason: str,
        dry_run: bool,
        expected: int | None,
        request: str,
    ) -> Changed:
        for left in reversed(range(_TRIES)):
            catalog = self.store.load()
            judged = may_change(principal, list(parsed), catalog)
            if isinstance(judged, Denied):
                text = f"{len(parsed)} statements"
                self._audit_denied(principal, "change", text, DiagnosticError(judged.findings), request)
                raise DiagnosticError(judged.findings)
            if dry_run:
                after = self._put_in_place(judged.catalog)
                running, manner = self.engine.running, self.engine.graphs.manner
                return preview_change(running, self.engine.catalog, after, catalog.version + 1, manner)
            made_for = catalog.version if expected is None else expected
            try:
                return self._store_change(principal, parsed, judged.author, reason, made_for, request)
            except DiagnosticError as error:
                # somebody else was faster: what may be done is asked again, of the catalog as it is now
                again = error.diagnostics[0].code == "store-conflict" and expected is None and left
                if not again:
                    raise
        raise refuse("store-conflict", "the catalog changes faster than this change can be made")

    def _store_change(
        self,
        principal: Principal,
        parsed: Sequence[Statement],
        author: str | None,
        reason: str,
        expected: int,
        request: str,
    ) -> Changed:
        with self._applying:
            before = self.engine.running
            entry = self.store.append_statements(
                parsed, author, reason, expected, actor=principal.user, request=request
            )
            withdrawn = self._take()
            made = compare_runs(entry.version, before, self.engine.running, withdrawn)
        return self._finish(made)

    def _finish(self, made: Changed) -> Changed:
        self.lease.renew(made.version)
        if not self.store.wait_acknowledged(made.version, self.settings.acknowledge_seconds):
            raise refuse("not-acknowledged", f"version {made.version} is stored, but not everywhere in force")
        return made

    def _put_in_place(self, catalog: Catalog) -> Catalog:
        """The store's catalog as it counts here: without what is paused, and with what a sign-in may decide."""
        return self.sharing.narrow(catalog).with_claimed(self.settings.identity.claimed)

    def _take(self, force: bool = False) -> dict[str, str]:
        """Put the store's newest version in force here. While that fails, nothing at all is delivered."""
        with self._applying:
            try:
                catalog = self.store.load()
                if catalog.version == self.catalog.version and not (force or self._is_broken):
                    return {}
                withdrawn = self.engine.apply(self._put_in_place(catalog))
                self._dropped.forget(catalog)
                self.sending.settle()
                # roles that were lost close switches before the change has returned (R18)
                self.authorization.look()
            except BaseException:
                self._is_broken = True
                raise
            self.catalog, self._is_broken = catalog, False
            self.metrics.count("sluicegate_changes_total")
            # first, so that those whose session ended are told that, and not that their query did
            self.ended(self.guard.look(catalog))
            self._end_lost()
            self._look_at_clock()
            return withdrawn

    def _move_clock(self, moment: int, expected: int) -> None:
        """Decisions that read the clock are those of this moment from now on; other gateways follow by themselves."""
        with self._applying:
            told = "a decision that reads the clock is another one"
            try:
                self.store.append_statements([SetClock(moment)], None, told, expected, actor=_CLOCK)
            finally:
                # also where somebody else was faster: it is then asked again, under what that made
                self._take()
        self.lease.renew(self.catalog.version)

    def _follow_clock(self) -> None:
        """Several times a second, beside `_look`: a store that hangs must not keep it from seeing what time it is."""
        while not self._stopping.wait(self.settings.watch_seconds):
            self._look_at_clock()

    def _look_at_clock(self) -> None:
        """Also after a change: the moment of its decisions may be long ago where nothing depended on it before (R10)."""
        for look in (self.clockwork.look, self.authorization.look):
            try:
                look()
            except Exception as error:  # noqa: BLE001 — what is late is not handed over until it is done
                _LOG.warning("the clock could not be moved: %s", type(error).__name__)

    def _end_lost(self) -> None:
        """Queries of sessions with a role that their user no longer has: nobody can sit there any more."""
        for each in self.engine.running:
            held, roles = self.catalog.roles_of(each.user), each.seat.roles
            # a shared query is its user's in any session; what the role was worth is lost with it
            if each.switch is None and roles is not None and not each.seat.claimed and not roles <= held:
                self.engine.remove(each.handle)

    def _follow(self, version: int) -> None:
        """Another gateway, or a command, has made a change."""
        self._take()
        self.lease.renew(self.catalog.version)

    def _look(self) -> None:
        """Several times a second: sessions that ended, sharing that was paused elsewhere."""
        while not self._stopping.wait(self.settings.watch_seconds):
            try:
                self.ended(self.guard.look(self.catalog))
                if self.sharing.refresh():
                    self._take(force=True)
                self.authorization.refresh()
                self._forget_ended()
            except Exception as error:  # noqa: BLE001 — what was found before runs out by itself, towards no
                _LOG.warning("the store could not be looked at: %s", type(error).__name__)

    def _forget_ended(self) -> None:
        """Once in a while: sessions and tokens that ended long ago."""
        if time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + _FORGET_SECONDS
            self.authenticator.accounts.bearers.purge(self.settings.keep_token_seconds)

    def find_stream(self, principal: Principal, name: str) -> Stream:
        """A stream of the caller's own, or any for an administrator; others are refused as if they were not there."""
        found = self.catalog.streams.get(name)
        if found is not None and (principal.is_admin or principal.owns(found)):
            return found
        held = seat(principal, self.catalog).grants_to(principal.user)
        known = any(name in each.stream_names and each.closed is None for each in held)
        if found is not None and known:
            raise refuse("owners-only", "only the stream's owner may ask for this")
        raise refuse("stream-unknown", "there is no such stream, or you may not know of it")

    def pause_sharing(self, principal: Principal, name: str, request: str = "") -> None:
        """No grant on the stream counts, from the return on here, within a look elsewhere."""
        self.find_stream(principal, name)
        self.sharing.pause(name, principal.user, self._clock.now().wall)
        self._take(force=True)
        self.record(principal, "pause-sharing", name, request=request)

    def resume_sharing(self, principal: Principal, name: str, request: str = "") -> None:
        self.find_stream(principal, name)
        self.sharing.resume(name)
        self._take(force=True)
        self.record(principal, "resume-sharing", name, request=request)

    def verify(self) -> Verification:
        return self.store.verify()

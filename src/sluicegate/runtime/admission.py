"""What a query may have beside all that was given before (R8): grants that would tell more are left out of it.

A named result that it rests on counts for its maker, once, however many read it, and for as long as anybody does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.query_syntax import Start
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.entries import Entry, counts_beside
from sluicegate.policy.ledger import Refused
from sluicegate.rewrite.manner import OnPartial
from sluicegate.rewrite.named_results import KeptOut
from sluicegate.rewrite.notice import Notice
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.ledger import Ledger
from sluicegate.runtime.ledger_account import UNKNOWN, Read
from sluicegate.runtime.network.authorize import Allowed, is_same_for
from sluicegate.runtime.network.beginnings import find_greatest, find_since
from sluicegate.runtime.network.graphs import Graphs
from sluicegate.runtime.network.network import Network
from sluicegate.runtime.network.running import Recorded, Running
from sluicegate.runtime.network.seats import Seat, seat_catalog
from sluicegate.runtime.table.in_force import check_tables

_HELP = {"ledger-population": "START AT LATEST gives the windows that are still to come"}
Logs: TypeAlias = Mapping[str, SourceLog]
Lent: TypeAlias = tuple[str, str, Entry]
"""Of a named result: its maker, its name, and what it gives the maker."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Decides for queries that begin or change; `running` are those that run, by handle."""

    graphs: Graphs
    ledger: Ledger
    network: Network
    logs: Logs
    running: Mapping[str, Running]
    lent: set[Lent] = field(default_factory=set)
    """What results gave to queries of this process: only of these do its logs tell how far they were read."""

    def allow(
        self,
        catalog: Catalog,
        seat: Seat,
        query: str,
        handle: str,
        open_logs: Callable[[Allowed], None] = lambda _: None,
        *,
        going_on: bool = False,
    ) -> Allowed:
        """On record, when it returns; raises `DiagnosticError` where there is nothing that may be given.

        `going_on`: it has begun before, so that what is new about it begins now (R11), wherever the query said.
        `open_logs` is called before anything is on record: what cannot be read is not given, and leaves nothing.
        """
        added: list[Lent] = []
        allowed: Allowed | None = None
        try:
            allowed = self._allow(catalog, seat, query, handle, open_logs, added, going_on)
            return allowed
        finally:
            kept = set(_lend(allowed)) if allowed is not None else set()
            self._take_back(each for each in added if each not in kept)

    def _allow(
        self,
        catalog: Catalog,
        seat: Seat,
        query: str,
        handle: str,
        open_logs: Callable[[Allowed], None],
        added: list[Lent],
        going_on: bool,
    ) -> Allowed:
        without: frozenset[str] = frozenset()
        kept_out: KeptOut = frozenset()
        told: list[Diagnostic] = []
        seated = seat_catalog(catalog, seat)
        while True:
            try:
                allowed = self.graphs.authorize(seated, seat.user, query, without, kept_out, catalog)
            except DiagnosticError as error:
                raise DiagnosticError([*told, *error.diagnostics]) from error
            check_tables(allowed.shaped.shape.root, catalog.streams)
            self.network.admit_shape(allowed.shaped, self.used_shapes())
            if allowed.releases or _lend(allowed):
                open_logs(allowed)
            since = self._find_since(allowed, going_on)
            too_much = self._admit_results(catalog, allowed, since, added)
            if too_much:
                kept_out |= too_much
                continue
            _check_start(seated, allowed, going_on)
            refused = self._admit(seated, seat.user, handle, allowed, since)
            if refused is None:
                return replace(allowed, notices=(*allowed.notices, *map(_notice, told)))
            told.append(Diagnostic(refused.code, refused.message, help=_HELP.get(refused.code)))
            if self.graphs.manner.on_partial is OnPartial.REFUSE:
                # without this grant only a part would be left
                raise DiagnosticError(told)
            without |= {refused.entry.grant}

    def ask_again(self, catalog: Catalog, query: Running) -> Allowed:
        """What a query that runs may have under another version, with what it was kept from before."""
        seated, before = seat_catalog(catalog, query.seat), query.allowed
        return self.graphs.authorize(
            seated, query.user, query.query, before.without, before.kept_out, catalog
        )

    def used_shapes(self) -> set[str]:
        return {each.allowed.shaped.key for each in self.running.values()}

    def find_read(self, streams: Iterable[str], logs: Logs | None = None) -> Read:
        """How far the logs of the streams reach; a log that is not open tells nothing, which is not that it is empty."""
        known, named = self.logs if logs is None else logs, tuple(streams)
        if any(name not in known for name in named):
            return UNKNOWN
        return max(find_greatest(known, named), default=None)

    def release(self, query: Running, logs: Logs | None = None, besides: Iterable[Entry] = ()) -> None:
        """What the query was given, `besides` what it goes on being given, stays on record up to the event time that it has
        read, in `logs` if others are open now.
        """
        kept = set(besides)
        over = [each for each in query.allowed.releases if each not in kept]
        self.ledger.close(query.user, over, self.find_read(query.allowed.streams, logs), query.handle)

    def make_way(self, catalogs: Iterable[Catalog], asked: Mapping[str, Allowed | str], logs: Logs) -> None:
        """What changes or ends counts as ended where it is, for all queries before any is judged: each is weighed against the
        others (R8). What they tell until the version is in force is on record when they are released.

        `asked`, by handle: what they would have now, or why they end.
        """
        going = {
            handle: each
            for handle, each in asked.items()
            if isinstance(each, str) or each.mark != self.running[handle].allowed.mark
        }
        if self.ledger.damage is not None or not going:
            return
        for query in (self.running[handle] for handle in going):
            read = self.find_read(query.allowed.streams, logs)
            self.ledger.leave(query.user, query.allowed.releases, read, query.handle)
        now = [going.get(handle, query.allowed) for handle, query in self.running.items()]
        held = [each for each in now if isinstance(each, Allowed)]
        for maker, name, entry, read in self._find_unheld(catalogs, held, logs):
            self.ledger.leave(maker, [entry], read, _name_account(name))

    def settle(self, recorded: Recorded, read: Read) -> None:
        """A query of before a restart is given nothing more: what it was given stays, up to what it had read."""
        if self.is_given(recorded):
            user, handle = recorded.seat.user, recorded.handle
            self.ledger.close(user, self.ledger.open_entries(user, handle), read, handle)

    def find_fresh(self, catalog: Catalog, recorded: Recorded) -> Allowed | None:
        """What a query of before a restart would have now, were nothing on record; None where that is nothing."""
        seated = seat_catalog(catalog, recorded.seat)
        try:
            return self.graphs.authorize(seated, recorded.seat.user, recorded.query, makers=catalog)
        except DiagnosticError:
            return None

    def make_room(self, recorded: Recorded, fresh: Allowed, read: Read) -> None:
        """Of what a query was given before a restart: what it will not be given any more ends where it had read to.

        For all queries before any is taken up, since each is weighed against what the others are being given. One written
        when no populations were recorded has those of now, where the query is the same to the last constant.
        """
        if self.ledger.damage is not None:
            return
        accounts = [(recorded.seat.user, recorded.handle, fresh.releases)]
        accounts += [(each.maker, _name_account(each.name), each.releases) for each in fresh.results]
        for principal, account, entries in accounts:
            if fresh.mark == recorded.mark:
                self.ledger.adopt(principal, entries, account)
            held = self.ledger.open_entries(principal, account)
            over = [each for each in held if each not in entries]
            if over:
                self.ledger.close(principal, over, read, account)

    def go_on(self, recorded: Recorded, read: Read, allowed: Allowed, *, same: bool) -> None:
        """One that goes on; what it was given in logs that are not the `same` stays on record besides, and its results'."""
        user, handle = recorded.seat.user, recorded.handle
        held = self.ledger.open_entries(user, handle) if self.is_given(recorded) else ()
        over = [each for each in held if each not in allowed.releases]
        if over:
            self.ledger.close(user, over, read, handle)
        if not same:
            self.ledger.keep(user, allowed.releases, read, handle)
            for maker, name, entry in _lend(allowed):
                self.ledger.keep(maker, [entry], read, _name_account(name))

    def is_given(self, recorded: Recorded) -> bool:
        """Whether there is something on record as being given to the query."""
        if self.ledger.damage is not None:
            return False
        return bool(self.ledger.open_entries(recorded.seat.user, recorded.handle))

    def _take_back(self, added: Iterable[Lent]) -> None:
        """What a call put on record itself, and nobody came to read; what was there before stays as it is."""
        for maker, name, entry in added:
            self.lent.discard((maker, name, entry))
            self.ledger.close(maker, [entry], None, _name_account(name))

    def release_results(self, *catalogs: Catalog, logs: Logs | None = None) -> None:
        """Named results of these catalogs that nobody reads any more, or no longer so, give their makers nothing further."""
        if self.ledger.damage is not None:
            return
        now = [each.allowed for each in self.running.values()]
        for maker, name, entry, read in self._find_unheld(catalogs, now, logs):
            self.ledger.close(maker, [entry], read, _name_account(name))
            self.lent.discard((maker, name, entry))

    def _find_unheld(
        self, catalogs: Iterable[Catalog], now: Iterable[Allowed], logs: Logs | None
    ) -> list[tuple[str, str, Entry, Read]]:
        """What results of these catalogs give their makers that none of the queries has, and how far it was read."""
        held = {each for allowed in now for each in _lend(allowed)}
        streams = [
            each for catalog in catalogs for each in catalog.streams.values() if each.query is not None
        ]
        made = sorted({(each.owner, each.name) for each in streams if each.owner is not None})
        # all logs: what a result of results has read is in none of its own
        known = self.logs if logs is None else logs
        last = self.find_read(known, known)
        # of what another process gave nobody knows any more how far it was read
        return [
            (maker, name, each, last if (maker, name, each) in self.lent else UNKNOWN)
            for maker, name in made
            for each in self.ledger.open_entries(maker, _name_account(name))
            if (maker, name, each) not in held
        ]

    def _admit_results(
        self, catalog: Catalog, allowed: Allowed, since: int | None, added: list[Lent]
    ) -> KeptOut:
        """On record for their makers; the grant that one may not use, if so."""
        for each in allowed.results:
            if each.releases:
                read = {stream for entry in each.releases for stream in entry.streams}
                grants = with_decisions(catalog, each.maker, read).grants
                account = _name_account(each.name)
                answer = self.ledger.admit(each.maker, each.releases, grants, account, since)
                if isinstance(answer, Refused):
                    return frozenset({(each.name, answer.entry.grant)})
                added += [(each.maker, each.name, entry) for entry in answer.added]
                self.lent.update((each.maker, each.name, entry) for entry in each.releases)
        return frozenset()

    def _find_since(self, allowed: Allowed, going_on: bool) -> int | None:
        """Before which none of its windows begins; None where that is not known."""
        if not going_on and allowed.start is not Start.LATEST:
            return allowed.start if isinstance(allowed.start, int) else None
        known = all(name in self.logs for name in allowed.streams)
        return find_since(self.logs, allowed, None) if known else None

    def _admit(
        self, catalog: Catalog, user: str, handle: str, allowed: Allowed, since: int | None
    ) -> Refused | None:
        if not allowed.releases:
            return None
        self._check_counts(user, handle, allowed)
        grants = with_decisions(catalog, user, allowed.asked).grants
        answer = self.ledger.admit(user, allowed.releases, grants, handle, since)
        return answer if isinstance(answer, Refused) else None

    def _check_counts(self, user: str, handle: str, allowed: Allowed) -> None:
        """Tuple windows under a grant: one count at a time, for windows of two counts lie askew and tell what is between (R8)."""
        counted = [each for each in allowed.releases if each.counts_tuples]
        own = [each for each in self.running.values() if each.user == user] if counted else []
        for other in own:
            askew = any(counts_beside(ours, theirs) for ours in counted for theirs in other.allowed.releases)
            if other.handle != handle and askew:
                message = "a query of yours counts windows of these tuples already: one at a time"
                raise DiagnosticError([Diagnostic("ledger-tuples", message)])


def _check_start(catalog: Catalog, allowed: Allowed, going_on: bool) -> None:
    """What gives other windows, or the same over other tuples, each time that it is read is given as it comes."""
    if allowed.start is Start.LATEST:
        return
    if any(each.counts_tuples for each in allowed.releases):
        message = "windows of tuples under an aggregate grant begin where the count is: START AT LATEST"
        raise DiagnosticError([Diagnostic("ledger-tuples", message)])
    named = {name for each in allowed.releases for name in each.streams if name in catalog.streams}
    if any(catalog.streams[name].key for name in named):
        # the same window over other rows of the table would tell the difference
        message = "windows under an aggregate grant over a table with a KEY are given once: START AT LATEST"
        raise DiagnosticError([Diagnostic("ledger-table", message)])
    moving = [each for each in allowed.releases if each.population is not None and each.population.moves]
    if moving and not going_on:
        message = f"what grant `{moving[0].grant}` covers moves, so that its windows are given once: START AT LATEST"
        raise DiagnosticError([Diagnostic("ledger-population", message)])


def find_touched(
    running: Mapping[str, Running], before: Catalog, after: Catalog
) -> list[tuple[str, Running]]:
    """The queries of users for whom the version differs."""
    seats: dict[Seat, set[str]] = {}
    for each in running.values():
        seats.setdefault(each.seat, set()).update(each.allowed.asked)
    touched = {
        seat
        for seat, named in seats.items()
        if not is_same_for(
            seat.user, seat_catalog(before, seat), seat_catalog(after, seat), named, (before, after)
        )
    }
    return [(handle, each) for handle, each in running.items() if each.seat in touched]


def _lend(allowed: Allowed) -> list[Lent]:
    return [(each.maker, each.name, entry) for each in allowed.results for entry in each.releases]


def _name_account(result: str) -> str:
    """No query has such a handle."""
    return f"stream {result}"


def _notice(told: Diagnostic) -> Notice:
    return Notice("PR", told.code, told.message)

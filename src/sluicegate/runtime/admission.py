"""What a query may have beside all that was given before (R8): grants that would tell more are left out of it.

A named result that it rests on counts for its maker, once, however many read it, and for as long as anybody does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.query_syntax import Start
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.ledger import Refused
from sluicegate.rewrite.manner import OnPartial
from sluicegate.rewrite.named_results import KeptOut
from sluicegate.rewrite.notice import Notice
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.ledger import Ledger
from sluicegate.runtime.network.authorize import Allowed, is_same_for
from sluicegate.runtime.network.beginnings import find_greatest
from sluicegate.runtime.network.graphs import Graphs
from sluicegate.runtime.network.network import Network
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.seats import Seat, seat_catalog
from sluicegate.runtime.table.in_force import check_tables


@dataclass(frozen=True, slots=True)
class Admission:
    """Decides for queries that begin or change; `running` are those that run, by handle."""

    graphs: Graphs
    ledger: Ledger
    network: Network
    logs: Mapping[str, SourceLog]
    running: Mapping[str, Running]

    def allow(self, catalog: Catalog, seat: Seat, query: str, handle: str) -> Allowed:
        """On record, when it returns; raises `DiagnosticError` where there is nothing that may be given."""
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
            too_much = self._admit_results(catalog, allowed)
            if too_much:
                kept_out |= too_much
                continue
            refused = self._admit(seated, seat.user, handle, allowed)
            if refused is None:
                return replace(allowed, notices=(*allowed.notices, *map(_notice, told)))
            told.append(Diagnostic(refused.code, refused.message))
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

    def release(self, query: Running) -> None:
        """What the query was given stays on record, up to the event time that it has read."""
        last = max(find_greatest(self.logs, query.allowed.streams), default=None)
        self.ledger.close(query.user, query.allowed.releases, last, query.handle)

    def take_back(self, catalog: Catalog, seat: Seat, allowed: Allowed, handle: str) -> None:
        """What `allow` put on record for a query that did not come to be."""
        if allowed.releases:
            self.ledger.close(seat.user, allowed.releases, None, handle)
        self.release_results(catalog)

    def release_results(self, *catalogs: Catalog) -> None:
        """Named results of these catalogs that nobody reads any more, or no longer so, give their makers nothing further."""
        if self.ledger.damage is not None:
            return
        held = {
            (each.maker, each.name, entry)
            for query in self.running.values()
            for each in query.allowed.results
            for entry in each.releases
        }
        streams = [
            each for catalog in catalogs for each in catalog.streams.values() if each.query is not None
        ]
        # all logs: what a result of results has read is in none of its own
        last = max(find_greatest(self.logs, self.logs), default=None)
        for maker, name in sorted({(each.owner, each.name) for each in streams if each.owner is not None}):
            given = self.ledger.open_entries(maker, _name_account(name))
            over = [each for each in given if (maker, name, each) not in held]
            if over:
                self.ledger.close(maker, over, last, _name_account(name))

    def _admit_results(self, catalog: Catalog, allowed: Allowed) -> KeptOut:
        """On record for their makers; the grant that one may not use, if so."""
        for each in allowed.results:
            if each.releases:
                read = {stream for entry in each.releases for stream in entry.streams}
                grants = with_decisions(catalog, each.maker, read).grants
                answer = self.ledger.admit(each.maker, each.releases, grants, _name_account(each.name))
                if isinstance(answer, Refused):
                    return frozenset({(each.name, answer.entry.grant)})
        return frozenset()

    def _admit(self, catalog: Catalog, user: str, handle: str, allowed: Allowed) -> Refused | None:
        if not allowed.releases:
            return None
        if allowed.start is not Start.LATEST and any(each.counts_tuples for each in allowed.releases):
            message = "windows of tuples under an aggregate grant begin where the count is: START AT LATEST"
            raise DiagnosticError([Diagnostic("ledger-tuples", message)])
        named = {name for each in allowed.releases for name in each.streams if name in catalog.streams}
        if allowed.start is not Start.LATEST and any(catalog.streams[name].key for name in named):
            # the same window over other rows of the table would tell the difference
            message = (
                "windows under an aggregate grant over a table with a KEY are given once: START AT LATEST"
            )
            raise DiagnosticError([Diagnostic("ledger-table", message)])
        self._check_counts(user, handle, allowed)
        grants = with_decisions(catalog, user, allowed.asked).grants
        answer = self.ledger.admit(user, allowed.releases, grants, handle)
        return answer if isinstance(answer, Refused) else None

    def _check_counts(self, user: str, handle: str, allowed: Allowed) -> None:
        """Tuple windows under a grant: one count at a time, for windows of two counts lie askew and tell what is between (R8)."""
        counted = {each.streams for each in allowed.releases if each.counts_tuples}
        own = [each for each in self.running.values() if each.user == user] if counted else []
        for other in own:
            theirs = {each.streams for each in other.allowed.releases if each.counts_tuples}
            if other.handle != handle and counted & theirs:
                message = "a query of yours counts windows of these tuples already: one at a time"
                raise DiagnosticError([Diagnostic("ledger-tuples", message)])


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


def _name_account(result: str) -> str:
    """No query has such a handle."""
    return f"stream {result}"


def _notice(told: Diagnostic) -> Notice:
    return Notice("PR", told.code, told.message)

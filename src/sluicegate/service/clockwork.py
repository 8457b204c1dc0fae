"""Policies that read the clock: what they decide is decided again as time goes on, and a difference is a version.

The moment of a catalog's decisions is part of it, so that every gateway, the history and a replay agree on them; it is
moved (`SET CLOCK`) only where a decision that somebody depends on has become another one. Until that is stored and in
force, nothing of the queries that depend on it is handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.clock import is_overdue, reads_clock
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.seats import Seat, seat_catalog
from sluicegate.service.identity.clock import Clock
from sluicegate.service.naming import name_streams
from sluicegate.service.refusals import refuse

if TYPE_CHECKING:
    from sluicegate.service.gateway import Gateway

_TRIES = 5
Pair: TypeAlias = tuple[Seat, frozenset[str]]
"""Who asks, and the streams that the query names."""


class Clockwork:
    """`look` is for the queries that run, `settle` for one that is about to be decided on."""

    def __init__(self, gateway: Gateway, clock: Clock, move: Callable[[int, int], None]) -> None:
        self._gateway, self._clock, self._move = gateway, clock, move
        self._quiet: tuple[Catalog | None, set[Pair]] = (None, set())
        """Those that do not read the clock under this catalog, so that there is nothing to look at."""
        self._late: frozenset[Pair] = frozenset()

    def is_late(self, running: Running) -> bool:
        """Whether the query's decision is another one by now, and not in force yet: nothing of it is handed over."""
        return bool(self._late) and (running.seat, running.allowed.asked) in self._late

    def look(self) -> None:
        """Several times a second: move the clock where a query that runs may have something else by now (R10–R12)."""
        catalog = self._gateway.engine.catalog
        running = self._gateway.engine.running if catalog.policies else ()
        pairs = {(each.seat, each.allowed.asked) for each in running}
        try:
            late = frozenset(self._find_late(catalog, pairs))
        except BaseException:
            self._late = frozenset(pairs)
            raise
        if catalog is not self._gateway.engine.catalog:
            # whoever put another one in force meanwhile looks by that one
            return
        self._late = late
        if late and self._try_move(catalog, late) and self._late is late:
            self._late = frozenset()

    def _find_late(self, catalog: Catalog, pairs: set[Pair]) -> list[Pair]:
        # read once: a change looks from a thread of its own, by a catalog of its own
        known, quiet = self._quiet
        if known is not catalog:
            quiet = set()
            self._quiet = (catalog, quiet)
        for seat, named in pairs - quiet:
            if not reads_clock(seat_catalog(catalog, seat), seat.user, named, catalog):
                quiet.add((seat, named))
        now = self.find_moment(catalog)
        return [each for each in pairs - quiet if _is_overdue(catalog, each, now)]

    def settle(self, seat: Seat, query: str) -> None:
        """Before a query is decided on: the moment that counts for it is now."""
        if self._gateway.engine.catalog.policies:
            self.settle_streams(seat, name_streams(query))

    def settle_streams(self, seat: Seat, streams: Iterable[str]) -> None:
        pairs = {(seat, frozenset(streams))}
        for _ in range(_TRIES):
            catalog = self._gateway.engine.catalog
            if not catalog.policies or self._try_move(catalog, pairs):
                return
        raise refuse("store-conflict", "the catalog changes faster than the clock can be set", 1.0)

    def _try_move(self, catalog: Catalog, pairs: Iterable[Pair]) -> bool:
        """Whether nothing is overdue any more; not where somebody else changed the catalog just now."""
        now = self.find_moment(catalog)
        if not any(_is_overdue(catalog, each, now) for each in pairs):
            return True
        try:
            self._move(now, catalog.version)
        except DiagnosticError as error:
            if error.diagnostics[0].code != "store-conflict":
                raise
            return False
        return True

    def judge_now(self, catalog: Catalog) -> Catalog:
        """The catalog as it decides at this moment, to tell somebody of it; nothing is put in force."""
        return catalog.judge_at(self.find_moment(catalog))

    def find_moment(self, catalog: Catalog) -> int:
        """Now, in microseconds, but never back: what was decided at a later moment, perhaps by another gateway's clock, stands."""
        now = self._clock.now().wall
        return now if catalog.judged_at is None else max(now, catalog.judged_at)


def _is_overdue(catalog: Catalog, pair: Pair, now: int) -> bool:
    seat, named = pair
    return is_overdue(seat_catalog(catalog, seat), seat.user, named, now, catalog)

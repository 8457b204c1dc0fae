"""Results of the gateway's queries into the sinks of its settings: who may send where, and when nothing leaves.

A sink writes on while nobody is signed in. So it is for queries that the catalog alone allows: one that rests on roles or
attributes of an access token ends with the token, and cannot have one.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.runtime.network.seats import seat_catalog
from sluicegate.runtime.sinking import DeclaredSink, Sinks, SinkState, open_sink
from sluicegate.service.identity.principal import Principal
from sluicegate.service.refusals import refuse

if TYPE_CHECKING:
    from sluicegate.policy.catalog import Catalog
    from sluicegate.runtime.network.running import Running
    from sluicegate.service.gateway import Gateway


class Sending:
    """The sinks of one gateway; without any in its settings it refuses all and runs nothing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._sinks: Sinks | None = None

    def start(self) -> None:
        settings, engine = self._gateway.settings, self._gateway.engine
        if settings.sinks:
            self._sinks = Sinks(
                engine.gate,
                Path(settings.state) / "sinks",
                {each.name: each for each in settings.sinks},
                partial(open_sink, engine.spark),
                self._may_write,
            )
            self._sinks.start()

    def stop(self) -> None:
        if self._sinks is not None:
            self._sinks.stop()

    def attach(self, principal: Principal, handle: str, name: str, request: str = "") -> SinkState | None:
        """From now on a query of one's own sends its results to a sink that one may use."""
        gateway = self._gateway
        running = gateway.find_running(principal, handle)
        if gateway.find_own(principal, handle) != running.seat or running.seat.claimed:
            raise refuse("sink-denied", "the results of this query can only be read by who asked it")
        if self._sinks is None:
            raise refuse("sink-denied", f"there is no sink `{name[:80]}` that `{principal.user}` may use")
        found = self._sinks.find(name, running.user, _find_roles(gateway.catalog, running))
        self._sinks.attach(handle, running.number, found)
        gateway.record(principal, "sink", f"{handle} to {name}", request=request)
        return self.state(handle)

    def detach(self, principal: Principal, handle: str, request: str = "") -> bool:
        """After the return nothing more is written to it."""
        self._gateway.find_running(principal, handle)
        done = self._sinks is not None and self._sinks.detach(handle)
        if done:
            self._gateway.record(principal, "sink", f"{handle} to none", request=request)
        return done

    def state(self, handle: str) -> SinkState | None:
        return None if self._sinks is None else self._sinks.state(handle)

    def count_failing(self) -> int:
        return 0 if self._sinks is None else self._sinks.count_failing()

    def settle(self) -> None:
        """After a change of the catalog: nothing is on its way to a sink that it took from a query's user (R10)."""
        if self._sinks is not None:
            self._sinks.settle(self._is_lost)

    def _is_lost(self, handle: str, sink: DeclaredSink) -> bool:
        """Not of a query that has ended: that was waited for, and only its end is on its way."""
        running = self._gateway.engine.find(handle)
        return running is not None and not self._allows(running, sink)

    def _allows(self, running: Running, sink: DeclaredSink) -> bool:
        """Of the version that the engine has: the gateway's own is the new one only when all is settled."""
        return sink.allows(running.user, _find_roles(self._gateway.engine.catalog, running))

    def _may_write(self, handle: str, number: int, sink: DeclaredSink, has_rows: bool) -> bool:
        """Asked before each write, as before each answer with rows."""
        gateway = self._gateway
        running = gateway.engine.find(handle)
        if running is None or running.number != number:
            # that it has ended is told; rows that were gathered before are nobody's any more
            return not has_rows and gateway.find_obstacle() is None
        late = gateway.clockwork.is_late(running) or gateway.authorization.is_late(running)
        return gateway.find_obstacle() is None and not late and self._allows(running, sink)


def _find_roles(catalog: Catalog, running: Running) -> frozenset[str]:
    """Those that the query runs with: a session that left a role aside sends nothing by it (D2)."""
    return seat_catalog(catalog, running.seat).roles_of(running.user)

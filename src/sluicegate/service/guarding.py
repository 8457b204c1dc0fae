"""Whether somebody who was let in is still to be, answered at once: asked before every hand-over (bypass 28).

A thread of the gateway's looks at the store and the catalog several times a second; what it found counts for as long as
the store's word does, and after that nobody is valid.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from sluicegate.policy.catalog import Catalog
from sluicegate.service.identity.clock import Clock, to_micros
from sluicegate.service.identity.principal import Principal
from sluicegate.service.identity.watch import Watch


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why the principal's streams end, None while they need not; as of a version and a monotonic moment."""

    code: str | None
    version: int
    at: int

    def is_older(self, other: _Verdict) -> bool:
        return (self.version, self.at) < (other.version, other.at)


class Guard:
    """Principals that follow results, and what was last found about each."""

    def __init__(self, watch: Watch, clock: Clock, trust_seconds: float) -> None:
        self._watch, self._clock = watch, clock
        self._trust = to_micros(trust_seconds)
        self._lock = threading.Lock()
        self._present: Counter[Principal] = Counter()
        self._verdicts: dict[Principal, _Verdict] = {}

    def enter(self, principal: Principal, catalog: Catalog) -> str | None:
        """Begin to watch somebody; the code of the reason where it is not valid now. May wait for the store."""
        with self._lock:
            self._present[principal] += 1
        try:
            self.judge(principal, catalog)
        except BaseException:
            self.leave(principal)
            raise
        return self.find_reason(principal)

    def leave(self, principal: Principal) -> None:
        with self._lock:
            self._present[principal] -= 1
            if self._present[principal] <= 0:
                del self._present[principal]
                self._verdicts.pop(principal, None)

    def find_reason(self, principal: Principal) -> str | None:
        """The code why nothing more may be handed to the principal; never waits."""
        now = self._clock.now()
        if principal.is_expired(now):
            return "token-expired"
        found = self._verdicts.get(principal)
        if found is None or now.monotonic - found.at >= self._trust:
            return "identity-store"
        return found.code

    def judge(self, principal: Principal, catalog: Catalog) -> None:
        """Judge one who is there anew, by a version that is just being put in force."""
        verdict = self._judge(principal, catalog)
        with self._lock:
            known = self._verdicts.get(principal)
            # what another thread found by a later version, or later, stands
            if principal in self._present and not (known is not None and verdict.is_older(known)):
                self._verdicts[principal] = verdict

    def look(self, catalog: Catalog) -> list[Principal]:
        """Judge everybody who is there anew; those whose streams end."""
        with self._lock:
            present = list(self._present)
        if present:
            self._watch.refresh()
        ended = []
        for principal in present:
            self.judge(principal, catalog)
            if self.find_reason(principal) is not None:
                ended.append(principal)
        return ended

    def _judge(self, principal: Principal, catalog: Catalog) -> _Verdict:
        now = self._clock.now()
        return _Verdict(self._watch.still_valid(principal, catalog, now), catalog.version, now.monotonic)

"""Query-level punctuations that come in streams (R14, R16): judged without a lock, since streams wait for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.service.authorization.events import ACTOR, write_event
from sluicegate.service.authorization.proofs import judge_grants, prove
from sluicegate.service.authorization.state import Turned

if TYPE_CHECKING:
    from sluicegate.service.authorization.server import AuthorizationServer


class Hearing:
    """Of one server."""

    def __init__(self, server: AuthorizationServer) -> None:
        self._server = server

    def judge(self, punctuation: QueryPunctuation) -> str | None:
        """The code by which a punctuation of a stream's owner is refused. It takes no lock: streams wait for it.

        Closing is the owner's to say; opening takes the proof besides, for each user.
        """
        state = self._server.state
        if punctuation.query not in state.queries:
            return "switch-unknown"
        if not punctuation.positive:
            return None
        catalog, now = self._server.engine.catalog, self._server.now()
        judge = judge_grants(catalog, self._server.engine.graphs.manner)
        proven = [
            prove(state, catalog, now, punctuation.query, user, judge) for user in punctuation.users or ()
        ]
        return None if all(each.holds for each in proven) else "switch-unproven"

    def hear(self, stream: str, punctuation: QueryPunctuation, sender: str | None, may: bool) -> str | None:
        """Judge a punctuation that came in a stream, and put it on record; `may` for its owner and administrators."""
        code = self.judge(punctuation) if may and sender is not None else "switch-owner"
        self._note_said(stream, punctuation, sender or "", code)
        return code

    def hear_feed(self, stream: str, punctuation: QueryPunctuation, sender: str | None) -> str | None:
        """One out of a feed with a source: it speaks for the stream's owner, who declared it, and for nobody else."""
        found = self._server.engine.catalog.streams.get(stream)
        return self.hear(stream, punctuation, sender, found is not None and sender == (found.owner or ""))

    def say_in(
        self, stream: str, sender: str, make: Callable[[int], QueryPunctuation]
    ) -> tuple[QueryPunctuation, str | None]:
        """Put one at the end of a stream now; what closes, closes here. It, and the code where it is refused."""
        with self._server.lock:
            punctuation = make(self._server.next_ts())
            code = self.judge(punctuation)
            if code is None and not punctuation.positive:
                self._server.engine.tell(punctuation, stream)
            # what is not on record does not open
            self._note_said(stream, punctuation, sender, code)
            if code is None and punctuation.positive:
                self._server.engine.tell(punctuation, stream)
            return punctuation, code

    def _note_said(self, stream: str, punctuation: QueryPunctuation, sender: str, code: str | None) -> None:
        """To history and audit; its time counts for those after it."""
        users = () if punctuation.users is None else tuple(sorted(punctuation.users))
        reason = f"`{sender}` said so in the stream" if code is None else "deny"
        turned = Turned(punctuation.query, users, punctuation.positive, punctuation.ts, reason, (stream,))
        event = replace(write_event(turned, self._server.engine.catalog.version), principal=sender or ACTOR)
        if code is None:
            self._server.words.add(self._server.state, sender, self._server.now(), lambda _: [turned])
        else:
            event = replace(event, notices=(code, stream))
        self._server.record([event])

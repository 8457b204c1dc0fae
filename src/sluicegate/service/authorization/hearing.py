"""Query-level punctuations that come in streams (R14, R16): judged without a lock, since streams wait for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluicegate.errors import DiagnosticError
from sluicegate.graph.operators import sources
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.service.authorization.events import ACTOR, write_event
from sluicegate.service.authorization.proofs import judge_grants, prove
from sluicegate.service.authorization.spoken import is_older, take_last_word
from sluicegate.service.authorization.state import Content, Said, SharedQuery, State, Turned
from sluicegate.service.store import Event
from sluicegate.source import SourceText

if TYPE_CHECKING:
    from sluicegate.service.authorization.server import AuthorizationServer

_MOST_NAMED = 20
_OLD = "switch-old"
_QUIET = 60_000_000
"""Microseconds in which what a feed is refused again is counted, and not written: who fills a topic must not fill the audit."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A punctuation that came in a stream, and the code by which it is refused."""

    stream: str
    punctuation: QueryPunctuation
    code: str | None

    @property
    def word(self) -> Said:
        said = self.punctuation
        users = () if said.users is None else tuple(sorted(said.users))
        return Said(said.query, users, said.positive, said.ts, self.stream)


class Hearing:
    """Of one server."""

    def __init__(self, server: AuthorizationServer) -> None:
        self._server = server
        self._read: tuple[Catalog | None, dict[int, frozenset[str]]] = (None, {})
        """By the number of a query, the streams that it reads under that catalog; replaced whole."""
        self._refused: dict[tuple[str, str, str], tuple[int, int]] = {}
        """Of each stream, sender and code, when it was on record last, and how often since; a stream has one feed."""

    def judge(self, stream: str, punctuation: QueryPunctuation) -> str | None:
        """The code by which a punctuation of a stream's owner is refused. It takes no lock: streams wait for it.

        Closing is the owner's to say; opening takes the proof besides, for each user.
        """
        state, catalog = self._server.state, self._server.engine.catalog
        query, users = state.queries.get(punctuation.query), punctuation.users or frozenset()
        # of a query that does not read the stream its owner learns nothing, not even that there is one
        if (
            query is None
            or stream not in self._find_read(query, catalog)
            or not users <= catalog.users.keys()
        ):
            return "switch-unknown"
        if not punctuation.positive:
            return None
        now, judge = self._server.now(), judge_grants(catalog, self._server.engine.graphs.manner)
        proven = [prove(state, catalog, now, punctuation.query, user, judge) for user in sorted(users)]
        return None if all(each.may_open for each in proven) else "switch-unproven"

    def _find_read(self, query: SharedQuery, catalog: Catalog) -> frozenset[str]:
        known = self._read
        if known[0] is not catalog:
            known = self._read = (catalog, {})
        if query.number not in known[1]:
            known[1][query.number] = find_read(query.text, catalog)
        return known[1][query.number]

    def hear(
        self, stream: str, said: Sequence[QueryPunctuation], sender: str | None, may: bool
    ) -> list[str | None]:
        """Judge punctuations that came in a stream together, and put them on record; `may` for its owner and
        administrators.
        """
        return [each.code for each in self._note(self._judge_all(stream, said, sender, may), sender or "")]

    def _judge_all(
        self, stream: str, said: Sequence[QueryPunctuation], sender: str | None, may: bool
    ) -> list[Heard]:
        known: dict[tuple[str, frozenset[str] | None, bool], str | None] = {}
        found = []
        for each in said:
            asked = (each.query, each.users, each.positive)
            if asked not in known:
                known[asked] = self.judge(stream, each) if may and sender is not None else "switch-owner"
            found.append(Heard(stream, each, known[asked]))
        return found

    def hear_feed(self, stream: str, said: QueryPunctuation, sender: str | None) -> str | None:
        """One out of a feed with a source: it speaks for the stream's owner, who declared it, and for nobody else.

        A closing that is older than the last word is taken: of a batch that failed behind its hearing, and comes again,
        the last word may be one that stands behind it. At its place a switch discards what is older there.
        """
        found = self._server.engine.catalog.streams.get(stream)
        # nobody's word is not that of a stream without an owner
        may = found is not None and bool(sender) and sender == found.owner
        (judged,) = self._judge_all(stream, [said], sender, may)
        if judged.code is not None:
            self._note_refused(judged, judged.code, sender or "")
            return judged.code
        (heard,) = self._note([judged], sender or "", takes_old=True)
        return None if heard.code == _OLD else heard.code

    def _note_refused(self, heard: Heard, code: str, sender: str) -> None:
        """The first of a while to the audit, with how many there were before; all of them are dead letters."""
        # who is no user is counted with the others: such names are without end
        known = sender if sender in self._server.engine.catalog.users else ""
        key, now = (heard.stream, known, code), self._server.now()
        last, more = self._refused.get(key, (None, 0))
        if last is not None and 0 <= now - last < _QUIET:
            self._refused[key] = (last, more + 1)
            return
        event = self._write_event([heard], sender)
        if more:
            event = replace(event, notices=(*event.notices, f"and {more} before"))
        self._server.record([event])
        self._refused[key] = (now, 0)

    def say_in(
        self, stream: str, sender: str, make: Callable[[int], QueryPunctuation]
    ) -> tuple[QueryPunctuation, str | None]:
        """Put one at the end of a stream now; what closes, closes here. It, and the code where it is refused."""
        with self._server.lock:
            self._server.refresh()
            punctuation = make(self._server.next_ts())
            code = self.judge(stream, punctuation)
            if code is None and not punctuation.positive:
                self._server.engine.tell(punctuation, stream)
            # what is not on record does not open
            (heard,) = self._note([Heard(stream, punctuation, code)], sender)
            if heard.code is None and punctuation.positive:
                self._server.engine.tell(punctuation, stream)
            # an owner's word may be the last that a proof was waiting for
            self._server.refresh()
            self._server.look()
            return punctuation, heard.code

    def _note(self, heard: Sequence[Heard], sender: str, *, takes_old: bool = False) -> list[Heard]:
        """To history and audit, in one go; what would be discarded as older than the last word is found here."""
        taken = (None, _OLD) if takes_old else (None,)
        found = list(heard)

        def decide(state: State) -> Sequence[Content]:
            found[:] = _refuse_old(state, heard)
            return [each.word for each in found if each.code in taken]

        if any(each.code is None for each in heard):
            self._server.words.add(self._server.state, sender, self._server.now(), decide)
        self._server.record(self._write_events(found, sender))
        return found

    def _write_events(self, heard: Sequence[Heard], sender: str) -> list[Event]:
        """One for all that are alike, with the users they name."""
        alike: dict[tuple[str, str, bool, str | None], list[Heard]] = {}
        for each in heard:
            said = each.punctuation
            alike.setdefault((each.stream, said.query, said.positive, each.code), []).append(each)
        return [self._write_event(each, sender) for each in alike.values()]

    def _write_event(self, alike: Sequence[Heard], sender: str) -> Event:
        first, word = alike[0], alike[0].word
        users = sorted({user for each in alike for user in each.word.users})
        more = (f"and {len(users) - _MOST_NAMED} more",) if len(users) > _MOST_NAMED else ()
        everybody = any(each.punctuation.users is None for each in alike)
        named = () if everybody else (*users[:_MOST_NAMED], *more)
        reason = f"`{sender}` said so in the stream" if first.code is None else "deny"
        turned = Turned(word.query, named, word.positive, word.ts, reason, (first.stream,))
        event = replace(write_event(turned, self._server.engine.catalog.version), principal=sender or ACTOR)
        return event if first.code is None else replace(event, notices=(first.code, first.stream))


def _refuse_old(state: State, heard: Sequence[Heard]) -> list[Heard]:
    """Each by what was said before it, also among themselves."""
    found, known = [], dict(state.last_words)
    for each in heard:
        word = each.word
        last = known.get(word.query, {})
        if each.code is not None:
            found.append(each)
        elif not word.positive and is_older(last, word.stream, word.users, word.ts):
            found.append(replace(each, code=_OLD))
        else:
            found.append(each)
            known[word.query] = take_last_word(last, (word.stream,), word.users, word.ts)
    return found


def find_read(text: str, catalog: Catalog) -> frozenset[str]:
    """The streams that a query reads; of named results those that they are made of. None where it cannot be read."""
    found: set[str] = set()
    left = [text]
    while left:
        try:
            names = {
                each.stream for each in sources(read_query(SourceText("<query>", left.pop()), catalog).root)
            }
        except DiagnosticError:
            return frozenset()
        made = [catalog.streams[name].query for name in names - found if name in catalog.streams]
        left += [each for each in made if each is not None]
        found |= names
    return frozenset(found)

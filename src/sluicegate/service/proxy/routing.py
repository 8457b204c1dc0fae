"""Which gateway a request goes to: the one that has its streams, or its query, for this caller."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fastapi.concurrency import run_in_threadpool

from sluicegate.service.proxy.handles import Kept, Marks, Recent
from sluicegate.service.proxy.naming import find_streams
from sluicegate.service.proxy.settings import ProxySettings
from sluicegate.service.proxy.upstream import Answer, Sent, Upstream
from sluicegate.service.refusals import RefusedError, refuse

_UNKNOWN_CALLER = 401


class Router:
    """Gateways in order. What is remembered is asked for again where a gateway says that it is not so."""

    def __init__(self, settings: ProxySettings) -> None:
        self.gateways = tuple(Upstream(url, settings) for url in settings.gateways)
        self.marks = Marks()
        self.handles: Recent[Kept] = Recent(settings.most_handles)
        self._streams: Recent[int] = Recent(settings.most_handles)
        self._queries: Recent[int] = Recent(settings.most_handles)
        self._callers: Recent[bool] = Recent(settings.most_handles)

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in self.gateways))

    async def find_by_streams(self, sent: Sent, content_type: str) -> int:
        """The first gateway that shows the caller all streams of the request; the first of all where none does."""
        if len(self.gateways) == 1:
            return 0
        if not await self._meet(sent):
            return 0
        names = await run_in_threadpool(find_streams, content_type, sent.body)
        key = self._mark_streams(sent, names)
        found = self._streams.find(key)
        if found is None:
            found = await self._look_for_streams(sent, names)
            self._streams.put(key, found)
        return found

    async def _meet(self, sent: Sent) -> bool:
        """Whether a gateway knows the caller: a text takes long to read, and is not read for just anybody."""
        key = self.marks.make([*sent.credentials, b"caller"])
        if self._callers.find(key):
            return True
        answers = await self.ask_all(sent.turn("GET", "/v1/me"))
        if not any(map(_is_known, answers)):
            _check_all_answered(answers)
            return False
        if any(isinstance(each, Answer) and each.status == 200 for each in answers):
            self._callers.put(key, True)
        return True

    async def _look_for_streams(self, sent: Sent, names: frozenset[str]) -> int:
        answers = await self.ask_all(sent.turn("GET", "/v1/streams"))
        for at, answer in enumerate(answers):
            if isinstance(answer, Answer) and names and names <= _list_names(answer):
                return at
        _check_all_answered(answers)
        known = [at for at, each in enumerate(answers) if _is_known(each)]
        return known[0] if known else 0

    async def forget_streams(self, sent: Sent, content_type: str) -> None:
        """The gateway says that it has them not: they may have moved."""
        if len(self.gateways) > 1:
            names = await run_in_threadpool(find_streams, content_type, sent.body)
            self._streams.drop(self._mark_streams(sent, names))

    def _mark_streams(self, sent: Sent, names: frozenset[str]) -> bytes:
        return self.marks.make([*sent.credentials, b"streams", *(name.encode() for name in sorted(names))])

    def place_query(self, sent: Sent, handle: str, gateway: int) -> None:
        self._queries.put(self._mark_query(sent, handle), gateway)

    async def find_by_handle(self, sent: Sent, handle: str) -> int:
        """Where the caller's query is; the first gateway, which does not know it either, where it is nowhere."""
        if len(self.gateways) == 1:
            return 0
        key = self._mark_query(sent, handle)
        found = self._queries.find(key)
        if found is None:
            answers = await self.ask_all(sent.turn("GET", f"/v1/queries/{handle}"))
            having = [
                at for at, each in enumerate(answers) if isinstance(each, Answer) and each.status == 200
            ]
            if not having:
                _check_all_answered(answers)
                return next((at for at, each in enumerate(answers) if _is_known(each)), 0)
            found = having[0]
            self._queries.put(key, found)
        return found

    def forget_query(self, sent: Sent, handle: str) -> None:
        self._queries.drop(self._mark_query(sent, handle))

    def _mark_query(self, sent: Sent, handle: str) -> bytes:
        return self.marks.make([*sent.credentials, b"query", handle.encode()])

    async def ask_all(self, sent: Sent) -> list[Answer | RefusedError]:
        """What each says; one that cannot be reached is told as the error that it is."""
        return await asyncio.gather(*(_try_ask(each, sent) for each in self.gateways))


async def _try_ask(gateway: Upstream, sent: Sent) -> Answer | RefusedError:
    try:
        return await gateway.ask(sent)
    except RefusedError as error:
        return error


def _check_all_answered(answers: Sequence[Answer | RefusedError]) -> None:
    """Where none has it, one that was not heard may be the one: that is not the same as nowhere."""
    for each in answers:
        if isinstance(each, RefusedError):
            raise each
        if each.status >= 500:
            raise refuse("gateway-unreachable", "a gateway does not answer now; nothing was let through", 1.0)


def _is_known(answer: Answer | RefusedError) -> bool:
    return isinstance(answer, Answer) and answer.status != _UNKNOWN_CALLER


def _list_names(answer: Answer) -> frozenset[str]:
    if answer.status != 200:
        return frozenset()
    found = answer.content.get("streams")
    listed = found if isinstance(found, list) else []
    return frozenset(str(each.get("name", "")).casefold() for each in listed if isinstance(each, dict))

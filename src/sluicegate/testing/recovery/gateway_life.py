"""A gateway's life between two kills, and all that is asked of it: registrations, tuples, changes, tokens, rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

import httpx

from sluicegate.testing.changes.policies import Change
from sluicegate.testing.changes.world import SHAPES
from sluicegate.testing.load.control import Control
from sluicegate.testing.load.readers import Poller
from sluicegate.testing.load.server import ADMINISTRATOR
from sluicegate.testing.load.whole import ROWS
from sluicegate.testing.load.world import Batch, World
from sluicegate.testing.recovery.gateway_kept import STREAMS, Kept, Witness

_SETTLED = 180.0
_MOST_EXTRA = 6
AWAY = (httpx.TransportError, ConnectionError, OSError)
"""What a killed gateway looks like from outside."""


@dataclass(slots=True)
class Unsure:
    """What was asked for without an answer: a change with its version, and tuples by stream."""

    change: tuple[int, Change] | None = None
    tuples: list[tuple[str, range]] = field(default_factory=list)


class Lives:
    """What goes on over all lives of a gateway over one folder."""

    def __init__(self, control: Control, world: World) -> None:
        self._control, self.world = control, world
        self.kept, self._unsure = Kept(), Unsure()
        self._witnesses = [Witness(stream) for stream in STREAMS]
        self._readers: dict[tuple[str, str], Poller] = {}
        self._past: list[Poller] = []
        self._extra = count()
        self.problems: list[str] = []
        self.acknowledged = 0
        self._until = 0.0

    async def begin(self) -> None:
        """The first life: nobody has asked for anything yet."""
        for each in self._witnesses:
            await each.register(self._control)
        await self._register_missing()

    async def resume(self) -> None:
        """After a restart: what was acknowledged is there, what was not is found out, and the readers go on."""
        await self._resolve_change()
        self.problems += await self.kept.check(self._control)
        await self._resolve_tuples()
        for each in self._readers.values():
            each.move(self._control.address)
        await self._register_missing()

    async def _resolve_change(self) -> None:
        if self._unsure.change is None:
            return
        version, change = self._unsure.change
        _, told = await self._control.call(self._control.token(ADMINISTRATOR), "GET", "/v1/catalog/version")
        if told["version"] > max(self.kept.changes, default=1):
            self.kept.changes[told["version"]] = change.text
            self._take_change(version, change)
        else:
            self.world.story.undo(version)
        self._unsure.change = None

    async def _resolve_tuples(self) -> None:
        """A push was taken whole or not at all; which one it was shows when a later one has come."""
        marker = self.world.batches
        await self._push()
        await self._wait_for(lambda: self._has_seen(marker), "the tuples of a push that was acknowledged")
        unsure, self._unsure.tuples = self._unsure.tuples, []
        for stream, numbers in unsure:
            seen = self._witnesses[STREAMS.index(stream)].seen
            taken = sum(number in seen for number in numbers)
            if taken == 0:
                self.world.input.remove(stream, numbers)
            elif taken != len(numbers):
                self.problems.append(f"{taken} of {len(numbers)} tuples of one push into {stream} are there")

    def _has_seen(self, batch: int) -> bool:
        first = batch * ROWS
        return all(first in each.seen for each in self._witnesses)

    async def _wait_for(self, condition: Callable[[], bool], what: str) -> None:
        until = asyncio.get_running_loop().time() + _SETTLED
        while not condition():
            for each in self._witnesses:
                self.problems += await each.read(self._control)
            if asyncio.get_running_loop().time() > until or self.problems:
                self.problems.append(f"{what} did not come")
                return

    async def run(self, seconds: float, *, cut: bool) -> bool:
        """All at once, for so long; whether the gateway went away by itself. With `cut` what is under way is left alone then."""
        self._until = asyncio.get_running_loop().time() + (2 * _SETTLED if cut else seconds)
        work: list[Awaitable[None]] = [
            self._repeat(self._push, 0.4),
            self._repeat(self._change, 0.5),
            self._repeat(self._ask_more, 0.3),
            self._repeat(self._make_tokens, 0.7),
            self._repeat(self._read_all, 0.1),
        ]
        tasks = [asyncio.ensure_future(each) for each in work]
        timeout = seconds if cut else None
        done, _ = await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_EXCEPTION)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        errors = [error for each in done if (error := each.exception()) is not None]
        for error in errors:
            if not isinstance(error, AWAY):
                raise error
        return bool(errors)

    async def _repeat(self, what: Callable[[], Awaitable[None]], pause: float) -> None:
        while not self.problems and asyncio.get_running_loop().time() < self._until:
            await what()
            await asyncio.sleep(pause)

    async def _push(self) -> None:
        batch = self.world.make_batch()
        waiting = list(batch)
        try:
            for stream in STREAMS:
                await self._control.push(stream, batch[stream])
                waiting.remove(stream)
                self.acknowledged += 1
            self.world.input.note_pushed(batch)
        except BaseException:
            self._doubt(batch, waiting)
            raise

    def _doubt(self, batch: Batch, waiting: list[str]) -> None:
        """The first that waits may have been taken; those behind it were never sent."""
        for at, stream in enumerate(waiting):
            numbers = [row[1] for row in batch[stream]]
            if at == 0:
                step = numbers[1] - numbers[0]
                self._unsure.tuples.append((stream, range(numbers[0], numbers[-1] + 1, step)))
            else:
                self.world.input.remove(stream, numbers)

    async def _change(self) -> None:
        world, change = self.world, self.world.choose_change()
        version = world.story.begin(change.settings, world.input.greatest)
        self._unsure.change = version, change
        told = await self._control.change(change.text)
        self.acknowledged += 1
        self.kept.changes[told] = change.text
        self._unsure.change = None
        self._take_change(version, change)
        await self._register_missing()

    def _take_change(self, version: int, change: Change) -> None:
        """It is in force; queries of users whom it leaves nothing have ended."""
        self.world.story.end(version, self.world.input.made)
        self.world.catalog = change.catalog
        for user in change.settings:
            if self.world.story.now(user).kind is None:
                self._forget(user)

    def _forget(self, user: str) -> None:
        for shape in SHAPES:
            reader = self._readers.pop((user, shape), None)
            if reader is not None:
                self.kept.handles.pop(reader.reading.handle, None)
                self._past.append(reader)

    async def _register_missing(self) -> None:
        """The queries of everybody who may have them and has them not."""
        for user in self.world.people.everybody:
            for shape, query in SHAPES.items():
                if (user, shape) in self._readers or self.world.story.now(user).kind is None:
                    continue
                handle = await self._control.register(user, query)
                self.acknowledged += 1
                self.kept.handles[handle] = user, True
                reading = self.world.make_reading(user, shape, handle, self._control.token(user))
                self._readers[user, shape] = Poller(reading, self._control.address, 0.0, wait=0.2)

    async def _ask_more(self) -> None:
        """One more query of somebody whom no change concerns; some of them are dropped again."""
        user = self.world.people.steady[0]
        own = {each.reading.handle for each in self._readers.values()}
        there = [each for each, (_, is_there) in self.kept.handles.items() if is_there and each not in own]
        if len(there) >= _MOST_EXTRA:
            handle = self.world.rng.choice(there)
            del self.kept.handles[handle]
            await self._control.delete(user, f"/v1/queries/{handle}")
            self.kept.handles[handle] = user, False
        else:
            query = f"SELECT id, kind FROM S WHERE n >= {next(self._extra)}"  # noqa: S608 — a number
            self.kept.handles[await self._control.register(user, query)] = user, True
        self.acknowledged += 1

    async def _make_tokens(self) -> None:
        id_, text = await self._control.make_token(self.world.people.steady[0])
        self.kept.tokens[id_] = text, True
        if self.world.rng.random() < 0.5:
            del self.kept.tokens[id_]
            await self._control.delete(ADMINISTRATOR, f"/v1/tokens/{id_}")
            self.kept.tokens[id_] = text, False
        self.acknowledged += 1

    async def _read_all(self) -> None:
        for each in self._witnesses:
            self.problems += await each.read(self._control)
        for reader in list(self._readers.values()):
            if self._is_current(reader):
                await self._read(reader)

    def _is_current(self, reader: Poller) -> bool:
        return any(each is reader for each in self._readers.values())

    async def _read(self, reader: Poller) -> None:
        reading, before = reader.reading, reader.cursor
        if reading.ended:
            return
        known = len(reading.judge.violations)
        await reader.ask()
        if not self._is_current(reader):
            # ended and asked for anew meanwhile, under the same handle: its cursor is of the one before
            reading.judge.violations[known:] = [
                each for each in reading.judge.violations[known:] if '"gate-cursor"' not in each
            ]
            return
        if reader.cursor != before and not reading.ended:
            token, path = reading.token, f"/v1/queries/{reading.handle}/ack"
            # it may have ended meanwhile
            await self._control.call(token, "POST", path, {"cursor": reader.cursor})
        self.problems += reading.judge.violations

    async def finish(self) -> int:
        """Until everybody has all that there is; how many rows were judged."""
        await self._push()
        until = asyncio.get_running_loop().time() + _SETTLED
        while not self.problems and asyncio.get_running_loop().time() < until:
            await self._read_all()
            if all(self.world.has_all(each.reading) for each in self._readers.values()):
                break
        for each in self._readers.values():
            self.world.settle(each.reading)
        everybody = [*self._past, *self._readers.values()]
        self.problems += [text for each in everybody for text in each.reading.judge.violations]
        return sum(each.reading.judge.counts.total() for each in everybody)

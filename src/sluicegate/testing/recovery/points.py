"""Places at which a process of the recovery test kills itself, put around the engine's own functions from outside.

Only `recovery.child` calls this, in a process of its own: the engine has no such switch.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from sluicegate.runtime import upkeep
from sluicegate.runtime.feed import ingest
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.gate import committing
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.ledger_file import LedgerFile
from sluicegate.runtime.network.carried_store import CarriedStore
from sluicegate.runtime.network.network import Network
from sluicegate.runtime.network.running import Records
from sluicegate.runtime.shield.class_table import ClassTable
from sluicegate.runtime.shield.shield import Shield
from sluicegate.testing.recovery.reader import Reader


@dataclass(frozen=True, slots=True)
class Point:
    """A function, by its owner and name, and up to which of its calls a process is killed: small, so that most get there."""

    owner: Any
    name: str
    calls: int


POINTS: Mapping[str, Point] = {
    "rows of a batch written": Point(ingest, "write_batch", 3),
    "batch committed": Point(SourceLog, "commit", 3),
    "batch described": Point(SourceLog, "_write_meta", 3),
    "policies numbered": Point(ClassTable, "intern", 3),
    "shield's memory kept": Point(Shield, "keep", 3),
    "shield's batch settled": Point(Shield, "settle", 3),
    "input ended": Point(SourceLog, "finish", 1),
    "log cut": Point(SourceLog, "cut", 1),
    "log put together": Point(SourceLog, "compact", 1),
    "files retired": Point(SourceLog, "_retire", 1),
    "tick described": Point(committing, "write_footer", 1),
    "tick published": Point(committing, "publish", 1),
    "tick committed": Point(Network, "_commit", 1),
    "open windows saved": Point(CarriedStore, "save", 2),
    "query recorded": Point(Records, "save", 6),
    "ledger written": Point(LedgerFile, "append", 1),
    "rows acknowledged": Point(Gate, "ack", 2),
    "rows taken": Point(Reader, "write", 3),
    "half a line taken": Point(Reader, "write_half", 2),
}
SIDES = ("before", "after")
_FIRST = {"ledger written"}
"""What only the first run over a folder does."""


def choose_point(rng: Random, run: int) -> tuple[str, str, int]:
    """A point that the run may come to, a side of it, and at which call."""
    name = rng.choice(sorted(set(POINTS) - _FIRST if run else POINTS))
    return name, rng.choice(SIDES), rng.randint(1, POINTS[name].calls)


def set_point(name: str, side: str, call: int, points: Mapping[str, Point] = POINTS) -> None:
    """Kill this process before or after the given call of the point's function."""
    point = points[name]
    setattr(point.owner, point.name, _wrap(getattr(point.owner, point.name), side, call))


def _wrap(function: Callable[..., Any], side: str, call: int) -> Callable[..., Any]:
    left = call

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and side == "before":
            kill_self()
        found = function(*args, **kwargs)
        if left == 0:
            kill_self()
        return found

    return wrapped


def hasten_upkeep() -> None:
    """Logs are put together so early that it happens in a short run too."""
    upkeep.COMPACT_FROM = 4


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

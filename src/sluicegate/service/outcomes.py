"""What came of a registration or a change of the catalog."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from sluicegate.runtime.network.running import Running


@dataclass(frozen=True, slots=True)
class Registered:
    """A query that runs for its caller; `created` where this call started it, which took `times` by stage."""

    running: Running
    created: bool
    version: int
    times: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Changed:
    """A version that is in force, or would be; what became of the queries of this gateway."""

    version: int
    withdrawn: tuple[Running, ...]
    changed: tuple[Running, ...]
    dry_run: bool = False


def compare_runs(
    version: int, before: Iterable[Running], after: Iterable[Running], withdrawn: Container[str]
) -> Changed:
    """What became of the queries that ran before a change."""
    known, now = tuple(before), {each.handle: each.version for each in after}
    gone = tuple(each for each in known if each.handle not in now or each.handle in withdrawn)
    moved = tuple(each for each in known if now.get(each.handle, each.version) != each.version)
    return Changed(version, gone, moved)

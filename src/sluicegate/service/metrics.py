"""Counters of the gateway, as text for Prometheus. Nothing in them depends on a row that somebody may not see (bypass 12)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_HELP: Mapping[str, str] = {
    "sluicegate_requests_total": "answers by route, method and status",
    "sluicegate_rows_delivered_total": "rows that were handed to readers",
    "sluicegate_rows_pushed_total": "tuples that were pushed and taken",
    "sluicegate_rows_refused_total": "tuples that were pushed and refused",
    "sluicegate_registrations_total": "queries that were registered, by decision",
    "sluicegate_changes_total": "catalog versions that this gateway put in force",
    "sluicegate_revoked_total": "followed results that ended because their reader was no longer valid",
}


@dataclass(frozen=True, slots=True)
class Gauge:
    """A value of the moment."""

    name: str
    told: str
    value: float


class Metrics:
    """Counted from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._delivered: Counter[str] = Counter()

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        if name not in _HELP:
            raise ValueError(f"no counter `{name}`")
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += amount

    def count_delivered(self, handle: str, rows: int) -> None:
        """Rows that left for a query's reader; for the owners of what it reads, and as a sum for everybody."""
        with self._lock:
            self._delivered[handle] += rows
            self._counts["sluicegate_rows_delivered_total", ()] += rows

    def delivered(self, handle: str) -> int:
        return self._delivered[handle]

    def render(self, gauges: Iterable[Gauge]) -> str:
        """The text format that Prometheus reads."""
        with self._lock:
            counts = sorted(self._counts.items())
        lines: list[str] = []
        for name, told in _HELP.items():
            lines += [f"# HELP {name} {told}", f"# TYPE {name} counter"]
            lines += [f"{name}{_labels(labels)} {value}" for (of, labels), value in counts if of == name]
        for gauge in gauges:
            lines += [f"# HELP {gauge.name} {gauge.told}", f"# TYPE {gauge.name} gauge"]
            lines.append(f"{gauge.name} {gauge.value:g}")
        return "\n".join(lines) + "\n"


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    escaped = (
        (name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, value in labels
    )
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"

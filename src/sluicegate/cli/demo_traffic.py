"""The receiver of `sluicegate demo`: a port's ships as text of AIS, for whoever connects, at a pace at which one sees them move."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from sluicegate.cli.ais_simulate import Callers
from sluicegate.cli.inputs import UsageError
from sluicegate.testing.port_traffic.traffic import PortTraffic, Report

SHIPS, SEED = 300, 57
"""Of this seed the captain begins off the port, and the tanker that runs aground is far away."""
SPEED = 10.0
"""Seconds of traffic that a second brings."""
WARM = 60.0
"""Seconds of traffic after which every ship has told its place and its name."""
_BEAT = 0.25
_EVERY = 2.0
"""Seconds between two rounds of reports: a batch each, of which few are cheaper than many."""
_REPEAT = 5.0
"""Seconds after which a ship that lies still is told again, for those who began to look meanwhile."""


class Radio:
    """A thread that sends; its port is taken at once, so that whoever connects before `start` waits and is heard."""

    def __init__(self, port: int = 0) -> None:
        try:
            self._callers = Callers(port, self._greet)
        except OSError as error:
            raise UsageError(
                f"port {port} of the demo's receiver of ships is in use: end what uses it"
            ) from error
        self.port = self._callers.port
        self._traffic = PortTraffic(SHIPS, SEED)
        self.ships = tuple(each.mmsi for each in self._traffic.ships)
        self._names: list[bytes] = []
        self._places: dict[int, bytes] = {}
        self._sent: dict[int, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-radio", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        self._callers.close()

    def _greet(self) -> bytes:
        """Names, then places: nobody waits minutes for who lies at anchor."""
        return b"".join([*self._names, *self._places.values()])

    def _run(self) -> None:
        reports = self._traffic.run()
        first = next(reports)
        self._names = [first.lines, *self._advance(reports, first.time + WARM)]
        began, due = time.monotonic(), 0.0
        while not self._stopping.wait(_BEAT):
            self._callers.accept()
            passed = time.monotonic() - began
            if passed >= due:
                due = passed + _EVERY
                others = self._advance(reports, first.time + WARM + passed * SPEED)
                self._callers.send(b"".join([*others, *self._choose(passed)]))

    def _advance(self, reports: Iterator[Report], until: float) -> list[bytes]:
        """Let the time pass; of each ship the last place counts, and all else is given back."""
        others: list[bytes] = []
        for report in reports:
            if report.what == "position":
                self._places[report.mmsi] = report.lines
                self._sent.pop(report.mmsi, None)
            else:
                others.append(report.lines)
            if report.time >= until:
                break
        return others

    def _choose(self, now: float) -> Iterator[bytes]:
        """Places that are new, or were told long ago."""
        for mmsi, lines in self._places.items():
            told = self._sent.get(mmsi)
            if told is None or now - told >= _REPEAT:
                self._sent[mmsi] = now
                yield lines

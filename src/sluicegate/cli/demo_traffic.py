"""Tuples for `sluicegate demo`: soldiers who walk about and patients in their beds, a report of each every second."""

from __future__ import annotations

import random
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate.client import Client

_PLATOONS = ("X", "Y", "Z")
_ROOMS = ("east", "west")
_SOLDIERS, _PATIENTS = 12, 8
_PERIOD = 1.0


class World:
    """Everybody's last values; each step changes them a little."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- a show, no secret
        self._places = [self._random.uniform(0, 100) for _ in range(_SOLDIERS)]
        self._hearts = [self._random.randint(60, 90) for _ in range(_SOLDIERS + _PATIENTS)]

    def step(self, now: datetime) -> dict[str, list[dict[str, Any]]]:
        """One report of everybody, by stream."""
        at = now.isoformat(timespec="milliseconds")
        self._places = [min(100.0, max(0.0, place + self._random.gauss(0, 1.5))) for place in self._places]
        self._hearts = [min(160, max(45, beats + self._random.randint(-3, 3))) for beats in self._hearts]
        return {
            "Position": [self._position(number, at) for number in range(_SOLDIERS)],
            "Health": [self._health(number, at) for number in range(_SOLDIERS)],
            "Ward": [self._bed(number, at) for number in range(_PATIENTS)],
        }

    def _soldier(self, number: int, at: str) -> dict[str, Any]:
        return {"ts": at, "SID": f"s{number + 1}", "Platoon": _PLATOONS[number % len(_PLATOONS)]}

    def _position(self, number: int, at: str) -> dict[str, Any]:
        return {**self._soldier(number, at), "Pos": round(self._places[number], 1)}

    def _health(self, number: int, at: str) -> dict[str, Any]:
        beats = self._hearts[number]
        return {
            **self._soldier(number, at),
            "Heart": beats,
            "BPressure": beats + self._random.randint(30, 70),
        }

    def _bed(self, number: int, at: str) -> dict[str, Any]:
        return {
            "ts": at,
            "Patient_id": 120 + number,
            "Room": _ROOMS[number % len(_ROOMS)],
            "Beats_per_min": self._hearts[_SOLDIERS + number],
            "Temperature": round(self._random.gauss(37.0, 0.4), 1),
        }


class Traffic:
    """A thread that pushes a step every second, like any device: over HTTP, with an account that may only write."""

    def __init__(self, client: Client, user: str, password: str) -> None:
        self._client, self._user, self._password = client, user, password
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-traffic", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        from sluicegate.client import ClientError

        world, signed_in = World(), False
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                if not signed_in:
                    self._client.sign_in(self._user, self._password)
                    signed_in = True
                for stream, rows in world.step(datetime.now(UTC)).items():
                    self._client.push(stream, rows)
            except ClientError:
                signed_in = False  # the gateway is not there yet, or no longer: a device tries again
            self._stopping.wait(max(0.05, _PERIOD - (time.monotonic() - began)))

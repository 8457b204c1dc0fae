"""What a gateway has acknowledged, and whether it still knows it after it was killed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import quote

from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.print_statements import print_statement
from sluicegate.source import SourceText
from sluicegate.testing.load.control import Control
from sluicegate.testing.load.server import ADMINISTRATOR

STREAMS = ("S", "T")
WITNESS = "witness"
CATALOG = f"""
CREATE ROLE Witness; CREATE USER {WITNESS} ROLES (Witness);
CREATE GRANT witness_s READ (id) ON S TO Witness;
CREATE GRANT witness_t READ (id) ON T TO Witness;
"""


@dataclass(slots=True)
class Kept:
    """By what it was told: True, it is there; False, it is gone; absent, the answer did not come."""

    changes: dict[int, str] = field(default_factory=dict)
    handles: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """The user of each besides."""
    tokens: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """By id; the text of each besides."""
    checked: Counter[str] = field(default_factory=Counter)

    async def check(self, control: Control) -> list[str]:
        """After a restart: what is not as it was acknowledged."""
        return [
            *await self._check_changes(control),
            *await self._check_handles(control),
            *await self._check_tokens(control),
        ]

    async def _check_changes(self, control: Control) -> list[str]:
        found: dict[int, list[str]] = {}
        while True:
            path = f"/v1/catalog/history?limit=1000&after={max(found, default=0)}"
            _, answer = await control.call(control.token(ADMINISTRATOR), "GET", path)
            if not answer["entries"]:
                break
            found |= {each["version"]: each["statements"] for each in answer["entries"]}
        wanted = {version: _print(text) for version, text in self.changes.items()}
        self.checked["changes"] += len(wanted)
        return [
            f"version {version} is {found.get(version)}, not {text}"
            for version, text in wanted.items()
            if found.get(version) != text
        ]

    async def _check_handles(self, control: Control) -> list[str]:
        problems = []
        for handle, (user, is_there) in self.handles.items():
            status, _ = await control.call(control.token(user), "GET", f"/v1/queries/{handle}")
            self.checked["handles"] += 1
            if status != (200 if is_there else 404):
                told = "registered" if is_there else "dropped"
                problems.append(f"the handle {handle} of {user}, {told}, is answered with {status}")
        return problems

    async def _check_tokens(self, control: Control) -> list[str]:
        problems = []
        for id_, (text, is_live) in self.tokens.items():
            status, _ = await control.call(text, "GET", "/v1/me")
            self.checked["tokens"] += 1
            if status != (200 if is_live else 401):
                problems.append(f"the token {id_}, live {is_live}, is answered with {status}")
        return problems


def _print(text: str) -> list[str]:
    return [print_statement(each) for each in parse_statements(SourceText("<change>", text))]


@dataclass(slots=True)
class Witness:
    """Reads the number of every tuple of a stream, so that it is known what of a push without an answer was taken."""

    stream: str
    handle: str = ""
    cursor: str | None = None
    seen: Counter[int] = field(default_factory=Counter)

    async def register(self, control: Control) -> None:
        self.handle = await control.register(WITNESS, f"SELECT id FROM {self.stream}")  # noqa: S608 — a constant

    async def read(self, control: Control) -> list[str]:
        """What is there; problems, if it is not numbers that come once."""
        behind = f"&cursor={quote(self.cursor)}" if self.cursor else ""
        path = f"/v1/queries/{self.handle}/results?wait=0.5{behind}"
        status, told = await control.call(control.token(WITNESS), "GET", path)
        if status == 503:
            return []
        if status != 200 or told["events"]:
            return [f"the witness of {self.stream} is told {status} {str(told)[:300]}"]
        before = self.seen.total()
        self.seen.update(row["id"] for row in told["rows"])
        self.cursor = told["cursor"]
        if self.seen.total() > before:
            await control.post(WITNESS, f"/v1/queries/{self.handle}/ack", {"cursor": self.cursor})
        return [f"{self.stream} {at} came {count} times" for at, count in self.seen.items() if count > 1]

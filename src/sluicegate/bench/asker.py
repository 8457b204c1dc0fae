"""`python -m sluicegate.bench.asker`: a caller in a process of its own, so that it takes no turns with the gateway it times.

Each line of its input is a request, {"method", "url", "path", "token", "body", "kind"}, whose body is JSON unless its kind
is another; each line of its output says what came of it: seconds from the first byte sent to the last one read, status (0
where there was no answer), the request's id at the gateway, the answer, and whether a proxy knew it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from time import perf_counter
from typing import IO, Any
from urllib.parse import urlsplit

from sluicegate.errors import SluicegateError

_TIMEOUT = 120.0
_JSON = "application/json"


class NotAnsweredError(SluicegateError):
    """The gateway did not answer as it should."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, and how long that took."""

    seconds: float
    status: int
    request: str
    content: Any
    cache: str = ""


class Asker:
    """This process's end of such a caller."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(
        self, url: str, method: str, path: str, token: str, body: object = None, kind: str = _JSON
    ) -> Answer:
        told = {"url": url, "method": method, "path": path, "token": token, "body": body, "kind": kind}
        _pipe(self._process.stdin).write(json.dumps(told) + "\n")
        _pipe(self._process.stdin).flush()
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise NotAnsweredError("the caller's process has ended")
        found = Answer(**json.loads(line))
        if not 200 <= found.status < 300:
            raise NotAnsweredError(f"{method} {path}: {found.status} {found.content}")
        return found


def _pipe(found: IO[str] | None) -> IO[str]:
    if found is None:
        raise NotAnsweredError("the caller's process has no pipes")
    return found


@contextmanager
def open_asker() -> Iterator[Asker]:
    """Such a process, until the end of the block."""
    command = [sys.executable, "-m", "sluicegate.bench.asker"]
    # this Python, and a module of ours
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield Asker(process)
        finally:
            _pipe(process.stdin).close()
            process.wait()


def main() -> int:
    """Over one connection to each gateway, as a client that stays would use."""
    connections: dict[str, HTTPConnection] = {}
    for line in sys.stdin:
        told = json.loads(line)
        url = urlsplit(told["url"])
        if told["url"] not in connections:
            connections[told["url"]] = HTTPConnection(url.hostname or "", url.port, timeout=_TIMEOUT)
        try:
            found = _ask(connections[told["url"]], told)
        except (OSError, HTTPException) as error:
            found = {"seconds": 0.0, "status": 0, "request": "", "content": str(error), "cache": ""}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
    for each in connections.values():
        each.close()
    return 0


def _ask(connection: HTTPConnection, told: Mapping[str, Any]) -> dict[str, object]:
    body = told["body"]
    if body is not None and told["kind"] == _JSON:
        body = json.dumps(body)
    headers = {"authorization": f"Bearer {told['token']}", "content-type": told["kind"]}
    start = perf_counter()
    connection.request(told["method"], told["path"], body, headers)
    answer = connection.getresponse()
    content = answer.read()
    seconds = perf_counter() - start
    return {
        "seconds": seconds,
        "status": answer.status,
        "request": answer.getheader("x-sluicegate-request") or answer.getheader("x-request-id", ""),
        "cache": answer.getheader("x-sluicegate-cache", ""),
        "content": json.loads(content) if content else None,
    }


if __name__ == "__main__":
    sys.exit(main())

"""Hosts that are apart: network namespaces joined by a bridge in one more, so that no address of the machine is touched.

They need root and `ip`; `why_not` says what is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

NEEDED = "as root, with iproute2: sudo -E pytest …"
_NET = "10.213.7"


@dataclass(frozen=True, slots=True)
class Host:
    """Where a process runs: this machine on loopback, or a namespace with an address of its own."""

    address: str = "127.0.0.1"
    name: str | None = None

    def within(self, command: Sequence[str]) -> list[str]:
        """The command, to be run there."""
        return [*([] if self.name is None else ["ip", "netns", "exec", self.name]), *command]

    def cut(self) -> None:
        """Nothing comes from there or gets there any more."""
        _ip("-n", self.name or "", "link", "set", "eth0", "down")

    def mend(self) -> None:
        _ip("-n", self.name or "", "link", "set", "eth0", "up")


def why_not() -> str | None:
    """Why there can be no hosts here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return NEEDED
    name = f"sg{os.getpid()}t"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
    except RuntimeError:
        return "namespaces cannot be made here (CAP_SYS_ADMIN)"
    return None


@contextmanager
def make_hosts(many: int) -> Iterator[list[Host]]:
    """So many hosts that reach each other; gone at the end."""
    mark = f"sg{os.getpid()}"
    hub = f"{mark}hub"
    hosts = [Host(f"{_NET}.{at + 1}", f"{mark}h{at}") for at in range(many)]
    try:
        _ip("netns", "add", hub)
        _ip("-n", hub, "link", "add", "br0", "type", "bridge")
        _ip("-n", hub, "link", "set", "br0", "up")
        for at, host in enumerate(hosts):
            _join(hub, host, f"port{at}")
        yield hosts
    finally:
        for name in (*(host.name or "" for host in hosts), hub):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)  # noqa: S603, S607


def _join(hub: str, host: Host, port: str) -> None:
    name = host.name or ""
    _ip("netns", "add", name)
    _ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", hub)
    _ip("-n", name, "addr", "add", f"{host.address}/24", "dev", "eth0")
    for each in ("lo", "eth0"):
        _ip("-n", name, "link", "set", each, "up")
    _ip("-n", hub, "link", "set", port, "master", "br0")
    _ip("-n", hub, "link", "set", port, "up")


def _ip(*args: str) -> None:
    done = subprocess.run(["ip", *args], capture_output=True, text=True, check=False)  # noqa: S603, S607
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(args)}: {done.stderr.strip()}")

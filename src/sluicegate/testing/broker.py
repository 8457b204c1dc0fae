"""A Kafka broker to throw away: one process that is broker and controller (KRaft), on loopback, in a folder of its own.

    python -m sluicegate.testing.broker FOLDER      runs one until Ctrl-C, and prints where it listens

Tests get it by `scripts/kafka.sh broker`; without it they skip, and say so.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from sluicegate.runtime.connectors import find_connectors
from sluicegate.runtime.java import find_java

GET_BROKER = "scripts/kafka.sh broker install"
_PATIENCE = 60.0
_CLUSTER = "c2x1aWNlZ2F0ZS10ZXN0cw"
"""A cluster's id is 16 bytes in base 64; which, does not matter here."""


def broker_folder() -> Path:
    """Where the broker's jars are."""
    return Path(sys.prefix, "share", "sluicegate", "broker")


def has_broker() -> bool:
    """Whether both the broker and Spark's connector are there."""
    return bool(find_connectors()) and (broker_folder() / ".stamp").is_file()


class Broker:
    """A broker whose data outlive `stop` and `kill`, until the folder is removed; `start` goes on with them.

    `settings` are lines of its server.properties beside ours, such as a second listener; a listener of theirs replaces ours.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.folder, self.host = folder, host
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self._controller = _free_port(host), _free_port(host)
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        """For `kafka.bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    def start(self) -> None:
        """Returns when it listens."""
        config = self.folder / "server.properties"
        config.write_text(
            "".join(f"{name}={value}\n" for name, value in self._properties().items()), encoding="utf-8"
        )
        if not (self.folder / "data" / "meta.properties").exists():
            self._run("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(config))
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 — our own words
                [*_java("-Xmx384m", "-XX:+UseSerialGC"), "kafka.Kafka", str(config)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._wait()

    def stop(self) -> None:
        """As an operator stops it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As a machine that fails."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """The data too."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _properties(self) -> dict[str, str]:
        listens = f"PLAINTEXT://{self.host}:{self.port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self.host}:{self._controller}",
            "listeners": f"{listens},CONTROLLER://{self.host}:{self._controller}",
            "advertised.listeners": listens,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            "num.partitions": "1",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self._settings,
        }

    def _run(self, tool: str, *args: str) -> str:
        done = subprocess.run(  # noqa: S603 — our own words
            [*_java("-Xmx128m", "-XX:TieredStopAtLevel=1"), tool, *args],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{tool} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def _wait(self) -> None:
        ends = time.monotonic() + _PATIENCE
        while time.monotonic() < ends:
            if self._process is None or self._process.poll() is not None:
                break
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex((self.host, self.port)) == 0:
                    return
            time.sleep(0.1)
        self.kill()
        raise RuntimeError(f"the broker does not start; {self.folder / 'log'} says why")

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _java(*options: str) -> list[str]:
    return [str(find_java() / "bin" / "java"), *options, "-cp", str(broker_folder() / "*")]


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def main(args: list[str]) -> int:
    """Run one in the foreground."""
    broker = Broker(Path(args[0]).absolute())
    broker.start()
    print(f"servers={broker.servers}", flush=True)
    try:
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        broker.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A Spark cluster to throw away: a standalone master and workers, each a process of its own, with one secret among them.

    python -m sluicegate.testing.cluster FOLDER [WORKERS]      runs one until Ctrl-C, and prints what `--master` needs

On loopback, or each of them on a host of its own (`testing.hosts`).
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from sluicegate.runtime.cluster import SECURED
from sluicegate.runtime.java import find_java
from sluicegate.testing.hosts import Host

_PATIENCE = 60.0
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_LISTENS = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
# else Spark looks for the folders of its own build
_BUILT = {"SPARK_SCALA_VERSION": "2.13"}
_SETTINGS = {
    **SECURED,
    # it takes jobs from anybody
    "spark.master.rest.enabled": "false",
    "spark.worker.timeout": "5",
}


class Cluster:
    """A master and its workers. `hosts` are where they run, the master's first; without, all run on loopback."""

    def __init__(
        self,
        folder: Path,
        workers: int = 2,
        cores: int = 1,
        memory: str = "1g",
        hosts: Sequence[Host] = (),
        apart: bool = False,
    ) -> None:
        """`apart`: they do not see what is mounted later, as other machines would not (needs root)."""
        self.folder, self._cores, self._memory = folder, cores, memory
        self._lead = ["unshare", "--mount", "--propagation", "private"] if apart else []
        self._hosts = list(hosts) or [Host()] * (workers + 1)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.secret = secrets.token_urlsafe(24)
        self.secrets = folder / "secrets"
        """The folder for `SLUICEGATE_SECRETS`."""
        self.secrets.mkdir(exist_ok=True, mode=0o700)
        _write_private(self.secrets / "cluster", self.secret + "\n")
        settings = {**_SETTINGS, "spark.authenticate.secret": self.secret}
        self._settings = folder / "cluster.conf"
        _write_private(self._settings, "".join(f"{name} {value}\n" for name, value in settings.items()))
        self.master = ""
        """The URL for `--master`, once it has started."""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Returns when all workers are known to the master."""
        host = self._hosts[0]
        args = ["--host", host.address, "--port", "0", "--webui-port", "0"]
        self._run("master", host, _MASTER, args, {"SPARK_NO_DAEMONIZE": "1"})
        self.master = self._wait("master", _LISTENS)
        for at in range(1, len(self._hosts)):
            self._start_worker(at)
        for at in range(1, len(self._hosts)):
            self._wait(f"worker{at}", re.compile(f"({_REGISTERED})"))

    def start_worker(self, at: int) -> None:
        """Also one that was killed; the first is 1."""
        self._start_worker(at)
        self._wait(f"worker{at}", re.compile(f"({_REGISTERED})"))

    def kill_worker(self, at: int) -> None:
        """With its executors, as a machine that fails."""
        self._end(f"worker{at}", signal.SIGKILL)

    def kill_master(self) -> None:
        self._end("master", signal.SIGKILL)

    def kill_executors(self, at: int) -> int:
        """The executors alone, as where memory runs out; how many there were."""
        found = list_children(self._processes[f"worker{at}"].pid)
        for each in found:
            os.kill(each, signal.SIGKILL)
        return len(found)

    def stop(self) -> None:
        for name in reversed(list(self._processes)):
            self._end(name, signal.SIGKILL)

    def work_folder(self, at: int) -> Path:
        """Where a worker keeps what its executors are given and what they say."""
        return self.folder / f"worker{at}"

    def _start_worker(self, at: int) -> None:
        host, work = self._hosts[at], self.work_folder(at)
        work.mkdir(exist_ok=True, mode=0o700)
        args = ["--host", host.address, "--port", "0", "--webui-port", "0", "--work-dir", str(work)]
        args += ["--cores", str(self._cores), "--memory", self._memory, self.master]
        own = {"SPARK_LOCAL_DIRS": str(work / "local"), "SPARK_LOCAL_IP": host.address}
        self._run(f"worker{at}", host, _WORKER, args, own)

    def _run(self, name: str, host: Host, main: str, args: Sequence[str], own: Mapping[str, str]) -> None:
        home = find_spark()
        java = find_java()
        command = [str(java / "bin" / "java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [*_OPENED, "-cp", str(home / "jars" / "*"), main, "--properties-file", str(self._settings)]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        log = self.folder / f"{name}.log"
        log.unlink(missing_ok=True)
        with log.open("ab") as out:
            self._processes[name] = subprocess.Popen(  # noqa: S603 — our own words
                host.within([*self._lead, *command, *args]),
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**kept, **_BUILT, "JAVA_HOME": str(java), "SPARK_HOME": str(home), **own},
                umask=0o077,
            )

    def _wait(self, name: str, words: re.Pattern[str]) -> str:
        ends = time.monotonic() + _PATIENCE
        log = self.folder / f"{name}.log"
        while time.monotonic() < ends:
            found = words.search(log.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found[1]
            if self._processes[name].poll() is not None:
                break
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"the {name} does not start; {log} says why")

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        for each in (*list_children(process.pid), process.pid):
            try:
                os.kill(each, how)
            except ProcessLookupError:
                continue
        process.wait(_PATIENCE)


# what Spark needs of Java's own modules; its launcher gives these to executors itself
_OPENED = [
    f"--add-opens=java.base/{each}=ALL-UNNAMED"
    for each in ("java.lang", "java.net", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
]


def find_spark() -> Path:
    """SPARK_HOME of the pyspark that this environment has."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("pyspark is not installed")
    return Path(spec.origin).parent


def list_children(process: int) -> list[int]:
    """The processes that one has started and that still run, and theirs."""
    tasks = Path(f"/proc/{process}/task")
    found: list[int] = []
    for task in tasks.iterdir() if tasks.exists() else ():
        try:
            found += [int(each) for each in (task / "children").read_text().split()]
        except OSError:
            continue
    return [each for child in found for each in (*list_children(child), child)]


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def main(args: list[str]) -> int:
    """Run one in the foreground."""
    cluster = Cluster(Path(args[0]).absolute(), int(args[1]) if len(args) > 1 else 2)
    # so that the processes that it starts end with it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        cluster.start()
        print(f"master={cluster.master}\nSLUICEGATE_SECRETS={cluster.secrets}", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        return 0
    finally:
        cluster.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

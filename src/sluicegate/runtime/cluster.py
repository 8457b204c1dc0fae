"""What a session needs when its tasks run in other processes or on other machines: settings, a secret, our package.

The secret that master, workers and driver share goes to the JVM by its environment: what is a setting of Spark's stands on
the command line, and is sent along with every task.
"""

from __future__ import annotations

import re
import secrets
import socket
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.runtime.table.databases import CLUSTER_SECRET, read_secret, reserve_secret

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
SECRET_VARIABLE = "_SPARK_AUTH_SECRET"  # noqa: S105 -- the name that Spark looks under
JAVA_OPTIONS = "-XX:-DontCompileHugeMethods -Xss16m"
"""What long generated methods and deep expressions need, wherever they run."""
_LOCAL = re.compile(r"local(?:\[(?:\*|[1-9][0-9]*)(?:,[1-9][0-9]*)?\])?")
_STANDALONE = re.compile(r"spark://[A-Za-z0-9.-]+:[0-9]{1,5}(?:,[A-Za-z0-9.-]+:[0-9]{1,5})*")
_KUBERNETES = re.compile(r"k8s://https?://[^\s,;]+")
_MEMORY = re.compile(r"[1-9][0-9]*[mg]")
_ALLOWED = ("spark.kubernetes.", "spark.yarn.", "spark.executor.instances", "spark.cores.max")
"""What an operator may add beside: where executors come from, and how many."""
SECURED: Mapping[str, str] = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.saslFallback": "false",
}
"""How all of a cluster talk to each other: a master and its workers need these too."""
_CLUSTER: Mapping[str, str] = {
    **SECURED,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    # executors say no more than the driver does: what Spark tells of a failure may carry values
    "spark.executor.syncLogLevel.enabled": "true",
    # a task is written once, and its files are put in place by the driver: what an executor that was given up does is no harm
    "spark.speculation": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
    # a path without a scheme is one of the shared file system, whatever a cluster's own settings say
    "spark.hadoop.fs.defaultFS": "file:///",
}


@dataclass(frozen=True, slots=True)
class Executors:
    """How executors are reached and what they are given; of no effect on a local master."""

    secret: str = CLUSTER_SECRET
    """The name of what `spark://` masters, workers and drivers share; YARN and Kubernetes have their own. No catalog can name
    it (`find_secret`)."""
    driver_host: str = ""
    """The address that executors find the driver at; else, of `spark://`, the one that leads to the master."""
    driver_port: int = 0
    """The first of two ports that executors come to; 0 for any."""
    memory: str = "1g"
    cores: int = 1
    python: str = ""
    """The interpreter, at one path on all machines; else the one that runs now."""
    extra: tuple[tuple[str, str], ...] = field(default=())

    def __post_init__(self) -> None:
        if not _MEMORY.fullmatch(self.memory) or self.cores < 1:
            raise refuse(
                "spark-setting", "the executors' memory is like `512m` or `4g`, their cores a number above 0"
            )
        if not 0 <= self.driver_port <= 65_534:
            raise refuse("spark-setting", "the driver's port is not between 0 and 65534")
        for name, _ in self.extra:
            if not name.startswith(_ALLOWED):
                help_ = "of Spark's own settings: " + ", ".join(f"`{each}`" for each in _ALLOWED)
                raise refuse("spark-setting", f"the setting `{name}` cannot be given", help_)


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's process; a master of a kind that is not known is refused."""
    if _LOCAL.fullmatch(master):
        return True
    if master == "yarn" or _STANDALONE.fullmatch(master) or _KUBERNETES.fullmatch(master):
        return False
    raise refuse(
        "spark-master",
        f"`{master}` is no master",
        "one of `local[N]`, `spark://HOST:PORT`, `yarn`, `k8s://URL`",
    )


def runs_locally(spark: SparkSession) -> bool:
    """Of a session that anybody made."""
    return (spark.sparkContext.master or "").startswith("local")


def cluster_settings(master: str, executors: Executors) -> dict[str, str]:
    """Spark's settings beside those of a local session."""
    host = find_host(master, executors)
    found = {
        **dict(executors.extra),
        **_CLUSTER,
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.executor.memory": executors.memory,
        "spark.executor.cores": str(executors.cores),
    }
    if executors.driver_port:
        found["spark.driver.port"] = str(executors.driver_port)
        found["spark.driver.blockManager.port"] = str(executors.driver_port + 1)
    if master.startswith("spark:"):
        # it must be set, and is not used: the environment's goes first
        found["spark.authenticate.secret"] = secrets.token_hex(32)
    return found


def cluster_variables(master: str, executors: Executors, environ: Mapping[str, str]) -> dict[str, str]:
    """Variables of the environment in which the driver's JVM starts."""
    python = executors.python or sys.executable
    found = {"SPARK_LOCAL_IP": find_host(master, executors), "PYSPARK_PYTHON": python}
    if master.startswith("spark:"):
        found[SECRET_VARIABLE] = _read_secret(executors.secret)
    if master == "yarn":
        found |= {name: environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if name in environ}
    return found


def find_host(master: str, executors: Executors) -> str:
    """The driver's address for its executors."""
    if executors.driver_host:
        return executors.driver_host
    if not master.startswith("spark:"):
        raise refuse(
            "spark-setting",
            f"`{master}` needs the address that executors find the driver at",
            "`driver_host`",
        )
    host, _, port = master.removeprefix("spark://").split(",")[0].rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # nothing is sent: the system only says from where it would be
            probe.connect((host, int(port)))
        except OSError as error:
            raise refuse("spark-start", f"the master's host `{host}` is not known here") from error
        return str(probe.getsockname()[0])


def _read_secret(name: str) -> str:
    reserve_secret(name)
    found = read_secret(name)
    if len(found) < 16:
        raise refuse("spark-setting", f"the cluster's secret `{name}` has fewer than 16 characters")
    return found


def ship_package(spark: SparkSession, folder: Path) -> None:
    """Executors run our code as it is here, whatever they have installed."""
    packed = folder / "sluicegate.zip"
    pack_package(packed)
    before = list(sys.path)
    context: Any = spark.sparkContext
    context.addPyFile(str(packed))
    # the driver has the package already
    sys.path[:] = before


def pack_package(path: Path) -> None:
    """The package's modules in one file."""
    root = Path(__file__).parents[1]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for each in sorted(root.rglob("*.py")):
            packed.write(each, Path(root.name) / each.relative_to(root))


def refuse(code: str, message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, help=help_)])

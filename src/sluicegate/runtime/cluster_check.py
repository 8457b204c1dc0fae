"""Whether the executors of a cluster see the files that they and the driver must share, asked by a small job.

What holds the rows is private to one account (0700, 0600): executors must run under it, and the path must be the same.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sluicegate.errors import DiagnosticError
from sluicegate.policy.model import Stream
from sluicegate.runtime.cluster import refuse, runs_locally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGER = logging.getLogger(__name__)
PATIENCE = 60.0
"""Seconds for the first executor to come, and again for their answers."""
_LINGER, _SETTLE = 0.2, 0.5
_BY_FILE = frozenset({"replay", "text", "json", "csv", "parquet", "orc", "avro"})
"""Formats whose files tasks open."""
_HELP = "one path on all machines (NFS or the like), and the driver's account for executors"


def check_shared(spark: SparkSession, folder: Path) -> None:
    """Refuse a folder that executors do not share with the driver; on a local master there is nothing to ask."""
    if runs_locally(spark):
        return
    # others that were started with the first come too
    _wait_for_executors(spark.sparkContext, PATIENCE)
    time.sleep(_SETTLE)
    place = folder.absolute() / f".probe-{secrets.token_hex(8)}"
    place.mkdir(mode=0o700, parents=True)
    try:
        token = secrets.token_hex(16)
        _write(place / "driver", token)
        told = ask_executors(spark, lambda at: _try_folder(str(place), token, at))
        wrong = sorted({host for _, host, fine in told if not fine})
        wrong += [host for at, host, _ in told if not _take_over(place / f"executor-{at}", token)]
        if wrong:
            message = (
                f"the folder `{folder}` is not the one that executors on `{wrong[0]}` have under this path"
            )
            raise refuse("cluster-path", message, _HELP)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check_feed(spark: SparkSession, stream: Stream) -> None:
    """Refuse files that tasks would not find where the driver finds them."""
    path = dict(stream.options).get("path", "")
    if runs_locally(spark) or stream.format not in _BY_FILE or urlsplit(path).scheme not in ("", "file"):
        return
    given = Path(urlsplit(path).path).absolute()
    while any(sign in str(given) for sign in "*?[{"):
        given = given.parent
    wanted = _describe(given)
    told = ask_executors(spark, lambda _: _describe(given) == wanted)
    wrong = sorted({host for _, host, fine in told if not fine})
    if wrong:
        # whoever may query the stream is told: the machines' names are the operator's
        _LOGGER.warning("the files of %s are not there for executors on %s", stream.name, ", ".join(wrong))
        message = f"the files of `{stream.name}` are not there for all executors"
        raise refuse("cluster-path", message, "one path on all machines, or a feed over the network")


def ask_executors(spark: SparkSession, ask: Callable[[int], bool]) -> list[tuple[int, str, bool]]:
    """What `ask` says in every slot of the executors: its number, the host, the answer. Where there are none nobody waits."""
    context: Any = spark.sparkContext
    _wait_for_executors(context, 0)
    slots = max(int(context.defaultParallelism), 1)

    def answer(at: int, _: Iterable[int]) -> Iterator[tuple[int, str, bool]]:
        fine = ask(at)
        # long enough for every slot to get one
        time.sleep(_LINGER)
        yield at, os.uname().nodename, fine

    try:
        with _hurried(context):
            found = context.parallelize(range(slots), slots).mapPartitionsWithIndex(answer).collect()
    except DiagnosticError:
        raise
    except Exception as error:
        _LOGGER.debug("executors do not answer", exc_info=error)
        help_ = "Python with pyarrow at the path that `executor_python` names, the same version as here"
        raise refuse("cluster-start", "executors do not run Python as this process does", help_) from None
    return [(int(at), str(host), bool(fine)) for at, host, fine in found]


def _wait_for_executors(context: Any, patience: float) -> None:
    until = time.monotonic() + patience
    tracker = context._jsc.sc().statusTracker()
    # the driver is listed among them
    while len(tracker.getExecutorInfos()) < 2:
        if time.monotonic() >= until:
            message = (
                f"no executor came within {patience:g} seconds" if patience else "there is no executor now"
            )
            raise refuse(
                "cluster-start",
                message,
                "free cores and memory of the workers, and their way to `driver_host`",
            )
        time.sleep(0.1)


@contextmanager
def _hurried(context: Any) -> Iterator[None]:
    group = f"sluicegate-{secrets.token_hex(4)}"
    context.setJobGroup(group, "check", interruptOnCancel=True)
    timer = threading.Timer(PATIENCE, context.cancelJobGroup, [group])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        context.setLocalProperty("spark.jobGroup.id", None)


def _try_folder(place: str, token: str, at: int) -> bool:
    """On an executor: read what the driver wrote, and write what it is to read."""
    try:
        if Path(place, "driver").read_text(encoding="ascii") != token:
            return False
        _write(Path(place, f"executor-{at}"), f"{token}-{at}")
    except (OSError, UnicodeDecodeError):
        return False
    return True


def _take_over(path: Path, token: str) -> bool:
    """As the driver does with the files of a batch: make them private, read them, move them."""
    try:
        path.chmod(0o600)
        found = path.read_text(encoding="ascii")
        path.rename(path.with_suffix(".moved"))
    except (OSError, UnicodeDecodeError):
        return False
    return found == f"{token}-{path.name.removeprefix('executor-')}"


def _describe(path: Path) -> tuple[bool, int]:
    """A file's size, a folder's being one; -1 where there is nothing that can be read."""
    try:
        if path.is_dir():
            return True, 0 if os.access(path, os.R_OK | os.X_OK) else -1
        with path.open("rb") as file:
            return False, os.fstat(file.fileno()).st_size
    except OSError:
        return False, -1


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)

"""The Spark session that settings ask for: within this process, or on a cluster."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING

from sluicegate.cli.inputs import UsageError

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session
    from sluicegate.service.settings import Settings

MASTER_HELP = "run tasks on a cluster: spark://HOST:PORT, yarn or k8s://URL; else in this process"


def add_master(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", metavar="URL", help=MASTER_HELP)


def read_master(master: str | None) -> Settings:
    """Settings for a command that takes no file of them: the environment's, and the master that was given."""
    from sluicegate.service.settings import read_settings

    return read_settings(None, None, {"master": master})


def open_session(settings: Settings, stack: ExitStack) -> Session:
    """Stopped by the stack."""
    from sluicegate.runtime.cluster import Executors
    from sluicegate.runtime.session import make_session

    spark = make_session(
        master=settings.master or f"local[{settings.cores}]",
        shuffle_partitions=settings.shuffle_partitions,
        log_level="OFF",
        executors=Executors(
            secret=settings.master_secret,
            driver_host=settings.driver_host,
            driver_port=settings.driver_port,
            memory=settings.executor_memory,
            cores=settings.executor_cores,
            python=settings.executor_python,
            extra=tuple(map(_split, settings.spark_options)),
        ),
    )
    stack.callback(spark.stop)
    return spark


def _split(option: str) -> tuple[str, str]:
    name, equals, value = option.partition("=")
    if not equals:
        raise UsageError("`spark_options` are like `spark.executor.instances=4`")
    return name.strip(), value.strip()

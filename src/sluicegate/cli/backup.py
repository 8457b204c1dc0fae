"""`sluicegate backup`: a store as lines of JSON."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError
from sluicegate.cli.stores import add_store, open_given

NAME = "backup"
SUMMARY = "write everything in the store into a file, while it is in use"
EXAMPLE = """\
  sluicegate backup sluicegate.jsonl --store sqlite:///sluicegate.db"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to; it is replaced when the new one is whole")
    add_store(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    path = find_file(args.file)
    with open_given(args) as store:
        counts = store.backup(path)
    console.write(f"{path}: {counts.changes} changes, {counts.events} events")
    return 0


def find_file(given: str) -> Path:
    if not given or "\0" in given:
        raise UsageError(f"`{given}` is not a file")
    return Path(given)

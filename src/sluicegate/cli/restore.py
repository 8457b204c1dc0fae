"""`sluicegate restore`: a backup into an empty store, of whatever kind."""

from __future__ import annotations

import argparse

from sluicegate.cli.backup import find_file
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError
from sluicegate.cli.stores import add_store, open_given

NAME = "restore"
SUMMARY = "read a backup into an empty store, whole and as it was written, or not at all"
EXAMPLE = """\
  sluicegate restore sluicegate.jsonl --store postgresql://sluicegate@db/sluicegate"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what `sluicegate backup` wrote")
    add_store(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    path = find_file(args.file)
    if not path.is_file():
        raise UsageError(f"there is no file `{args.file}`")
    with open_given(args, create=True) as store:
        counts = store.restore(path)
    console.write(f"restored: {counts.changes} changes, {counts.events} events")
    return 0

"""`sluicegate export`: the store's catalog as a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError
from sluicegate.cli.stores import add_store, open_given

NAME = "export"
SUMMARY = "write the store's catalog as a folder of `*.sql` files that reads back as it is"
EXAMPLE = """\
  sluicegate export catalog --store sqlite:///sluicegate.db
  sluicegate export before --version 3"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="where to; made if it is not there")
    add_store(parser)
    parser.add_argument("--version", metavar="N", type=int, help="that of a version, not the newest")
    parser.add_argument(
        "--xml", action="store_true", help="roles and grants as an authorization catalog in XML"
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace the `*.sql` files and catalogs in the folder"
    )


def run(args: argparse.Namespace, console: Console) -> int:
    if not args.folder or "\0" in args.folder:
        raise UsageError(f"`{args.folder}` is not a folder to write to")
    with open_given(args) as store:
        written = store.export(Path(args.folder), args.version, replace=args.replace, xml=args.xml)
    console.write("\n".join(map(str, written)))
    return 0

"""`sluicegate revoke`: end a grant at a gateway that runs; nothing that it allowed follows."""

from __future__ import annotations

import argparse

from sluicegate.cli.changes import add_change, change_catalog
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import recover
from sluicegate.language.print_literals import quote_name
from sluicegate.source import SourceText

NAME = "revoke"
SUMMARY = "drop grants at a gateway; when the command returns, nobody is handed anything by them"
EXAMPLE = """\
  sluicegate revoke own_platoon --reason "the exercise is over"
  sluicegate revoke own_platoon near_target --dry-run"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="GRANT", nargs="+", type=recover, help="a grant's name")
    told = "also drop the grants that were passed on by means of these"
    parser.add_argument("--cascade", action="store_true", help=told)
    add_change(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    also = " CASCADE" if args.cascade else ""
    text = "\n".join(f"DROP GRANT {quote_name(name)}{also};" for name in args.names)
    return change_catalog(args, console, SourceText("<revoke>", text))

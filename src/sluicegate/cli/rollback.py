"""`sluicegate rollback`: a new version that is as an old one was."""

from __future__ import annotations

import argparse

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import add_json
from sluicegate.cli.stores import add_reason, add_store, check_wait, find_actor, open_given, tell_change

NAME = "rollback"
SUMMARY = "make the store's catalog what it was at a version, as a new version"
EXAMPLE = """\
  sluicegate rollback 3 --store sqlite:///sluicegate.db --reason 'the grant was too wide'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("version", metavar="VERSION", type=int, help="the version to go back to")
    add_store(parser)
    add_reason(parser)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    check_wait(args.wait)
    with open_given(args) as store:
        entry = store.rollback(args.version, None, args.reason, actor=find_actor())
        return tell_change(args, console, store, entry)

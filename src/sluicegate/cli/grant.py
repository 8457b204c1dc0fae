"""`sluicegate grant`: let somebody see something, at a gateway that runs."""

from __future__ import annotations

import argparse

from sluicegate.cli.changes import add_change, change_catalog
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, recover
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.print_literals import quote_name
from sluicegate.language.statements import CreateGrant
from sluicegate.source import SourceText

NAME = "grant"
SUMMARY = "make a grant at a gateway; it is in force when the command returns"
EXAMPLE = """\
  sluicegate grant map "READ (SID, Pos) ON Position TO Observer" --reason "joint exercise"
  sluicegate grant map "READ (SID) ON Position TO Observer" --replace"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=recover, help="the grant's name")
    told = "what follows the name in CREATE GRANT: the right, ON, TO and any other clause"
    parser.add_argument("grant", metavar="GRANT", type=recover, help=told)
    parser.add_argument("--replace", action="store_true", help="in place of the grant of this name")
    add_change(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    replace = "OR REPLACE " if args.replace else ""
    given = args.grant.strip().rstrip(";")
    statement = SourceText("<grant>", f"CREATE {replace}GRANT {quote_name(args.name)} {given};")
    parsed = parse_statements(statement)
    if len(parsed) != 1 or not isinstance(parsed[0], CreateGrant):
        raise UsageError("`grant` makes one grant; `apply` and POST /v1/catalog take other statements")
    return change_catalog(args, console, statement)

"""`sluicegate punctuate`: send a policy into a stream, at a gateway that runs."""

from __future__ import annotations

import argparse

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import add_json, recover
from sluicegate.cli.remote import add_gateway, open_gateway
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.statements import InsertSP
from sluicegate.source import SourceText

NAME = "punctuate"
SUMMARY = "send INSERT SP statements into a stream as one policy"
EXAMPLE = """\
  sluicegate punctuate HeartRate \\
    "INSERT SP INTO STREAM HeartRate LET DDP = TUPLES:[120, 133], SRP = frbac:Doctor, SIGN = POSITIVE;\""""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "stream", metavar="STREAM", type=recover, help="a punctuated stream; for a query's switches any"
    )
    told = "one or more INSERT SP statements: together they are the policy"
    parser.add_argument("statements", metavar="STATEMENTS", type=recover, help=told)
    add_gateway(parser)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    sent = SourceText("<punctuations>", args.statements)
    with open_gateway(args, sent) as client:
        made = client.punctuate(args.stream, args.statements)
    if args.json:
        console.write_json(made)
    elif any(isinstance(each, InsertSP) and each.query is not None for each in parse_statements(sent)):
        console.write(f"switches of {made['count']} punctuations turned at {made['ts']}")
    else:
        console.write(f"tuples under this policy name `_sp_ts` {made['ts']} and `_sp_count` {made['count']}")
    return 0

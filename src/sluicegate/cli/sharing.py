"""`sluicegate sharing`: what an owner sees of a stream: who reads it, and what its punctuations keep from everybody."""

from __future__ import annotations

import argparse
from typing import Any

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import add_json, recover
from sluicegate.cli.remote import add_gateway, open_gateway
from sluicegate.cli.tables import draw_table

NAME = "sharing"
_UNTOLD = "(names other streams too)"
SUMMARY = "tell a stream's owner who reads it, and what is denied to everybody, by reason"
EXAMPLE = """\
  sluicegate sharing HeartRate
  sluicegate sharing HeartRate --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", metavar="STREAM", type=recover, help="a stream of your own")
    add_gateway(parser)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    with open_gateway(args) as client:
        found = client.sharing(args.stream)
    if args.json:
        console.write_json(found)
    else:
        console.write(_tell(console, found))
    return 0


def _tell(console: Console, found: dict[str, Any]) -> str:
    parts = [f"`{found['stream']}` is {'paused' if found['paused'] else 'shared'}"]
    readers = [
        [str(each["user"]), str(each["rows_delivered"]), str(each["query"] or _UNTOLD)]
        for each in found["readers"]
    ]
    parts.append(draw_table(console, ["reader", "rows", "query"], readers) if readers else "nobody reads it")
    denied = [[reason, str(count)] for reason, count in sorted(found.get("denied", {}).items())]
    if denied:
        parts.append(draw_table(console, ["denied to everybody", "elements"], denied))
    return "\n\n".join(parts)

"""`sluicegate translate`: the authorized query as text for another engine."""

from __future__ import annotations

import argparse

from sluicegate.api import TARGETS
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import (
    UsageError,
    add_manner,
    add_moment,
    add_request,
    open_gate,
    read_moment,
    read_query_text,
)

NAME = "translate"
SUMMARY = "write the authorized query for another engine"
EXAMPLE = """\
  sluicegate translate examples/soldiers --as paul "SELECT SID FROM Health" --to duckdb"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_request(parser)
    add_manner(parser)
    add_moment(parser)
    known = ", ".join(sorted(TARGETS))
    parser.add_argument("--to", dest="target", metavar="TARGET", required=True, help=f"one of: {known}")


def run(args: argparse.Namespace, console: Console) -> int:
    if args.target not in TARGETS:
        known = ", ".join(sorted(TARGETS))
        raise UsageError(f"unknown target `{args.target}`; known targets: {known}")
    query = read_query_text(args.query)
    allowed = open_gate(args.catalog).authorize(
        args.user, query, merge=args.merge, on_partial=args.on_partial, at=read_moment(args.at)
    )
    text = allowed.translate(args.target)
    for notice in allowed.notices:
        console.complain(f"{notice.code}: {notice.message}")
    console.write_exact(text)
    return 0

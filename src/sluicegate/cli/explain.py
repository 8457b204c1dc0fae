"""`sluicegate explain`: the decision on a query, and why; the graphs before and after."""

from __future__ import annotations

import argparse

from sluicegate.cli.console import Console
from sluicegate.cli.explain_text import tell
from sluicegate.cli.inputs import UsageError, add_json, add_request, open_gate, read_query_text
from sluicegate.rewrite.explain_json import explanation_json
from sluicegate.rewrite.graphs import DEFAULT_LIMIT
from sluicegate.rewrite.notices import Decision

NAME = "explain"
SUMMARY = "tell what a user may have of a query, and why"
EXAMPLE = """\
  sluicegate explain examples/soldiers --as paul "SELECT SID FROM Health WHERE BPressure > 160"
  sluicegate explain examples/wearables --as bob examples/wearables/cq1.query --json"""

SHOWN_GRAPHS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_request(parser)
    add_json(parser)
    told = f"how many authorized graphs to list ({SHOWN_GRAPHS}, as JSON {DEFAULT_LIMIT})"
    parser.add_argument("--graphs", type=int, metavar="N", help=told)


def run(args: argparse.Namespace, console: Console) -> int:
    """1 when the query is denied."""
    if args.graphs is not None and args.graphs < 0:
        raise UsageError("--graphs takes a number from 0")
    limit = (DEFAULT_LIMIT if args.json else SHOWN_GRAPHS) if args.graphs is None else args.graphs
    query = read_query_text(args.query)
    found = open_gate(args.catalog).explain(args.user, query, limit)
    if args.json:
        console.write_json(explanation_json(found))
    else:
        console.write(tell(console, found, query.text))
    return 1 if found.decision is Decision.DENY else 0

"""`sluicegate explain`: the decision on a query, and why; the graphs before and after."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.api import Gate
from sluicegate.cli.console import Console
from sluicegate.cli.explain_text import tell
from sluicegate.cli.inputs import (
    UsageError,
    add_json,
    add_manner,
    add_moment,
    add_request,
    open_gate,
    read_moment,
    read_query_text,
)
from sluicegate.cli.run import check_streams, read_inputs
from sluicegate.graph.operators import Shield, walk
from sluicegate.rewrite.explain import Explanation
from sluicegate.rewrite.explain_json import explanation_json, released_plan
from sluicegate.rewrite.graphs import DEFAULT_LIMIT
from sluicegate.rewrite.notices import Decision

if TYPE_CHECKING:
    from sluicegate.runtime.shield.hidden import HiddenTuples

NAME = "explain"
SUMMARY = "tell what a user may have of a query, and why"
EXAMPLE = """\
  sluicegate explain examples/soldiers --as paul "SELECT SID FROM Health WHERE BPressure > 160"
  sluicegate explain examples/wearables --as bob examples/wearables/cq1.query --json"""

SHOWN_GRAPHS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_request(parser)
    add_manner(parser)
    add_moment(parser)
    add_json(parser)
    told = f"how many authorized graphs to list ({SHOWN_GRAPHS}, as JSON {DEFAULT_LIMIT})"
    parser.add_argument("--graphs", type=int, metavar="N", help=told)
    policies = "tell which punctuations in a `.jsonl` or `.parquet` file hide what from the user: for the stream's owner"
    parser.add_argument(
        "--input", dest="inputs", metavar="STREAM=FILE", action="append", default=[], help=policies
    )


def run(args: argparse.Namespace, console: Console) -> int:
    """1 when the query is denied."""
    if args.graphs is not None and args.graphs < 0:
        raise UsageError("--graphs takes a number from 0")
    limit = (DEFAULT_LIMIT if args.json else SHOWN_GRAPHS) if args.graphs is None else args.graphs
    query = read_query_text(args.query)
    paths = read_inputs(args.inputs)
    gate = open_gate(args.catalog)
    check_streams(gate, paths)
    found = gate.explain(
        args.user, query, limit, merge=args.merge, on_partial=args.on_partial, at=read_moment(args.at)
    )
    hidden = _count_hidden(gate, found, paths) if paths else []
    if args.json:
        more = {"policies": [each.to_json() for each in hidden]} if paths else {}
        console.write_json(explanation_json(found, policies=bool(found.decided)) | more)
    else:
        console.write("\n\n".join([tell(console, found, query.text), *map(_tell_hidden, hidden)]))
    return 1 if found.decision is Decision.DENY else 0


def _count_hidden(gate: Gate, found: Explanation, paths: Mapping[str, Path]) -> list[HiddenTuples]:
    if find_spec("pyarrow") is None:
        raise UsageError("`explain --input` needs the package pyarrow: pip install 'sluicegate[spark]'")
    from sluicegate.runtime.inputs import load_input
    from sluicegate.runtime.shield.hidden import count_hidden

    plan = released_plan(found)
    shields = [] if plan is None else [node for node in walk(plan.root) if isinstance(node, Shield)]
    return [
        count_hidden(
            gate.catalog, found.user, each, load_input(gate.catalog.streams[name], paths[name]).table
        )
        for each in shields
        if (name := each.input.stream) in paths
    ]


def _tell_hidden(found: HiddenTuples) -> str:
    lines = [f"The policies in the input of `{found.stream}`"]
    lines += [f"  {found.shown:>6}  shown to the user"]
    lines += [f"  {n:>6}  shown to nobody: {why}" for why, n in found.denied]
    lines += [f"  {n:>6}  hidden ({why}) by {by}" for why, by, n in found.hidden]
    lines += [f"  {n:>6}  without `{name}`, hidden ({why}) by {by}" for name, why, by, n in found.left_out]
    return "\n".join(lines)

"""`sluicegate run`: an authorized query on Spark, over files that are replayed in order, or over the live sources."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.api import Authorized, Gate, check_given_streams
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import (
    UsageError,
    add_json,
    add_manner,
    add_moment,
    add_request,
    open_gate,
    read_moment,
    read_query_text,
    recover,
)
from sluicegate.cli.run_live import follow_live
from sluicegate.cli.sessions import add_master
from sluicegate.cli.sinks import add_sink, find_sink
from sluicegate.cli.tables import draw_rows
from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Value
from sluicegate.graph.operators import sources
from sluicegate.graph.present import present_rows
from sluicegate.language.scope import suggest
from sluicegate.language.xml.messages import print_message

if TYPE_CHECKING:
    from sluicegate.runtime.inputs import Loaded

NAME = "run"
SUMMARY = "run a query on Spark as a user may have it"
EXAMPLE = """\
  sluicegate run examples/soldiers --as paul "SELECT SID FROM Health WHERE BPressure > 160" \\
    --input Health=examples/soldiers/health.jsonl --json"""

FAULT = 3
_NEEDED = ("pyspark", "pyarrow")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_request(parser)
    add_manner(parser)
    add_moment(parser)
    told = "replay a `.jsonl` or `.parquet` file as the stream; at its end every open window is released"
    parser.add_argument(
        "--input", dest="inputs", metavar="STREAM=FILE", action="append", default=[], help=told
    )
    kept = "without files: keep what is read and delivered in this folder, and go on there in a later run"
    parser.add_argument("--state", metavar="DIR", type=Path, help=kept)
    add_sink(parser)
    add_master(parser)
    add_json(parser)
    parser.add_argument(
        "--xml", action="store_true", help="answer with messages in XML, one a line; for files"
    )


def run(args: argparse.Namespace, console: Console) -> int:
    """Over files nothing is written before all of the answer is there; live sources are followed."""
    paths = read_inputs(args.inputs)
    gate = open_gate(args.catalog)
    query = read_query_text(args.query)
    allowed = gate.authorize(
        args.user, query, merge=args.merge, on_partial=args.on_partial, at=read_moment(args.at)
    )
    if args.xml and (args.json or not paths):
        raise UsageError("--xml is for files, and not together with --json")
    if paths and (args.state or args.into or args.master) is not None:
        raise UsageError("--state, --into and --master are for live sources, not for files")
    if paths:
        check_streams(gate, paths)
        allowed.check_start()
    for notice in allowed.notices:
        console.complain(f"{notice.code}: {notice.message}")
    if allowed.plan is None:
        return _show(console, allowed, [], args)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"`run` needs the package {missing[0]}: pip install 'sluicegate[spark]'")
    if not paths and args.at is not None:
        raise UsageError("--at is for files, not for live sources")
    if not paths:
        into = find_sink(args, gate, allowed.user)
        text = query if isinstance(query, str) else query.text
        return follow_live(gate, allowed, text, args.state, console, args.json, into, args.master)
    rows = _run_over(gate, allowed, _load(gate, allowed, paths, console))
    if rows is None:
        # what Spark says may hold values that the user must not see (I2)
        told = Diagnostic("spark-failed", "Spark could not run the query; nothing was let through")
        console.complain(told.render())
        return FAULT
    return _show(console, allowed, rows, args)


def read_inputs(given: Sequence[str]) -> dict[str, Path]:
    """`STREAM=FILE`, each stream once."""
    paths: dict[str, Path] = {}
    for each in given:
        stream, equals, file = each.partition("=")
        stream = recover(stream)
        if not equals or not stream or not file or "\0" in file:
            raise UsageError(f"--input takes STREAM=FILE, not `{each}`")
        if stream in paths:
            raise UsageError(f"--input is given twice for `{stream}`")
        paths[stream] = Path(file)
    return paths


def check_streams(gate: Gate, paths: Mapping[str, Path]) -> None:
    """Refuse files for what the catalog does not have, and for named results."""
    known = gate.catalog.streams
    problems = [
        Diagnostic("input-stream", f"the catalog has no stream `{name}`", help=suggest(name, known))
        for name in paths
        if name not in known
    ]
    if problems:
        raise DiagnosticError(problems)
    check_given_streams(gate.catalog, paths)


def _load(gate: Gate, allowed: Authorized, paths: Mapping[str, Path], console: Console) -> dict[str, Loaded]:
    """The files, and the tables of databases that no file is given for, as they are now."""
    from sluicegate.runtime.inputs import load_input
    from sluicegate.runtime.table.load import load_databases

    loaded = {name: load_input(gate.catalog.streams[name], path) for name, path in paths.items()}
    read = set() if allowed.plan is None else {each.stream for each in sources(allowed.plan.root)}
    loaded |= load_databases(gate.catalog.streams, read - set(paths))
    for name, found in loaded.items():
        if found.dead:
            rows = "row" if len(found.dead) == 1 else "rows"
            console.complain(f"input `{name}`: {len(found.dead)} malformed {rows} left out")
    return loaded


def _run_over(gate: Gate, allowed: Authorized, loaded: Mapping[str, Loaded]) -> list[dict[str, Value]] | None:
    """None where Spark failed."""
    from sluicegate.runtime.batch import run_files

    tables = {name: each.table for name, each in loaded.items()}
    try:
        return run_files(allowed.plan, tables, allowed.environment, gate.catalog)
    except DiagnosticError:
        raise
    except Exception:  # noqa: BLE001 — py4j's and Spark's, whose texts show rows and plans
        return None


def _show(
    console: Console, allowed: Authorized, rows: list[dict[str, Value]], args: argparse.Namespace
) -> int:
    shown = present_rows(allowed.plan, rows)
    if not args.json and not args.xml:
        console.write(draw_rows(console, shown))
    for row in shown if args.json or args.xml else ():
        console.write_exact(print_message(row) if args.xml else json.dumps(row))
    return 0

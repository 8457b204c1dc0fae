"""`sluicegate query`: let a query run at a gateway, or see to those that run."""

from __future__ import annotations

import argparse
from typing import Any

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_json, read_query_text, recover
from sluicegate.cli.remote import add_gateway, open_gateway
from sluicegate.cli.tables import draw_table

NAME = "query"
SUMMARY = "let a query run at a gateway, or list, pause, resume or drop those that run"
EXAMPLE = """\
  sluicegate query "SELECT SID, Pos FROM Position"
  sluicegate query --list
  sluicegate query --drop HANDLE"""
_COLOURS = {"permit": "green", "partial": "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("query", metavar="QUERY", nargs="?", help="a file, or text if it contains a space")
    what.add_argument(
        "--list", action="store_true", help="your queries; an administrator's list has everybody's"
    )
    steering = {
        "pause": "find nothing more until it is resumed",
        "resume": "go on from now",
        "drop": "end a query",
    }
    for name, told in steering.items():
        what.add_argument(f"--{name}", metavar="HANDLE", type=recover, help=told)
    parser.add_argument("--explain", action="store_true", help="only tell the decision; nothing is run")
    add_gateway(parser)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.explain and args.query is None:
        raise UsageError("--explain needs a query")
    if args.query is None:
        return _list(args, console) if args.list else _steer(args, console)
    text = read_query_text(args.query)
    with open_gateway(args, text) as client:
        found = client.explain(text.text) if args.explain else client.query(text.text).answer
    if args.json:
        console.write_json(found)
    else:
        _tell(console, found)
    return 1 if found.get("decision") == "deny" else 0


def _tell(console: Console, found: dict[str, Any]) -> None:
    decision = str(found.get("decision", "unknown"))
    lines = [console.style(decision, _COLOURS.get(decision, "red"), "bold")]
    notices = found.get("notices")
    lines += [f"  {_write_notice(each)}" for each in notices] if isinstance(notices, list) else []
    if "handle" in found:
        lines.append(f"handle {found['handle']}")
        lines.append(console.style(f"sluicegate tail {found['handle']}", "dim"))
    console.write("\n".join(lines))


def _write_notice(notice: object) -> str:
    if isinstance(notice, dict):
        return f"{notice.get('code', '')} {notice.get('message', '')}".strip()
    return str(notice)


def _list(args: argparse.Namespace, console: Console) -> int:
    with open_gateway(args) as client:
        found = client.queries()
    if args.json:
        console.write_json(found)
    elif not found:
        console.write("no queries")
    else:
        rows = [
            [_cell(each, name) for name in ("handle", "user", "decision", "rows_delivered", "query")]
            for each in found
        ]
        console.write(draw_table(console, ["handle", "user", "decision", "rows", "query"], rows))
    return 0


def _cell(found: dict[str, Any], name: str) -> str:
    if name == "decision" and found.get("paused"):
        return "paused"
    return " ".join(str(found.get(name, "")).split())


def _steer(args: argparse.Namespace, console: Console) -> int:
    name = args.pause or args.resume or args.drop
    with open_gateway(args) as client:
        handle = client.handle(name)
        act = handle.pause if args.pause else handle.resume if args.resume else handle.drop
        act()
    done = "paused" if args.pause else "resumed" if args.resume else "dropped"
    if args.json:
        console.write_json({"handle": name, "done": done})
    else:
        console.write(f"{done} {name}")
    return 0

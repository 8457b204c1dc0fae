"""What `grant` and `revoke` share: a change of a gateway's catalog, and what it did."""

from __future__ import annotations

import argparse

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import add_json, recover
from sluicegate.cli.remote import add_gateway, open_gateway
from sluicegate.source import SourceText


def add_change(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", metavar="TEXT", type=recover, default="", help="why, for the history")
    parser.add_argument("--dry-run", action="store_true", help="only tell what it would do")
    add_gateway(parser)
    add_json(parser)


def change_catalog(args: argparse.Namespace, console: Console, statements: SourceText) -> int:
    """When this returns the change is in force wherever rows are handed over (R10)."""
    with open_gateway(args, statements) as client:
        found = client.change(statements.text, args.reason, args.dry_run)
    if args.json:
        console.write_json(found)
        return 0
    would = "would be " if found.get("dry_run") else ""
    lines = [f"{would}version {found.get('version')}"]
    # only administrators are told of other people's queries
    for name, told in (("withdrawn", "withdrawn"), ("changed", "changed")):
        if found.get(name):
            lines.append(f"queries {would}{told}: {found[name]}")
    console.write("\n".join(lines))
    return 0

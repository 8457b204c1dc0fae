"""`sluicegate plan`: how a catalog's folder differs from the store."""

from __future__ import annotations

import argparse

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import add_catalog, add_json, find_catalog
from sluicegate.cli.stores import add_store, open_given
from sluicegate.service.store import plan

NAME = "plan"
SUMMARY = "show the statements that would make the store's catalog that of a folder; change nothing"
EXAMPLE = """\
  sluicegate plan examples/soldiers --store sqlite:///sluicegate.db
  sluicegate plan examples/soldiers --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    add_store(parser)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    folder = find_catalog(args.catalog)
    with open_given(args) as store:
        made = plan(folder, store)
    if args.json:
        console.write_json({"version": made.version, "statements": made.texts, "effects": list(made.effects)})
    elif made.is_empty:
        console.write(f"nothing to change: the store is at version {made.version}")
    else:
        console.write("\n".join([*made.texts, *made.effects]))
    return 0

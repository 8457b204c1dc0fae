"""`sluicegate apply`: a catalog's folder becomes the store's next version."""

from __future__ import annotations

import argparse

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import add_catalog, add_json, find_catalog
from sluicegate.cli.stores import add_reason, add_store, check_wait, find_actor, open_given, tell_change
from sluicegate.service.store import plan

NAME = "apply"
SUMMARY = "make the store's catalog that of a folder, in one version; an empty store is filled"
EXAMPLE = """\
  sluicegate apply examples/soldiers --store sqlite:///sluicegate.db --reason 'first catalog'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    add_store(parser)
    add_reason(parser)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    check_wait(args.wait)
    folder = find_catalog(args.catalog)
    with open_given(args, create=True) as store:
        made = plan(folder, store)
        if not made.is_empty:
            return tell_change(args, console, store, store.apply(made, args.reason, actor=find_actor()))
    if args.json:
        console.write_json({"version": made.version, "hash": None, "waiting": []})
    else:
        console.write(f"nothing to change: the store is at version {made.version}")
    return 0

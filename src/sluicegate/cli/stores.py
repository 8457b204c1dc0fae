"""What commands on a store share: where it is, who changes it, and that a change has arrived everywhere."""

from __future__ import annotations

import argparse
import getpass
import os

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, recover
from sluicegate.service.store import DEFAULT_URL, Entry, Store, open_store

VARIABLE = "SLUICEGATE_STORE"
WAIT_SECONDS = 30.0


def add_store(parser: argparse.ArgumentParser) -> None:
    told = f"sqlite:///FILE, a file, or postgresql://…; ${VARIABLE}, else {DEFAULT_URL}"
    parser.add_argument("--store", metavar="URL", help=told)


def add_reason(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", metavar="TEXT", type=recover, required=True, help="why, for the history")
    told = f"how long to wait until every gateway has the change ({WAIT_SECONDS:g})"
    parser.add_argument("--wait", metavar="SECONDS", type=float, default=WAIT_SECONDS, help=told)


def open_given(args: argparse.Namespace, create: bool = False) -> Store:
    """The store of the command line or of the environment; what only looks at one makes none."""
    url = args.store if args.store is not None else os.environ.get(VARIABLE) or DEFAULT_URL
    return open_store(url, create=create)


def find_actor() -> str:
    """Whom the history shows: who can write to the store's file is its administrator, under a name of the system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "administrator"


def check_wait(seconds: float) -> None:
    if not 0 <= seconds < 86_400:
        raise UsageError("--wait takes seconds from 0, below a day")


def tell_change(args: argparse.Namespace, console: Console, store: Store, entry: Entry) -> int:
    """1 when a gateway has not taken the change in time: until its lease runs out it may deliver by the old one (R10)."""
    arrived = store.wait_acknowledged(entry.version, args.wait)
    waiting = [] if arrived else store.leases.list_waiting(entry.version)
    if args.json:
        console.write_json({"version": entry.version, "hash": entry.hash, "waiting": waiting})
    else:
        console.write(f"version {entry.version}")
    if waiting:
        console.complain(f"warning: stored, but not yet taken by: {', '.join(waiting)}")
    return 1 if waiting else 0

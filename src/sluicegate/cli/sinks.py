"""`--into`: a sink of the operator's settings, for results of a live query."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluicegate.api import Gate
from sluicegate.cli.inputs import UsageError
from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.runtime.sinking import DeclaredSink


def add_sink(parser: argparse.ArgumentParser) -> None:
    told = "without files: send the results to this sink of the settings instead of writing them"
    parser.add_argument("--into", metavar="SINK", help=told)
    parser.add_argument(
        "--settings", metavar="FILE", type=Path, help="the TOML file that has the sinks (docs/settings.md)"
    )


def find_sink(args: argparse.Namespace, gate: Gate, user: str) -> DeclaredSink | None:
    """The sink that `--into` names, if the user may send results there."""
    from sluicegate.service.settings import read_settings

    if args.into is None:
        return None
    if args.settings is None:
        raise UsageError("--into names a sink of the settings: say --settings FILE")
    declared = {each.name: each for each in read_settings(args.settings).sinks}
    found = declared.get(args.into)
    if found is None or not found.allows(user, gate.catalog.roles_of(user)):
        message = f"there is no sink `{args.into}` that `{user}` may send results to"
        raise DiagnosticError([Diagnostic("sink-denied", message)])
    return found

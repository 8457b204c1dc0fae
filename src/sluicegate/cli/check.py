"""`sluicegate check`: everything that is wrong with a catalog, or that its writer should know."""

from __future__ import annotations

import argparse

import sluicegate
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import add_catalog, add_json, find_catalog
from sluicegate.errors import Diagnostic, Severity

NAME = "check"
SUMMARY = "find what is wrong with a catalog, or suspicious in it"
EXAMPLE = """\
  sluicegate check examples/soldiers
  sluicegate check examples/soldiers --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """1 when any finding is an error."""
    found = sluicegate.check(find_catalog(args.catalog))
    errors = sum(1 for each in found if each.severity is Severity.ERROR)
    warnings = len(found) - errors
    if args.json:
        console.write_json(
            {"diagnostics": [diagnostic_json(each) for each in found], "errors": errors, "warnings": warnings}
        )
    else:
        for each in found:
            console.write(console.render(each) + "\n")
        console.write(_summarize(console, args.catalog, errors, warnings))
    return 1 if errors else 0


def _summarize(console: Console, catalog: str, errors: int, warnings: int) -> str:
    if not errors and not warnings:
        return f"{catalog}: {console.style('nothing to report', 'green')}"
    counts = f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"
    return f"{catalog}: {console.style(counts, 'red' if errors else 'yellow')}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def diagnostic_json(diagnostic: Diagnostic) -> dict[str, object]:
    """A finding with its place in parts; lines and columns count from 1."""
    span = diagnostic.span
    line, column = span.source.position(span.start) if span else (None, None)
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "file": span.source.name if span else None,
        "line": line,
        "column": column,
        "text": span.text if span else None,
    }

"""`sluicegate VERB …`: the verbs in order, and what becomes of everything that can go wrong."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TextIO

import sluicegate
from sluicegate.api import Denied
from sluicegate.cli import (
    ais,
    apply,
    audit,
    backup,
    bench,
    check,
    demo,
    explain,
    export,
    grant,
    history,
    login,
    network,
    plan,
    proxy,
    punctuate,
    query,
    restore,
    revoke,
    rewrite,
    rollback,
    run,
    serve,
    shared,
    sharing,
    tail,
    test,
    translate,
    who,
    xacml,
)
from sluicegate.cli.console import Console, open_console
from sluicegate.cli.inputs import UsageError
from sluicegate.errors import DiagnosticError
from sluicegate.testing.corpus import CorpusError

VERBS = (
    *(check, explain, who, translate, rewrite, run, network, test),
    *(plan, apply, export, history, rollback, audit, backup, restore),
    *(serve, proxy, login, query, tail, grant, revoke, punctuate, sharing, shared),
    *(xacml, ais, bench, demo),
)

DONE, REFUSED, USAGE, FAULT = 0, 1, 2, 3
INTERRUPTED, BROKEN_PIPE = 130, 141

EXIT_STATUS = """\
exit status: 0 done, 1 denied or diagnostics, 2 wrong usage, 3 a fault of the system
a verb's own options: sluicegate VERB --help"""


def build_parser() -> argparse.ArgumentParser:
    """The parser with all verbs."""
    parser = argparse.ArgumentParser(
        prog="sluicegate",
        description="Who may see what of a data stream.",
        epilog=EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sluicegate {sluicegate.__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)
    for verb in VERBS:
        own = verbs.add_parser(
            verb.NAME,
            help=verb.SUMMARY,
            description=f"{verb.SUMMARY[0].upper()}{verb.SUMMARY[1:]}.",
            epilog=f"example:\n{verb.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        verb.add_arguments(own)
        own.set_defaults(run=verb.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status; nothing is raised."""
    console = open_console()
    try:
        return _run(argv, console)
    except BrokenPipeError:
        _drop_output(sys.stdout, sys.stderr)
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(argv: Sequence[str] | None, console: Console) -> int:
    try:
        args = build_parser().parse_args(argv)
        status: int = args.run(args, console)
        _flush(console)
        return status
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    except UsageError as error:
        console.complain(f"sluicegate: {error}")
        return USAGE
    except Denied as error:
        console.complain(f"denied: {error}")
        return REFUSED
    except DiagnosticError as error:
        for diagnostic in error.diagnostics:
            console.complain(diagnostic.render())
        return REFUSED
    except CorpusError as error:
        console.complain(f"error: {error}")
        return REFUSED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 — whatever it is, it is ours, and it must not look like an answer
        return _tell_fault(console, error)


def _flush(console: Console) -> None:
    """What is still buffered must fail here, where it is understood, and not while Python ends."""
    try:
        console.out.flush()
    except BrokenPipeError:
        raise
    except OSError:
        _drop_output(sys.stdout)
        raise


def _tell_fault(console: Console, error: Exception) -> int:
    if os.environ.get("SLUICEGATE_DEBUG") == "1":
        console.complain("".join(traceback.format_exception(error)).rstrip())
    said = " ".join(str(error).split())[:500] or "no message"
    # a full disk and the like: the system's, but nothing that needs to be looked for in our code
    blame = (
        "cannot go on"
        if isinstance(error, OSError)
        else f"a fault of sluicegate, not yours: {type(error).__name__}"
    )
    console.complain(f"sluicegate: {blame}: {said} (nothing was let through; SLUICEGATE_DEBUG=1 shows where)")
    return FAULT


def _drop_output(*streams: TextIO) -> None:
    """It cannot be written any more; without this Python complains once more while it ends."""
    for stream in streams:
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
        except (OSError, ValueError):
            continue

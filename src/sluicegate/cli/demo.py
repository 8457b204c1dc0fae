"""`sluicegate demo`: a port with ships, for a port authority, a company and a captain; or one query explained for three users."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from sluicegate.cli.console import Console
from sluicegate.cli.demo_explain import explain_soldiers
from sluicegate.cli.inputs import UsageError

NAME = "demo"
SUMMARY = "serve a port with ships for four accounts; or explain one query for three users"
EXAMPLE = """\
  sluicegate demo
  sluicegate demo --explain"""
_LIBRARIES = ("pyspark", "pyarrow", "fastapi", "uvicorn", "argon2", "jwt", "httpx", "pyais")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--explain", action="store_true", help="only explain a query for three users; needs no Java"
    )
    parser.add_argument("--port", metavar="N", type=int, help="the port (8765, or another that is free)")
    parser.add_argument(
        "--state", metavar="DIR", type=Path, help="keep everything there; else it is gone at the end"
    )
    parser.add_argument("--seconds", metavar="S", type=float, help="end by itself after so long")
    parser.add_argument("--no-browser", action="store_true", help="do not open the console in a browser")


def run(args: argparse.Namespace, console: Console) -> int:
    if args.explain:
        if (args.port, args.state, args.seconds, args.no_browser) != (None, None, None, False):
            raise UsageError("--explain serves nothing: it takes no other option")
        return explain_soldiers(console)
    missing = find_missing()
    if missing is not None:
        console.complain(f"the gateway cannot be shown here: {missing}; this is what `demo --explain` shows")
        return explain_soldiers(console)
    from sluicegate.cli.demo_live import serve_demo

    return serve_demo(console, args.port, args.state, args.seconds, not args.no_browser)


def find_missing() -> str | None:
    """What the gateway needs and this machine lacks."""
    lacking = [name for name in _LIBRARIES if find_spec(name) is None]
    if lacking:
        return f"it needs `{lacking[0]}` (pip install 'sluicegate[spark,service,client,ais]')"
    from sluicegate.errors import DiagnosticError
    from sluicegate.runtime.java import find_java

    try:
        find_java()
    except DiagnosticError as error:
        found = error.diagnostics[0]
        return f"{found.message} ({found.help})" if found.help else found.message
    return None

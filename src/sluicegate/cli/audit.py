"""`sluicegate audit`: what was asked and decided, and whether the store is as it was written."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from typing import Any

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_json, recover
from sluicegate.cli.remote import add_user, open_gateway
from sluicegate.cli.stores import add_store, open_given
from sluicegate.cli.tables import draw_table
from sluicegate.service.store import Search, Verification
from sluicegate.service.store.records import write_time

NAME = "audit"
SUMMARY = "verify the store's chains, search its audit log, or export it as lines of JSON"
EXAMPLE = """\
  sluicegate audit verify --store sqlite:///sluicegate.db
  sluicegate audit search --principal paul --since 2026-01-01 --text Health
  sluicegate audit export --action query > events.jsonl
  sluicegate audit search --url https://gateway.example --action register"""
_FILTERS = ("principal", "action", "since", "until", "version", "text")
_SHOWN = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", metavar="WHAT", choices=("verify", "search", "export"), help="verify, search or export"
    )
    add_store(parser)
    parser.add_argument("--url", metavar="URL", type=recover, help="ask a gateway instead (search, export)")
    add_user(parser)
    parser.add_argument("--principal", metavar="USER", type=recover, help="who asked")
    parser.add_argument(
        "--action", metavar="NAME", type=recover, help="what was done, as `query` or `change`"
    )
    parser.add_argument("--since", metavar="TIME", type=_read_time, help="from then on; UTC without a zone")
    parser.add_argument("--until", metavar="TIME", type=_read_time, help="up to then")
    parser.add_argument("--version", metavar="N", type=int, help="under which version of the catalog")
    parser.add_argument(
        "--text", metavar="TEXT", type=recover, help="part of the query, a notice, a grant, a request"
    )
    parser.add_argument("--limit", metavar="N", type=int, default=100, help="at most so many (search; 100)")
    told = "a hash that was noted before must still be in the chains (verify; may be repeated)"
    parser.add_argument("--expect", metavar="HASH", action="append", default=[], help=told)
    add_json(parser)


def _read_time(given: str) -> str:
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{given}` is not a time such as 2026-01-31T10:50") from None
    return write_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def run(args: argparse.Namespace, console: Console) -> int:
    wanted = Search(**{name: getattr(args, name) for name in _FILTERS})
    if args.what == "verify" and wanted != Search():
        raise UsageError("`audit verify` looks at everything: it takes no conditions")
    if args.what != "verify" and args.expect:
        raise UsageError("--expect belongs to `audit verify`")
    if args.url is not None:
        return _ask_gateway(args, console)
    with open_given(args) as store:
        if args.what == "verify":
            return _tell_verification(args, console, store.verify())
        if args.what == "search":
            found = store.audit.search(wanted, limit=max(0, args.limit))
            return _tell_events(args, console, [each.to_json() for each in found])
        for each in store.audit.export(wanted):
            console.write_exact(json.dumps(each.to_json()))
    return 0


def _tell_verification(args: argparse.Namespace, console: Console, found: Verification) -> int:
    """1 when an entry is broken, or one that is expected is not there."""
    missing = [each for each in args.expect if not found.has(each)]
    broken = [*found.broken, *(f"no entry has the hash {each}" for each in missing)]
    if args.json:
        console.write_json(
            {
                "changes": {"count": found.changes, "last": found.last_change},
                "events": {"count": found.events, "last": found.last_event},
                "broken": broken,
            }
        )
    else:
        verdict = console.style("broken", "red") if broken else console.style("sound", "green")
        lines = [f"{verdict}: {found.changes} changes, {found.events} events", *broken]
        if not broken:
            lines.append(f"note elsewhere, for --expect: {found.last_change} {found.last_event}")
        console.write("\n".join(lines))
    return 1 if broken else 0


def _ask_gateway(args: argparse.Namespace, console: Console) -> int:
    """Of one's own requests; an administrator is told of everybody's."""
    if args.what == "verify" or args.store is not None or args.version is not None:
        raise UsageError("--url goes with search and export, without --store and --version")
    wanted = {name: getattr(args, name) for name in _FILTERS if name != "version"}
    with open_gateway(args) as client:
        if args.what == "search":
            return _tell_events(args, console, list(client.audit(**wanted, limit=max(0, args.limit))))
        for each in client.audit(**wanted):
            console.write_exact(json.dumps(each))
    return 0


def _tell_events(args: argparse.Namespace, console: Console, found: list[dict[str, Any]]) -> int:
    if args.json:
        console.write_json(found)
    elif not found:
        console.write("no events")
    else:
        heads = ["number", "time", "who", "action", "version", "decision", "about"]
        console.write(draw_table(console, heads, [_write_event(each) for each in found]))
    return 0


def _write_event(event: dict[str, Any]) -> list[str]:
    number, when, who, action, version, decision, subject = (
        str(event.get(name, ""))
        for name in ("number", "time", "principal", "action", "version", "decision", "subject")
    )
    return [number, f"{when[:19]}Z", who, action, version, _cut(decision), _cut(subject)]


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"

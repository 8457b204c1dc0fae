"""`sluicegate who`: who can see a stream or an attribute, by which grant, raw or aggregate, until when."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from sluicegate.api import Gate
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_json, add_moment, open_gate, read_moment, recover
from sluicegate.cli.remote import add_gateway, open_gateway
from sluicegate.cli.tables import draw_table
from sluicegate.rewrite.who import EVERYONE, Entry

NAME = "who"
SUMMARY = "tell who can see a stream or an attribute, and by which grants"
EXAMPLE = """\
  sluicegate who examples/soldiers Health.BPressure
  sluicegate who examples/ships AIS --json
  sluicegate who --url https://gateway.example Health"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "catalog", metavar="CATALOG", nargs="?", help="folder of `*.sql` files; else a gateway is asked"
    )
    told = "a stream, or one attribute of it"
    parser.add_argument("what", metavar="STREAM[.ATTRIBUTE]", type=recover, help=told)
    add_moment(parser)
    add_gateway(parser)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.catalog is not None and args.url is not None:
        raise UsageError("a catalog and --url are two ways to ask; say one")
    if args.catalog is None and args.at is not None:
        raise UsageError("a gateway has its own clock: --at goes with a catalog")
    found = _ask_gateway(args) if args.catalog is None else _ask_catalog(args)
    if args.json:
        console.write_json(found)
    elif not found["entries"]:
        console.write(f"nobody can see `{args.what}`")
    else:
        console.write(_tell(console, args.what, [_read_entry(each) for each in found["entries"]]))
    return 0


def _ask_catalog(args: argparse.Namespace) -> dict[str, Any]:
    gate = open_gate(args.catalog)
    stream, attribute = _split(gate, args.what)
    entries = [each.to_json() for each in gate.who(stream, attribute, at=read_moment(args.at))]
    return {"stream": stream, "attribute": attribute, "entries": entries}


def _ask_gateway(args: argparse.Namespace) -> dict[str, Any]:
    """For the stream's owner and administrators. At a gateway a name with dots is only known as a whole."""
    with open_gateway(args) as client:
        known = [str(each.get("name")) for each in client.streams()]
        longest = max((name for name in known if args.what.startswith(name + ".")), key=len, default="")
        stream = args.what if args.what in known else longest or args.what.partition(".")[0]
        return client.who(stream, args.what[len(stream) + 1 :] or None)


def _read_entry(content: Mapping[str, Any]) -> Entry:
    """The other way of `Entry.to_json`; what a newer gateway tells besides is left out."""
    known: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in content.items()
        if name in Entry.__dataclass_fields__
    }
    return Entry(**known)


def _split(gate: Gate, what: str) -> tuple[str, str | None]:
    """At the dot after the longest known name: quoted names may have dots in them."""
    if what in gate.catalog.streams:
        return what, None
    dots = [at for at, char in enumerate(what) if char == "."]
    known = [at for at in dots if what[:at] in gate.catalog.streams]
    at = known[-1] if known else dots[0] if dots else len(what)
    return what[:at], what[at + 1 :] if at < len(what) else None


def _tell(console: Console, what: str, entries: list[Entry]) -> str:
    people = len({each.principal for each in entries if each.principal != EVERYONE})
    users = f"{people} user{'' if people == 1 else 's'}"
    rows = [[_principal(each), each.grant, _kind(each), _sees(each), _limits(each)] for each in entries]
    table = draw_table(console, ["who", "grant", "kind", "sees", "limits"], rows)
    return f"`{what}` can be seen by {users}\n\n{table}"


def _principal(entry: Entry) -> str:
    if entry.principal == EVERYONE:
        return "whom the data says"
    return f"{entry.principal} ({entry.role})" if entry.role else entry.principal


def _kind(entry: Entry) -> str:
    return f"{entry.kind} of {entry.through}" if entry.through else entry.kind


def _sees(entry: Entry) -> str:
    if entry.kind == "provider":
        return "what each tuple's own policy allows"
    return ", ".join((*entry.functions, *entry.attributes))


def _limits(entry: Entry) -> str:
    parts = [
        f"where {entry.condition}" if entry.condition else "",
        f"windows {entry.window}" if entry.window else "",
        f"groups of {entry.min_group} or more" if entry.min_group else "",
        f"from {entry.since}" if entry.since else "",
        f"until {entry.until}" if entry.until else "",
        "" if entry.open else "closed now",
    ]
    return "; ".join(part for part in parts if part)

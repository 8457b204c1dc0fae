"""`sluicegate xacml policies`: the XACML policies of a gateway that runs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_json, recover
from sluicegate.cli.remote import add_gateway, open_gateway
from sluicegate.cli.tables import draw_table
from sluicegate.language.xacml.xml import MAX_SIZE, decode_xml
from sluicegate.source import SourceText

if TYPE_CHECKING:
    from sluicegate.client import Client

ACTION = "policies"
_WAYS = ("list", "show", "put", "check", "remove")


def add_policies(actions: Any) -> None:
    """As one more action beside `decide`."""
    told = "list, put, check or remove the policies of a gateway; for administrators"
    parser: argparse.ArgumentParser = actions.add_parser(
        ACTION, help=told, description=f"{told.capitalize()}.", allow_abbrev=False
    )
    parser.add_argument("way", choices=_WAYS, metavar="WAY", help=", ".join(_WAYS))
    told = "for put and check: files of policies; for show and remove: their ids"
    parser.add_argument("given", metavar="FILE_OR_ID", nargs="*", type=recover, help=told)
    parser.add_argument("--reason", metavar="TEXT", type=recover, default="", help="why, for the history")
    add_gateway(parser)
    add_json(parser)


def run_policies(args: argparse.Namespace, console: Console) -> int:
    if bool(args.given) == (args.way == "list"):
        raise UsageError(f"`{args.way}` takes {'nothing else' if args.given else 'a file or an id'}")
    if args.way == "list":
        return _list(args, console)
    for given in args.given:
        text = _read(given) if args.way in ("put", "check") else given
        with open_gateway(args, SourceText(given, text)) as client:
            found = _do(client, args, text)
        _tell(args, console, found)
    return 0


def _do(client: Client, args: argparse.Namespace, text: str) -> dict[str, Any]:
    match args.way:
        case "show":
            return client.policies.get(text)
        case "put":
            return client.policies.put(text, args.reason)
        case "check":
            return client.policies.check(text)
        case "remove":
            return client.policies.remove(text, args.reason)
        case _:
            raise UsageError(f"unknown: `{args.way}`")


def _tell(args: argparse.Namespace, console: Console, found: Mapping[str, Any]) -> None:
    if args.json:
        console.write_json(dict(found))
    elif args.way == "show":
        console.write_exact(str(found.get("text", "")).rstrip("\n"))
    else:
        would = "would be " if found.get("dry_run") else ""
        console.write(f"{found.get('id')}: {would}version {found.get('version')}")
        for name in ("withdrawn", "changed"):
            if found.get(name):
                console.write(f"queries {would}{name}: {found[name]}")


def _list(args: argparse.Namespace, console: Console) -> int:
    with open_gateway(args) as client:
        found = client.policies.list()
    if args.json:
        console.write_json(found)
    elif not found:
        console.write("no policies")
    else:
        rows = [
            [
                str(each.get("id")),
                str(each.get("policy_version")),
                "set" if each.get("is_set") else "policy",
                " ".join(str(each.get("description") or "").split()),
            ]
            for each in found
        ]
        console.write(draw_table(console, ["id", "version", "kind", "description"], rows))
    return 0


def _read(given: str) -> str:
    path = Path(given)
    try:
        with path.open("rb") as file:
            return decode_xml(file.read(MAX_SIZE + 1), given)
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else "no such name"
        raise UsageError(f"`{given}` cannot be read: {told or 'no access'}") from None

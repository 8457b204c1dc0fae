"""`sluicegate shared`: queries that many subscribe to at a gateway, who is admitted to them, and credentials."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_json, read_query_text, recover
from sluicegate.cli.remote import add_gateway, open_gateway
from sluicegate.cli.tables import draw_table

if TYPE_CHECKING:
    from sluicegate.client import Client

NAME = "shared"
SUMMARY = "share a query at a gateway, admit others to it, subscribe to one; give and take credentials"
EXAMPLE = """\
  sluicegate shared create Q2 "SELECT SID, Pos FROM Position"
  sluicegate shared admit Q2 --role Nurse --credential ward-3
  sluicegate shared subscribe Q2 --for 30d
  sluicegate shared issue ward-3 ann --for 8h"""
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")

_ACTIONS = {
    "create": "make a query that others may subscribe to",
    "list": "shared queries that you may know of",
    "show": "one of them, with what you may see of its policies and subscriptions",
    "drop": "end it for everybody",
    "admit": "admit a user, the holders of a role or of a credential: whoever is all that is said",
    "refuse": "take a policy back, said as it was made",
    "subscribe": "subscribe, for yourself or, to a query of yours, for another",
    "renew": "let a subscription last for so long from now on",
    "cancel": "end a subscription",
    "subscriptions": "your subscriptions, and those to your queries",
    "issue": "give a user a credential; for administrators",
    "extend": "let a credential last for so long from now on; for administrators",
    "revoke": "take a credential back; for administrators",
    "credentials": "your credentials; for administrators all",
}
_NAMED = ("create", "show", "drop", "admit", "refuse", "subscribe", "renew", "cancel")
_GIVEN = ("issue", "extend", "revoke")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    for name, told in _ACTIONS.items():
        own = actions.add_parser(
            name, help=told, description=f"{told[0].upper()}{told[1:]}.", allow_abbrev=False
        )
        _add_named(own, name)
        if name in ("subscribe", "renew", "issue", "extend"):
            told = "seconds, or with a unit: 90s, 15m, 8h, 30d"
            own.add_argument("--for", dest="seconds", metavar="TIME", type=_read_duration, required=True, help=told)  # fmt: skip
        add_gateway(own)
        add_json(own)


def _add_named(parser: argparse.ArgumentParser, action: str) -> None:
    if action in _NAMED:
        parser.add_argument("name", metavar="NAME", type=recover, help="what punctuations call the query")
    if action == "create":
        parser.add_argument("query", metavar="QUERY", help="a file, or text if it contains a space")
    if action in _GIVEN:
        parser.add_argument("name", metavar="CREDENTIAL", type=recover, help="the credential's name")
        parser.add_argument("whom", metavar="USER", type=recover, help="whose it is")
    if action in ("admit", "refuse", "subscribe", "renew", "cancel"):
        told = "this user; else yourself" if action not in ("admit", "refuse") else "this user"
        parser.add_argument("--user", dest="whom", metavar="USER", type=recover, help=told)
    if action in ("admit", "refuse"):
        parser.add_argument("--role", metavar="ROLE", type=recover, help="holders of this role")
        parser.add_argument("--credential", metavar="NAME", type=recover, help="holders of this credential")


def _read_duration(given: str) -> float:
    found = _DURATION.fullmatch(given)
    if found is None or not float(found[1]):
        raise argparse.ArgumentTypeError("a time is a number of seconds, or one with s, m, h or d")
    return float(found[1]) * _UNITS[found[2]]


def run(args: argparse.Namespace, console: Console) -> int:
    if args.action in ("admit", "refuse") and not (args.whom or args.role or args.credential):
        raise UsageError(f"`{args.action}` needs --user, --role or --credential")
    text = read_query_text(args.query) if args.action == "create" else None
    with open_gateway(args, text) as client:
        found = _WAYS[args.action](client, args)
    if args.json:
        console.write_json(found)
    else:
        console.write(_tell(console, args, found))
    return 0


def _create(client: Client, args: argparse.Namespace) -> Any:
    return client.shared.create(args.name, read_query_text(args.query).text)


def _turn_policy(client: Client, args: argparse.Namespace) -> Any:
    act = client.shared.admit if args.action == "admit" else client.shared.refuse
    act(args.name, user=args.whom, role=args.role, credential=args.credential)
    return {"query": args.name, "done": args.action}


def _subscribe(client: Client, args: argparse.Namespace) -> Any:
    act = client.shared.subscribe if args.action == "subscribe" else client.shared.renew
    return act(args.name, args.seconds, args.whom).answer


def _end(client: Client, args: argparse.Namespace) -> Any:
    match args.action:
        case "drop":
            client.shared.drop(args.name)
        case "cancel":
            client.shared.cancel(args.name, args.whom)
        case "revoke":
            client.shared.revoke(args.name, args.whom)
        case _:
            raise UsageError(f"unknown: `{args.action}`")
    return {"name": args.name, "done": args.action}


def _give(client: Client, args: argparse.Namespace) -> Any:
    act = client.shared.issue if args.action == "issue" else client.shared.renew_credential
    return act(args.name, args.whom, args.seconds)


_WAYS: dict[str, Callable[[Client, argparse.Namespace], Any]] = {
    "create": _create,
    "list": lambda client, _: client.shared.list(),
    "show": lambda client, args: client.shared.get(args.name),
    "drop": _end,
    "admit": _turn_policy,
    "refuse": _turn_policy,
    "subscribe": _subscribe,
    "renew": _subscribe,
    "cancel": _end,
    "subscriptions": lambda client, _: client.shared.subscriptions(),
    "issue": _give,
    "extend": _give,
    "revoke": _end,
    "credentials": lambda client, _: client.shared.credentials(),
}


def _tell(console: Console, args: argparse.Namespace, found: Any) -> str:
    match args.action:
        case "list":
            return _draw(console, ["name", "owner", "query"], found, "no shared queries")
        case "subscriptions":
            return _draw_subscriptions(console, found)
        case "credentials" | "issue" | "extend":
            rows = found if isinstance(found, list) else [found]
            return _draw(console, ["name", "user", "expires", "revoked"], rows, "no credentials")
        case "show" | "create":
            return _tell_one(console, found)
        case "subscribe" | "renew":
            return _tell_subscription(console, found)
        case _:
            return f"done: {args.action} {args.name}"


def _tell_subscription(console: Console, found: dict[str, Any]) -> str:
    state = (
        console.style("open", "green", "bold") if found["is_open"] else console.style("closed", "red", "bold")
    )
    lines = [f"{state} until {found['expires']}: {found['reason']}", f"handle {found['handle']}"]
    return "\n".join([*lines, console.style(f"sluicegate tail {found['handle']}", "dim")])


def _tell_one(console: Console, found: dict[str, Any]) -> str:
    parts = [f"`{found['name']}` of {found['owner']}"]
    if found.get("query"):
        parts.append(str(found["query"]))
    if found.get("policies"):
        parts.append(_draw(console, ["user", "role", "credential"], found["policies"], ""))
    if found.get("subscriptions"):
        parts.append(_draw_subscriptions(console, found["subscriptions"]))
    return "\n\n".join(parts)


def _draw_subscriptions(console: Console, found: Sequence[dict[str, Any]]) -> str:
    names = ["query", "user", "expires", "is_open", "reason", "handle"]
    return _draw(console, names, found, "no subscriptions")


def _draw(console: Console, names: list[str], found: Sequence[dict[str, Any]], none: str) -> str:
    if not found:
        return none
    rows = [[_cell(each.get(name)) for name in names] for each in found]
    return draw_table(console, [name.removeprefix("is_") for name in names], rows)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value or "").split())

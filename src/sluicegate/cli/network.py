"""`sluicegate network`: the operators that queries of several users would share, and the switches between them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sluicegate.api import Gate
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_catalog, add_json, open_gate, read_query_text, recover
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.rewrite.sharing.draw_svg import draw_network
from sluicegate.rewrite.sharing.idents import shorten
from sluicegate.rewrite.sharing.model import Network, Switch, check_network
from sluicegate.rewrite.sharing.optimize import build_network, normalize
from sluicegate.rewrite.sharing.place_switches import find_live, place_switches
from sluicegate.rewrite.sharing.write_network import network_json, write_network

NAME = "network"
SUMMARY = "show the operators that authorized queries share, and where access opens and closes"
EXAMPLE = """\
  sluicegate network examples/soldiers --query Q1 paul "SELECT SID FROM Health" --query Q2 rita "SELECT Heart FROM Health" """


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    parser.add_argument(
        "--query",
        dest="queries",
        metavar=("NAME", "USER", "QUERY"),
        nargs=3,
        action="append",
        required=True,
        help="a query, by a name of its own, and who asks it; may be given several times",
    )
    parser.add_argument(
        "--closed",
        metavar="NAME",
        action="append",
        default=[],
        help="a query that has lost all its readers: tells what stops then; may be given several times",
    )
    parser.add_argument("--svg", metavar="FILE", type=Path, help="draw the network into a file")
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    gate = open_gate(args.catalog)
    plans: dict[str, AuthorizedPlan] = {}
    for given in args.queries:
        name, user, query = recover(given[0]), recover(given[1]), given[2]
        if name in plans:
            raise UsageError(f"two queries are called `{name}`")
        plans[name] = _authorize(gate, name, user, query, console)
    opened = _find_opened(plans, [recover(each) for each in args.closed])
    network = build_network(plans)
    check_network(network)
    switches = place_switches(network)
    if args.svg is not None:
        args.svg.write_text(draw_network(network, switches, opened), encoding="utf-8")
    if args.json:
        console.write_json(network_json(network, switches, opened))
    else:
        console.write_exact(_tell(network, switches, opened))
    return 0


def _authorize(gate: Gate, name: str, user: str, query: str, console: Console) -> AuthorizedPlan:
    allowed = gate.authorize(user, read_query_text(query))
    for notice in allowed.notices:
        console.complain(f"{name}: {notice.code}: {notice.message}")
    if allowed.plan is None:
        raise UsageError(f"`{name}` has no rows on any data, so nothing of it would run")
    known = gate.catalog.users.get(user)
    follow = known.follow if known is not None else None
    moving = frozenset(follow.attributes) if follow is not None else frozenset()
    return normalize(allowed.plan, allowed.environment, moving, user)


def _find_opened(plans: dict[str, AuthorizedPlan], closed: Sequence[str]) -> frozenset[str]:
    unknown = [name for name in closed if name not in plans]
    if unknown:
        raise UsageError(f"there is no query `{unknown[0]}` to close")
    return frozenset(plans) - frozenset(closed)


def _tell(network: Network, switches: Sequence[Switch], opened: frozenset[str]) -> str:
    text = write_network(network, switches)
    own = [each for each in network.operators.values() if not each.is_input]
    shared = sum(each.is_common for each in own)
    text += f"\n{len(own)} operators, {shared} of them shared, {len(switches)} switches\n"
    if opened == network.outputs.keys():
        return text
    live = find_live(network, opened)
    stopped = [each.ident for each in own if each.ident not in live]
    lost = ", ".join(sorted(network.outputs.keys() - opened))
    return (
        text
        + f"without readers of {lost}: {len(stopped)} of {len(own)} operators stop\n"
        + "".join(f"    {shorten(ident)}\n" for ident in stopped)
    )

"""`sluicegate rewrite`: a query graph as a role may have it, in XML; ASSIST's query rewriter (seed 004, section 6.4)."""

from __future__ import annotations

import argparse

from sluicegate.api import Denied, Gate
from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_manner, find_catalog_part, read_query_text, recover
from sluicegate.errors import DiagnosticError
from sluicegate.language.fold import fold_together
from sluicegate.language.load import read_together
from sluicegate.language.xml.write_document import print_error
from sluicegate.language.xml.write_graph import print_plan
from sluicegate.rewrite.for_role import seat_role

NAME = "rewrite"
SUMMARY = "rewrite a query for a role: the authorized graph in XML, or an error's code"
EXAMPLE = """\
  sluicegate rewrite examples/ships_xml/query.xml --role "Port Authority" examples/ships_xml
  sluicegate rewrite query.xml --role "Port Authority" streams.sql authorizations.xml"""

REWRITE_CODES = {
    "catalog-error": "the catalog cannot be read",
    "parsing-error": "the query cannot be read, or names what the catalog does not have",
    "unknown-role": "the catalog has no such role",
    "query-rejected": "no policy of the role lets the query see anything",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "query", metavar="QUERY", help="a file, in XML or not, or text if it contains a space"
    )
    told = "folders of a catalog, `*.sql` files or authorization catalogs in XML, read together; else this folder"
    parser.add_argument("catalog", metavar="CATALOG", nargs="*", help=told)
    # argparse takes no list of arguments on both sides of an option, so that the option takes what follows it
    asks = "the role that asks; what follows are catalogs"
    parser.add_argument("--role", metavar=("ROLE", "CATALOG"), nargs="+", required=True, help=asks)
    whose = "put this user's profile in; otherwise it stays in the graph as `self`"
    parser.add_argument("--as", dest="user", metavar="USER", type=recover, help=whose)
    add_manner(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """0 with the graph; 1 with `<error>`, whose code says why there is none."""
    query = read_query_text(args.query)
    role, *more = args.role
    try:
        statements = read_together([find_catalog_part(each) for each in [*args.catalog, *more] or ["."]])
        catalog = fold_together(statements)
    except DiagnosticError as error:
        return _refuse(console, "catalog-error", error)
    try:
        seated, user = seat_role(catalog, recover(role), args.user)
    except DiagnosticError as error:
        if error.diagnostics[0].code != "unknown-role":
            raise UsageError(error.diagnostics[0].message) from None
        return _refuse(console, "unknown-role", error)
    try:
        found = Gate(seated).authorize(user, query, merge=args.merge, on_partial=args.on_partial)
    except DiagnosticError as error:
        return _refuse(console, "parsing-error", error)
    except Denied as error:
        return _reject(console, str(error))
    for notice in found.notices:
        console.complain(f"{notice.code}: {notice.message}")
    if found.plan is None:
        return _reject(console, "; ".join(notice.message for notice in found.notices))
    console.write_exact(print_plan(found.plan).rstrip())
    return 0


def _refuse(console: Console, code: str, error: DiagnosticError) -> int:
    for each in error.diagnostics:
        console.complain(each.render())
    console.write_exact(print_error(code, error.diagnostics).rstrip())
    return 1


def _reject(console: Console, message: str) -> int:
    console.complain(f"denied: {message}")
    console.write_exact(print_error("query-rejected", (), message).rstrip())
    return 1

"""`sluicegate xacml`: decide requests by policies in files, and take policies into catalogs and grants out of them."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_catalog, add_json, find_catalog, open_gate
from sluicegate.cli.xacml_policies import ACTION, add_policies, run_policies
from sluicegate.language.fold import fold_together
from sluicegate.language.load import POLICIES, make_policy_statement, read_sources
from sluicegate.language.print_statements import print_statements
from sluicegate.language.statements import CreatePolicy
from sluicegate.language.xacml.json_requests import read_json_request
from sluicegate.language.xacml.read_policies import link_documents, read_policy
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.language.xacml.write_grants import export_grants
from sluicegate.language.xacml.write_policies import write_policy
from sluicegate.language.xacml.write_responses import write_json_response, write_response
from sluicegate.language.xacml.xml import MAX_SIZE, decode_xml
from sluicegate.policy.xacml.context import Request, Response
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.temporal import Moment, moment_at, read_date_time
from sluicegate.source import SourceText

NAME = "xacml"
SUMMARY = "decide XACML requests, import XACML policies, export grants as such, see to a gateway's policies"
EXAMPLE = """\
  sluicegate xacml decide Request.xml Policy.xml
  sluicegate xacml decide request.json policies/ --json --at 2026-03-01T09:00:00Z
  sluicegate xacml import policies/ --into examples/weather
  sluicegate xacml export examples/weather > weather.xml
  sluicegate xacml policies put Policy.xml --url https://gateway.example --reason "new partner\""""


# It may name another encoding than the one that is written.
_DECLARED = re.compile(r"^<\?xml\s[^>]*\?>\s*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    told = "print the standard's Response to a request"
    deciding = actions.add_parser(
        "decide", help=told, description=f"{told.capitalize()}.", allow_abbrev=False
    )
    deciding.add_argument("request", metavar="REQUEST", help="a file: XML, or JSON after the JSON profile")
    told = "a file, or a folder of `*.xml` files; those that no other refers to decide, by deny-overrides"
    deciding.add_argument("policies", metavar="POLICY", nargs="+", help=told)
    told = "the clock for what the request does not say of it, such as 2026-03-01T09:00:00Z; else now"
    deciding.add_argument("--at", metavar="TIMESTAMP", help=told)
    add_json(deciding)
    told = "print policies as statements, or put them into a catalog"
    importing = actions.add_parser(
        "import", help=told, description=f"{told.capitalize()}.", allow_abbrev=False
    )
    importing.add_argument(
        "policies", metavar="POLICY", nargs="+", help="a file, or a folder of `*.xml` files"
    )
    told = "the folder of a catalog, which gets the files in its `policies`; nothing where any of it does not fit"
    importing.add_argument("--into", metavar="CATALOG", help=told)
    told = "print grants as XACML policies with stream obligations"
    exporting = actions.add_parser(
        "export", help=told, description=f"{told.capitalize()}.", allow_abbrev=False
    )
    add_catalog(exporting)
    told = "write a file for each policy into this folder, instead of one policy set to standard output"
    exporting.add_argument("--into", metavar="DIR", help=told)
    add_policies(actions)


def run(args: argparse.Namespace, console: Console) -> int:
    ways = {"decide": _decide, "import": _import, "export": _export, ACTION: run_policies}
    return ways[args.action](args, console)


def _import(args: argparse.Namespace, console: Console) -> int:
    """Nothing is printed or written unless all policies can be read, and fit together."""
    paths = [path for given in args.policies for path in _list_files(given)]
    sources = [SourceText(str(path), decode_xml(_read(path), str(path))) for path in paths]
    made = [make_policy_statement(each) for each in sources]
    if args.into is None:
        fold_together(made)
        console.write_exact(print_statements(made).rstrip("\n"))
        return 0
    catalog = find_catalog(args.into)
    fold_together([*read_sources(catalog).parse(), *made])
    for path, text in _name_files(catalog / POLICIES, made):
        console.write(str(_write(path, text)))
    return 0


def _name_files(folder: Path, made: list[CreatePolicy]) -> Iterator[tuple[Path, str]]:
    """By id, as far as that can be a file's name; none that is there already."""
    for each in made:
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", each.name.text).strip(".-")[:100] or "policy"
        number, path = 1, folder / f"{plain}.xml"
        while path.exists():
            number += 1
            path = folder / f"{plain}-{number}.xml"
        yield path, each.text.text


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(_DECLARED.sub("", text, count=1))
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written: {error.strerror or 'no access'}") from None
    return path


def _export(args: argparse.Namespace, console: Console) -> int:
    """What policies cannot say is told on standard error."""
    found = export_grants(open_gate(args.catalog).catalog)
    for name, reason in found.left_out:
        console.complain(f"grant `{name}` is left out: {reason}")
    if args.into is None:
        console.write_exact(write_policy(found.join()).rstrip("\n"))
        return 0
    folder = Path(args.into) if args.into and "\0" not in args.into else None
    if folder is None or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"`{args.into}` is not a folder to write to")
    made = [make_policy_statement(SourceText(each.policy_id, write_policy(each))) for each in found.policies]
    for path, text in _name_files(folder, made):
        console.write(str(_write(path, text)))
    return 0


def _decide(args: argparse.Namespace, console: Console) -> int:
    moment = _read_moment(args.at)
    paths = [path for given in args.policies for path in _list_files(given)]
    root = link_documents([read_policy(_read(path), str(path)) for path in paths])
    response = Response((decide(root, _read_request(_find(args.request)), moment),))
    if args.json:
        console.write_json(write_json_response(response))
    else:
        console.write_exact(write_response(response).rstrip("\n"))
    return 0


def _read_moment(given: str | None) -> Moment:
    if given is None:
        return moment_at(time.time_ns() // 1000)
    try:
        moment = read_date_time(given.strip().replace(" ", "T", 1))
    except ValueError:
        raise UsageError(f"`{given}` is not a time such as 2026-03-01T09:00:00Z") from None
    return replace(moment, zone=moment.zone or 0)


def _list_files(given: str) -> Iterator[Path]:
    path = _find(given)
    if not path.is_dir():
        yield path
        return
    found = sorted(path.glob("*.xml"))
    if not found:
        raise UsageError(f"there is no `*.xml` file in `{given}`")
    yield from found


def _find(given: str) -> Path:
    path = Path(given) if given and "\0" not in given else None
    if path is None or not path.exists():
        raise UsageError(f"there is no file `{given}`")
    return path


def _read(path: Path) -> bytes:
    """Never more than the limit of it in memory."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_SIZE + 1)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror or 'no access'}") from None


def _read_request(path: Path) -> Request:
    content = _read(path)
    if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return read_json_request(content, str(path))
    return read_request(content, str(path))

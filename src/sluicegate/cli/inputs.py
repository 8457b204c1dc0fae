"""What commands are given: a catalog's folder and a query, from a file or as text."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path

import sluicegate
from sluicegate.api import Gate
from sluicegate.language.files import read_bounded
from sluicegate.language.lexing import MAX_QUERY_SIZE
from sluicegate.rewrite.manner import Merge, OnPartial
from sluicegate.source import SourceText


class UsageError(Exception):
    """The command was called wrongly: exit status 2."""


def add_catalog(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("catalog", metavar="CATALOG", help="folder of `*.sql` files, read together")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="answer as JSON")


def add_request(parser: argparse.ArgumentParser) -> None:
    """A catalog, a user and a query."""
    add_catalog(parser)
    parser.add_argument("--as", dest="user", metavar="USER", type=recover, required=True, help="who asks")
    parser.add_argument("query", metavar="QUERY", help="a file, or text if it contains a space")


def add_manner(parser: argparse.ArgumentParser) -> None:
    """How policy and query are put together, where there is a choice."""
    merged = "`paper`: refuse windows finer than a grant allows, as eXACML+ does, instead of widening them"
    parser.add_argument("--merge", choices=[each.value for each in Merge], default="widen", help=merged)
    partial = "`refuse`: nothing, where only a part of what is asked for may be given"
    parser.add_argument(
        "--on-partial", choices=[each.value for each in OnPartial], default="give", help=partial
    )


def add_moment(parser: argparse.ArgumentParser) -> None:
    told = "the clock for XACML policies that read it, such as 2026-03-01T09:00:00Z; else now"
    parser.add_argument("--at", metavar="TIMESTAMP", help=told)


def read_moment(given: str | None) -> datetime | None:
    """What `--at` says; without a time zone it is in UTC."""
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given.strip())
    except ValueError:
        raise UsageError(f"`{given}` is not a time such as 2026-03-01T09:00:00Z") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def recover(given: str) -> str:
    """An argument as UTF-8, also where the locale made Python read its bytes otherwise; paths are left as they are."""
    try:
        return os.fsencode(given).decode("utf-8")
    except UnicodeError:
        return given


def find_catalog(given: str) -> Path:
    """The folder; an empty name, as an unset variable leaves it, is not the current one."""
    path = Path(given) if given and "\0" not in given else None
    if path is None or not path.exists():
        raise UsageError(f"the catalog `{given}` does not exist")
    if not path.is_dir():
        raise UsageError(f"the catalog `{given}` is not a folder")
    return path


def find_catalog_part(given: str) -> Path:
    """A catalog's folder, or one of its files."""
    path = Path(given) if given and "\0" not in given else None
    if path is None or not path.exists():
        raise UsageError(f"the catalog `{given}` does not exist")
    if not path.is_dir() and path.suffix.lower() not in (".sql", ".xml"):
        raise UsageError(f"the catalog `{given}` is no folder, `*.sql` or `*.xml` file")
    return path


def open_gate(given: str) -> Gate:
    return sluicegate.open(find_catalog(given))


def read_query_text(given: str) -> SourceText:
    """The query: text if it contains a space, otherwise the content of a file."""
    if any(char.isspace() for char in given):
        return SourceText("<query>", recover(given))
    path = Path(given) if given and "\0" not in given else None
    if path is None or not path.exists():
        raise UsageError(f"there is no file `{given}`; a query given as text contains a space")
    return SourceText(given, read_bounded(path, None, MAX_QUERY_SIZE))

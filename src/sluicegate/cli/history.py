"""`sluicegate history`: what was changed, when, by whom and why."""

from __future__ import annotations

import argparse

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import add_json
from sluicegate.cli.stores import add_store, open_given
from sluicegate.cli.tables import draw_table
from sluicegate.service.store import Entry

NAME = "history"
SUMMARY = "list the store's versions, or show what leads from one to another"
EXAMPLE = """\
  sluicegate history --store sqlite:///sluicegate.db
  sluicegate history --after 3 --statements
  sluicegate history --diff 3 5"""
_SHOWN = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument("--after", metavar="N", type=int, default=0, help="only versions after this one")
    parser.add_argument("--statements", action="store_true", help="with the statements of each version")
    told = "statements that would turn the catalog of version A into that of version B"
    parser.add_argument("--diff", metavar=("A", "B"), nargs=2, type=int, help=told)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    with open_given(args) as store:
        if args.diff:
            return _tell_diff(args, console, store.diff(*args.diff))
        entries = store.history(max(0, args.after))
    if args.json:
        console.write_json([each.to_json() for each in entries])
    elif not entries:
        console.write("no versions")
    elif args.statements:
        console.write("\n\n".join(_write_whole(console, each) for each in entries))
    else:
        rows = [[*_write_head(each), _summarize(each)] for each in entries]
        console.write(draw_table(console, ["version", "time", "by", "reason", "statements"], rows))
    return 0


def _tell_diff(args: argparse.Namespace, console: Console, texts: list[str]) -> int:
    if args.json:
        console.write_json({"statements": texts})
    else:
        console.write("\n".join(texts) or "nothing differs")
    return 0


def _write_head(entry: Entry) -> list[str]:
    return [str(entry.version), f"{entry.time[:19]}Z", entry.shown_author, _cut(entry.reason)]


def _write_whole(console: Console, entry: Entry) -> str:
    version, time, author, _ = _write_head(entry)
    head = console.style(f"version {version}", "bold")
    return f"{head}  {time}  {author}  {entry.reason}\n{entry.text.rstrip()}"


def _summarize(entry: Entry) -> str:
    first, *rest = entry.statements
    return _cut(first) + (f" and {len(rest)} more" if rest else "")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"

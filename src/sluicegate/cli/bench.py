"""`sluicegate bench`: measurements, listed or run."""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_json
from sluicegate.cli.tables import draw_rows, write_value

NAME = "bench"
SUMMARY = "measure, as ratios in one run; without a name, list what can be measured"
EXAMPLE = """\
  sluicegate bench
  sluicegate bench rewrite --json
  sluicegate bench share --rows 50000"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="which measurement")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument(
        "--rows", metavar="N", type=int, help="rows of each source, where it is measured on Spark"
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=int,
        help="about how long it may take, where it can leave something out",
    )
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="where to keep the results")
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    known = find_benchmarks()
    if args.name is None:
        return _list(known, args.json, console)
    if args.name not in known:
        raise UsageError(f"unknown benchmark `{args.name}`; known: {', '.join(known) or 'none'}")
    given = _sizes(known[args.name], args)
    result = known[args.name].run(json=args.json, out=args.out, quick=args.quick, **given)
    if args.json:
        console.write_json(result)
    else:
        console.write("\n".join(_tell(console, result, "")))
    return 0


def _sizes(benchmark: ModuleType, args: argparse.Namespace) -> dict[str, int]:
    given = {name: value for name in ("rows", "seconds") if (value := getattr(args, name)) is not None}
    for name, value in given.items():
        if name not in inspect.signature(benchmark.run).parameters:
            raise UsageError(f"`{args.name}` has no {name}")
        if value < 1:
            raise UsageError(f"`--{name}` takes a positive number")
    return given


def find_benchmarks() -> dict[str, ModuleType]:
    """The modules of `sluicegate.bench` that say they are one, by name."""
    package = importlib.import_module("sluicegate.bench")
    names = [info.name for info in pkgutil.iter_modules(package.__path__, "sluicegate.bench.")]
    modules = [importlib.import_module(name) for name in sorted(names)]
    return {module.NAME: module for module in modules if hasattr(module, "NAME") and hasattr(module, "run")}


def _list(known: dict[str, ModuleType], as_json: bool, console: Console) -> int:
    if as_json:
        console.write_json({name: module.SUMMARY for name, module in known.items()})
        return 0
    width = max(map(len, known), default=0)
    for name, module in known.items():
        console.write(f"{name.ljust(width)}  {module.SUMMARY}")
    return 0


def _tell(console: Console, value: object, lead: str) -> Iterator[str]:
    """Results of any shape: entries by name, lists of records as tables."""
    match value:
        case dict():
            for key, part in value.items():
                if isinstance(part, dict | list):
                    yield f"{lead}{console.style(str(key), 'bold')}"
                    yield from _tell(console, part, lead + "  ")
                else:
                    yield f"{lead}{key}: {write_value(part)}"
        case list():
            records = [each for each in value if isinstance(each, dict)]
            if records and len(records) == len(value):
                yield from (lead + line for line in draw_rows(console, records).split("\n"))
            else:
                yield from (lead + write_value(each) for each in value)
        case _:
            yield lead + write_value(value)

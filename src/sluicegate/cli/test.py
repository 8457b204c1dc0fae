"""`sluicegate test`: the policy tests that are kept beside the policies."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from sluicegate.cli.console import Console
from sluicegate.cli.inputs import UsageError, add_catalog, add_json, find_catalog
from sluicegate.testing.corpus import Case, load_corpus
from sluicegate.testing.run_case import ENGINES, Difference, judge_case

NAME = "test"
SUMMARY = "run the policy tests beside the policies (`*.test.yaml`)"
EXAMPLE = """\
  sluicegate test examples/soldiers
  sluicegate test examples/soldiers --engine reference"""


@dataclass(frozen=True, slots=True)
class Verdict:
    case: Case
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        return not self.differences


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    engines = (
        "what runs the queries (interpreter); `reference` is the model of the rules, which rewrites nothing"
    )
    parser.add_argument("--engine", choices=list(ENGINES), default="interpreter", help=engines)
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """1 when a case fails."""
    if args.engine == "duckdb" and find_spec("duckdb") is None:
        raise UsageError("the engine `duckdb` needs the package: pip install 'sluicegate[duckdb]'")
    cases = list(_find_cases(find_catalog(args.catalog)))
    if not cases:
        raise UsageError(f"`{args.catalog}` has no tests: write a `*.test.yaml` beside the policies")
    verdicts = [Verdict(case, tuple(judge_case(case, args.engine))) for case in cases]
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if args.json:
        console.write_json(_report(verdicts, len(failed)))
    else:
        console.write(_tell(console, verdicts, failed))
    return 1 if failed else 0


def _find_cases(folder: Path) -> Iterator[Case]:
    for file in sorted(folder.glob("*.test.yaml")):
        for corpus in load_corpus(file):
            yield from corpus.cases


def _report(verdicts: list[Verdict], failed: int) -> dict[str, object]:
    cases = [
        {
            "file": str(verdict.case.file),
            "name": verdict.case.name,
            "passed": verdict.passed,
            "differences": [asdict(each) for each in verdict.differences],
        }
        for verdict in verdicts
    ]
    return {"passed": len(verdicts) - failed, "failed": failed, "cases": cases}


def _tell(console: Console, verdicts: list[Verdict], failed: list[Verdict]) -> str:
    summary = f"{len(verdicts) - len(failed)} passed, {len(failed)} failed"
    told = [_tell_failure(console, verdict) for verdict in failed]
    return "\n\n".join([*told, console.style(summary, "red" if failed else "green")])


def _tell_failure(console: Console, verdict: Verdict) -> str:
    case = verdict.case
    lines = [f"{console.style('FAILED', 'red', 'bold')} {case.label}", f"  {case.user} asks: {case.query}"]
    for each in verdict.differences:
        lines.append(f"  {console.style(each.what, 'bold')}")
        if each.lines:
            lines += [f"    {_mark(console, line)}" for line in each.lines]
        else:
            lines += [f"    expected: {each.expected}", f"    got:      {each.got}"]
    return "\n".join(lines)


def _mark(console: Console, line: str) -> str:
    if line.startswith("missing: "):
        return console.style(line.replace("missing: ", "- expected: ", 1), "red")
    if line.startswith("not expected: "):
        return console.style(line.replace("not expected: ", "+ got:      ", 1), "green")
    return line

"""`sluicegate demo --explain`: one question, three users, three answers, on the soldiers' example."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import sluicegate
from sluicegate.api import Gate
from sluicegate.cli.console import Console
from sluicegate.cli.explain_text import draw_authorized, draw_graph, indent, tell_decision
from sluicegate.cli.tables import draw_rows
from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP
from sluicegate.expr.values import read_timestamp
from sluicegate.graph.interpret import Data, result_rows
from sluicegate.graph.interpret import run as run_graph
from sluicegate.graph.present import present_rows, present_value
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Stream
from sluicegate.rewrite.explain import Explanation
from sluicegate.rewrite.explain_json import released_plan

QUERY = "SELECT AVG(Pos) AS avg_pos FROM Position [RANGE 1 HOUR]"
USERS = ("paul", "cole", "olga")


def explain_soldiers(console: Console) -> int:
    """Needs neither Spark nor Java."""
    folder = find_example("soldiers")
    gate = sluicegate.open(folder)
    data = {name: list(_read_input(folder, stream)) for name, stream in gate.catalog.streams.items()}
    console.write("\n\n".join([_introduce(console, gate, data), *_answers(console, gate, data)]))
    return 0


def find_example(name: str) -> Path:
    """A catalog: packed into a wheel beside this package, in a checkout among the examples."""
    package = Path(sluicegate.__file__).parent
    for folder in (package / "demo" / name, package.parents[1] / "examples" / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("the demo's catalog is missing from this installation")


def _read_input(folder: Path, stream: Stream) -> Iterator[dict[str, Value]]:
    """The tuples of `<stream>.jsonl`, times as microseconds."""
    times = {name for name, of in stream.attributes if of == TIMESTAMP}
    file = folder / f"{stream.name.lower()}.jsonl"
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield {name: read_timestamp(value) if name in times else value for name, value in row.items()}


def _introduce(console: Console, gate: Gate, data: Data) -> str:
    tuples = data["Position"]
    asked = gate.read(QUERY)
    shown = [{**row, "ts": present_value(row["ts"], TIMESTAMP)} for row in tuples]
    return "\n\n".join(
        [
            f"{console.style('The stream Position', 'bold')}\n{indent(draw_rows(console, shown))}",
            f"{console.style('Three users ask', 'bold')}\n{indent(QUERY)}",
            f"{console.style('as a graph', 'bold')}\n{indent(draw_graph(console, asked.root))}",
        ]
    )


def _answers(console: Console, gate: Gate, data: Data) -> Iterator[str]:
    for user in USERS:
        found = gate.explain(user, QUERY, 0)
        rows = _run_plan(gate, found, data)
        yield "\n".join(
            [
                tell_decision(console, found),
                indent(_describe_user(console, gate, user)),
                indent(draw_authorized(console, found)),
                "",
                indent(draw_rows(console, rows)),
            ]
        )


def _describe_user(console: Console, gate: Gate, user: str) -> str:
    known = gate.catalog.users[user]
    profile = "".join(f", {name} {value.value}" for name, value in known.profile)
    return console.style(f"{', '.join(known.roles)}{profile}", "dim")


def _run_plan(gate: Gate, found: Explanation, data: Data) -> list[dict[str, object]]:
    plan = released_plan(found)
    if plan is None:
        return []
    rows = run_graph(plan.root, data, environment(gate.catalog, found.user))
    return present_rows(plan, result_rows(rows, plan.outputs, plan.label))

"""One case through everything: the reference model, the rewritten graph in plain Python, the same graph in DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sluicegate.expr.nodes import Value
from sluicegate.graph.interpret import result_rows, run
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.environment import environment
from sluicegate.rewrite.named_results import Results
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.testing.cases import Case
from sluicegate.testing.duckdb_run import run_duckdb
from sluicegate.testing.in_force import settle
from sluicegate.testing.oracle import expected

ResultRow = Mapping[str, Value]


@dataclass(frozen=True)
class Outcome:
    """How many rows the model gave, and what differed, if anything."""

    rows: int
    difference: str | None = None


def authorize(case: Case) -> AuthorizedPlan | None:
    """The plan that the rewriter makes of the case, on top of those of the named results that it reads."""
    results = Results(case.catalog)
    catalog = results.seat(case.catalog, case.user, case.root)
    plan = rewrite(catalog, case.catalog.users[case.user], case.root, case.united).plan
    return None if plan is None else results.inline(plan)


def interpret(case: Case, plan: AuthorizedPlan | None) -> list[dict[str, Value]]:
    """The plan's rows by the graph interpreter."""
    if plan is None:
        return []
    data = settle(case.data, case.catalog.streams)
    rows = run(plan.root, data, environment(case.catalog, case.user))
    return result_rows(rows, plan.outputs, plan.label)


def compare_case(case: Case, duckdb: bool = True) -> Outcome:
    """Correct and complete (I3): both engines give exactly the model's rows."""
    model = expected(case.catalog, case.user, case.root, case.outputs, case.data, case.united).rows
    plan = authorize(case)
    difference = _difference("interpreter", model, interpret(case, plan))
    if difference is None and duckdb and plan is not None:
        env = environment(case.catalog, case.user)
        rows = run_duckdb(plan, case.data, case.catalog.streams, env)
        difference = _difference("duckdb", model, rows)
    return Outcome(len(model), difference)


def _difference(engine: str, model: Iterable[ResultRow], rows: Iterable[ResultRow]) -> str | None:
    wanted, got = as_bag(model), as_bag(rows)
    if wanted == got:
        return None
    missing, extra = wanted - got, got - wanted
    lines = [f"{engine} differs from the model"]
    lines += [f"  missing: {dict(row)}" for row in missing.elements()]
    lines += [f"  not expected: {dict(row)}" for row in extra.elements()]
    return "\n".join(lines)


def as_bag(rows: Iterable[ResultRow]) -> Counter[tuple[tuple[str, object], ...]]:
    """Rows as a bag; engines may differ in the last digits of a sum of doubles."""
    return Counter(tuple(sorted((name, _comparable(value)) for name, value in row.items())) for row in rows)


def _comparable(value: Value) -> object:
    if isinstance(value, float):
        return ("double", 0.0 if value == 0 else _rounded(value))
    return (type(value).__name__, value)


def _rounded(value: float) -> float:
    return float(f"{value:.9e}")

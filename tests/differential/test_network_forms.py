"""Units as networks know them, with constants put in and in canonical form, give the rows that they gave before (R17)."""

from __future__ import annotations

from random import Random

from counters import record_cases
from sluicegate.errors import DiagnosticError
from sluicegate.expr.evaluate import EMPTY
from sluicegate.graph.interpret import result_rows, run
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.environment import environment
from sluicegate.rewrite.sharing.optimize import build_network, normalize
from sluicegate.runtime.network.bind_shape import bind_shape
from sluicegate.runtime.network.shapes import find_shape
from sluicegate.runtime.network.shared import may_share
from sluicegate.runtime.network.units import find_units
from sluicegate.testing.cases import Case, describe, random_case
from sluicegate.testing.differential import as_bag, authorize
from sluicegate.testing.in_force import settle

CASES = 300


def list_units(case: Case) -> list[AuthorizedPlan]:
    """The case's units that may run in networks."""
    plan = authorize(case)
    if plan is None:
        return []
    shaped = find_shape(plan, environment(case.catalog, case.user))
    try:
        units = find_units(shaped.shape)
    except DiagnosticError:
        return []
    return [bind_shape(unit.plan, shaped.constants) for unit in units if may_share(unit)]


def test_units_in_network_form() -> None:
    compared = rows = 0
    for number in range(CASES):
        case = random_case(Random(f"forms:{number}"))
        data = settle(case.data, case.catalog.streams)
        for unit in list_units(case):
            wanted = as_bag(result_rows(run(unit.root, data, EMPTY), unit.outputs, unit.label))
            made = build_network({"q": normalize(unit)}).plan("q")
            got = as_bag(result_rows(run(made.root, data, EMPTY), made.outputs, made.label))
            assert got == wanted, describe(case)
            compared, rows = compared + 1, rows + sum(wanted.values())
    record_cases("units in network form", compared, rows)
    assert compared > CASES / 4
    assert rows > 100

"""Shields that an engine moves up: how far they may go, what stays below them, and when it pays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sluicegate.graph.operators import Join, Node, RaisedShield, Select, Shield, shields, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.load import read_catalog
from sluicegate.runtime.network.authorize import Allowed, authorize
from sluicegate.runtime.network.estimate import OVER_FROM, Seen, choose_placement, find_share
from sluicegate.runtime.network.lift import is_lifted
from sluicegate.runtime.network.placement import Placement, place_shields
from sluicegate.runtime.network.units import find_units
from sluicegate.targets.spark_live import find_parameters

CATALOG = read_catalog(
    """
CREATE ROLE A; CREATE ROLE B;
CREATE USER o;
CREATE STREAM M (ts TIMESTAMP, obj INT, dest INT, speed DOUBLE) TIMESTAMP BY ts WATERMARK '1 second'
  OWNER o PUNCTUATED BY obj GOVERNED BY PROVIDER;
CREATE STREAM N (ts TIMESTAMP, obj INT, dest INT, speed DOUBLE) TIMESTAMP BY ts WATERMARK '1 second'
  OWNER o PUNCTUATED BY obj GOVERNED BY PROVIDER;
CREATE USER u ROLES (A, B);
"""
)
ONE = "SELECT obj FROM M WHERE speed > 5"
JOIN = (
    "SELECT a.obj, b.obj AS other FROM M [{}] AS a JOIN N [RANGE 5 SECONDS] AS b ON a.dest = b.dest"
    " WHERE a.speed > 3"
)
TIMED, COUNTED = JOIN.format("RANGE 5 SECONDS"), JOIN.format("ROWS 10")


def shape_of(query: str) -> AuthorizedPlan:
    found = authorize(CATALOG, "u", query)
    assert isinstance(found, Allowed)
    return found.shaped.shape


def list_below(root: Node, kind: type[Node]) -> list[type[Node]]:
    return [type(each) for node in walk(root) if isinstance(node, kind) for each in walk(node.inputs[0])]


def test_a_shield_goes_past_selections() -> None:
    plan = shape_of(ONE)
    placed = place_shields(plan, Placement.UP)
    assert Select in list_below(placed.root, RaisedShield)
    assert Shield not in map(type, walk(placed.root))
    assert shields(placed.root) == shields(plan.root)
    assert placed.outputs == plan.outputs
    assert place_shields(plan, Placement.DOWN) is plan


def test_shields_go_past_a_join_when_asked() -> None:
    plan = shape_of(TIMED)
    up, over = (place_shields(plan, each) for each in (Placement.UP, Placement.OVER))
    assert Join not in list_below(up.root, RaisedShield)
    assert list_below(over.root, RaisedShield).count(Join) == 2
    assert set(shields(over.root)) == set(shields(plan.root))


def test_nothing_goes_past_a_window_that_counts_rows() -> None:
    placed = place_shields(shape_of(COUNTED), Placement.OVER)
    assert Join not in list_below(placed.root, RaisedShield)


def test_a_shared_join_has_no_parameter_below() -> None:
    plan = shape_of(TIMED)
    assert not is_lifted(plan)
    (unit,) = find_units(plan)
    assert unit.shared is not None
    assert is_lifted(unit.shared)
    used = [find_parameters(node) for node in walk(unit.shared.root)]
    assert frozenset().union(*used) == frozenset().union(*(find_parameters(node) for node in walk(plan.root)))


def _seen(passing: int, of: int) -> Seen:
    """The needed attribute is the third and, for speed, the fourth; classes from `passing` on let nobody through."""
    classes = list(range(passing))
    masks = {f"m{at}": pa.array([1] * passing, pa.int64()) for at in range(4)}
    verdicts = pa.table(
        {"who": pa.array([0] * passing, pa.int64()), "h_policy": pa.array(classes, pa.int64()), **masks}
    )
    return Seen(np.arange(1000) % of, verdicts)


def test_the_share_that_passes_decides() -> None:
    plan = shape_of(TIMED)
    (left, right) = shields(plan.root)
    assert find_share(left, _seen(5, 10)) == pytest.approx(0.5)
    assert find_share(right, _seen(0, 10)) == 0
    assert find_share(left, Seen(np.empty(0, np.int64), _seen(1, 1).verdicts)) == 0
    assert choose_placement(plan, lambda _: _seen(10, 10)) is Placement.OVER
    assert choose_placement(plan, lambda _: _seen(5, 10)) is Placement.OVER
    assert choose_placement(plan, lambda _: _seen(1, 10)) is Placement.DOWN
    # one side that loses most is enough
    sides = iter([_seen(10, 10), _seen(1, 10)])
    assert choose_placement(plan, lambda _: next(sides)) is Placement.DOWN
    assert choose_placement(shape_of(ONE), lambda _: _seen(10, 10)) is Placement.DOWN
    assert 0.1 < OVER_FROM <= 0.5


def test_a_mask_that_lets_an_attribute_be_needed_but_not_seen_does_not_pass() -> None:
    (left, _) = shields(shape_of(TIMED).root)
    seen = _seen(10, 10)
    hidden = seen.verdicts.set_column(
        seen.verdicts.column_names.index("m3"), "m3", pa.array([2] * 10, pa.int64())
    )
    assert find_share(left, Seen(seen.policies, hidden)) == 0

"""Conditions below joins, as early as they can be judged; and versions that are told apart by one number."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from sluicegate.api import Gate
from sluicegate.expr.nodes import Compare, Literal, Op
from sluicegate.graph.operators import Join, Node, Select, walk
from sluicegate.graph.rebuild import rebuild
from sluicegate.language.load import read_catalog
from sluicegate.runtime.network.lift import lower_joins
from sluicegate.runtime.network.shapes import find_shape
from sluicegate.runtime.stream.live_table import find_version

_CATALOG = """
CREATE STREAM T (ts TIMESTAMP, x INT, y INT, kind STRING) TIMESTAMP BY ts WATERMARK '1 second';
CREATE ROLE Reader;
CREATE USER ann ROLES (Reader) SET (kind = '{kind}');
CREATE GRANT own READ (ts, x, y) ON T WHERE kind = self.kind TO Reader;
"""


def _shape(query: str, kind: str = "a") -> Node:
    allowed = Gate(read_catalog(_CATALOG.format(kind=kind))).authorize("ann", query)
    assert allowed.plan is not None
    return lower_joins(find_shape(allowed.plan, allowed.environment).shape).root


def _above_joins(root: Node) -> list[Select]:
    below = {id(each) for node in walk(root) if isinstance(node, Join) for each in walk(node)}
    return [node for node in walk(root) if isinstance(node, Select) and id(node) not in below]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("a.x > 1", 0),
        ("a.x > 1 AND b.y < 2", 0),
        ("a.x > 1 OR b.y < 2", 1),
        ("a.x < b.y", 1),
        ("a.x < b.y AND a.x > 3 AND b.ts IS NOT NULL", 1),
    ],
)
def test_what_one_side_decides_stands_below_the_join(where: str, left: int) -> None:
    root = _shape(
        f"SELECT a.x FROM T AS a [RANGE 9 SECONDS] JOIN T AS b [RANGE 9 SECONDS] ON a.x = b.x WHERE {where}"
    )
    assert len(_above_joins(root)) == left


def test_the_last_tuples_of_a_stream_are_counted_as_they_were() -> None:
    """A condition below such a join would choose which tuples count among the last."""
    query = "SELECT a.x FROM T AS a [ROWS 2] JOIN T AS b [ROWS 2] ON a.x = b.x WHERE a.y > b.y"
    allowed = Gate(read_catalog(_CATALOG.format(kind="a"))).authorize("ann", query)
    assert allowed.plan is not None
    plan = find_shape(allowed.plan, allowed.environment).shape
    (join,) = [node for node in walk(plan.root) if isinstance(node, Join)]
    condition = Compare(Op.GT, join.left.fields[0].column, Literal(1, join.left.fields[0].type))
    above = replace(
        plan, root=rebuild(plan.root, lambda node: Select(node, condition) if node == join else node)
    )
    (chosen,) = [node for node in walk(lower_joins(above).root) if isinstance(node, Join)]
    assert chosen == join


def test_rows_of_two_versions_are_of_none() -> None:
    query = "SELECT x FROM T WHERE x > {}"
    found = []
    for kind in "abcdefgh":
        for least in range(9):
            allowed = Gate(read_catalog(_CATALOG.format(kind=kind))).authorize("ann", query.format(least))
            assert allowed.plan is not None
            found.append(find_version(find_shape(allowed.plan, allowed.environment)))
    assert len(set(found)) == len(found)
    assert all(-(2**63) <= each < 2**63 for each in found)
    assert {(each % 2**64).bit_count() for each in found} == {32}
    for one, other in combinations(found, 2):
        assert (one | other) not in found


def test_nobody_finds_two_values_of_one_version() -> None:
    """A number of 32 bits is met twice within a second: whoever may choose a literal could choose one of another version."""
    allowed = Gate(read_catalog(_CATALOG.format(kind="a"))).authorize("ann", "SELECT x FROM T")
    assert allowed.plan is not None
    shaped = find_shape(allowed.plan, allowed.environment)
    (own,) = [each for each in shaped.constants if isinstance(each, Literal) and each.value == "a"]
    found = {
        find_version(replace(shaped, constants=(replace(own, value=f"k{number}"),)))
        for number in range(1 << 17)
    }
    assert len(found) == 1 << 17

"""The protection-object form of query graphs, after Definition 4.1 and Algorithm 1 of seed 000."""

from __future__ import annotations

from sluicegate.expr.nodes import Column
from sluicegate.expr.text import to_text
from sluicegate.expr.types import INT, STRING
from sluicegate.graph.operators import Join, walk
from sluicegate.graph.protection import protection_object
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query

CATALOG = read_catalog("""
CREATE STREAM Position (ts TIMESTAMP, SID STRING, Platoon STRING, Pos DOUBLE) TIMESTAMP BY ts;
CREATE STREAM Health (ts TIMESTAMP, SID STRING, Platoon STRING, Heart INT, BPressure INT) TIMESTAMP BY ts;
""")


def _object(query: str):
    return protection_object(read_query(query, CATALOG).root)


def test_example_3_1_is_a_view_of_one_stream() -> None:
    found = _object("SELECT SID FROM Health WHERE BPressure > 160")
    assert found.streams == ("Health",)
    assert found.attributes == {Column("Health", "SID", STRING)}
    assert [to_text(part) for part in found.predicates] == ["Health.BPressure > 160"]


def test_example_3_2_gathers_the_predicates_of_join_and_selection() -> None:
    found = _object(
        "SELECT AVG(Heart) AS h FROM Position [RANGE 1 HOUR] JOIN Health [RANGE 1 HOUR]"
        " ON Position.SID = Health.SID WHERE Pos >= 100 GROUP BY WINDOW('1 hour')"
    )
    assert found.streams == ("Health", "Position")
    assert found.attributes == {Column("Health", "Heart", INT)}
    assert [to_text(part) for part in found.predicates] == [
        "Position.SID = Health.SID",
        "Position.Pos >= 100",
    ]


def test_a_nested_query_speaks_of_source_attributes() -> None:
    found = _object(
        "SELECT x FROM (SELECT Heart + 1 AS x, SID AS s FROM Health WHERE Heart > 3) AS q WHERE x < 9"
    )
    assert found.attributes == {Column("Health", "Heart", INT)}
    assert [to_text(part) for part in found.predicates] == ["Health.Heart > 3", "Health.Heart + 1 < 9"]


def test_any_subgraph_has_one() -> None:
    root = read_query(
        "SELECT a.SID FROM Health AS a [RANGE 1 HOUR] JOIN Health AS b [RANGE 1 HOUR] ON a.SID = b.SID",
        CATALOG,
    ).root
    (join,) = (node for node in walk(root) if isinstance(node, Join))
    assert protection_object(join).streams == ("Health", "Health")
    assert len(protection_object(join).attributes) == 10
    assert protection_object(join.left).predicates == ()


def test_a_union_names_the_streams_and_attributes_of_all_branches() -> None:
    found = _object("SELECT SID FROM Health WHERE Heart > 3 UNION ALL SELECT SID FROM Position")
    assert found.streams == ("Health", "Position")
    assert {each.qualifier for each in found.attributes} == {"Health", "Position"}
    assert found.predicates == ()

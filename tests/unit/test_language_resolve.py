"""Queries against a catalog: the graphs that are made, and what is wrong where."""

from __future__ import annotations

import pytest

from query_world import CATALOG, refuse, underlined
from sluicegate.expr.nodes import And, Call, Column, Compare, Literal, Op
from sluicegate.expr.types import BIGINT, DOUBLE, INT, STRING, TIME, TIMESTAMP
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    field_of,
    sources,
)
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.language.resolve import read_query

HOUR, MINUTE = 3_600_000_000, 60_000_000


def root_of(text: str) -> Node:
    return read_query(text, CATALOG).root


def source_of(stream: str, alias: str | None = None) -> Source:
    known = CATALOG.streams[stream]
    return Source(stream, alias or stream, known.attributes, known.event_time)


def test_select_and_project() -> None:
    expected = Project(
        Select(
            source_of("Health"),
            Compare(Op.GT, Column("Health", "BPressure", INT), Literal(160, INT)),
        ),
        (Item(Field("", "SID", STRING), Column("Health", "SID", STRING)),),
    )
    assert root_of("SELECT SID FROM Health WHERE BPressure > 160") == expected


def test_aggregate_over_a_window_in_brackets() -> None:
    type_, ships = Column("AIS", "Type", STRING), Field("", "count(DISTINCT SID)", BIGINT)
    aggregate = Aggregate(
        source_of("AIS"),
        (AggCall(AggFunction.COUNT_DISTINCT, Column("AIS", "SID", INT), ships),),
        TimeWindow(HOUR, 10 * MINUTE),
        (Item(field_of(type_), type_),),
    )
    items = [Item(Field("", "Type", STRING), type_), Item(Field("", "ships", BIGINT), ships.column)]
    bounds = [Item(field_of(bound), bound) for bound in (WINDOW_START, WINDOW_END)]
    text = "SELECT Type, COUNT(DISTINCT SID) AS ships FROM AIS [RANGE 1 HOUR SLIDE 10 MINUTES] GROUP BY Type"
    assert root_of(text) == Project(aggregate, (*items, *bounds))
    assert [each.name for each in read_query(text, CATALOG).outputs] == ["Type", "ships"]


def test_having_stands_above_the_aggregate_and_reuses_its_functions() -> None:
    root = root_of("SELECT AVG(Pos) FROM Position [ROWS 4] HAVING AVG(Position.Pos) > 1 AND COUNT(*) > 2")
    assert isinstance(root, Project)
    assert isinstance(root.input, Select)
    aggregate = root.input.input
    assert isinstance(aggregate, Aggregate)
    assert [call.field.name for call in aggregate.calls] == ["avg(Pos)", "count(*)"]
    assert aggregate.window == TupleWindow(4, 4)


def test_comma_joins_take_the_conjuncts_that_use_several_streams() -> None:
    root = root_of(
        "SELECT s1.id FROM A AS s1 [RANGE 5 min, SLIDE 1 min], B AS s2 [RANGE 5 min, SLIDE 1 min] "
        "WHERE s1.loc = s2.loc AND s1.ts > TIME '06:00' AND s2.rate < 3"
    )
    assert isinstance(root, Project)
    assert isinstance(root.input, Select)
    join = root.input.input
    assert isinstance(join, Join)
    assert join.predicate == Compare(Op.EQ, Column("s1", "loc", STRING), Column("s2", "loc", STRING))
    assert join.left_window == join.right_window == TimeWindow(5 * MINUTE, MINUTE)
    since = Compare(
        Op.GT, Call("time_of_day", (Column("s1", "ts", TIMESTAMP),), TIME), Literal(6 * HOUR, TIME)
    )
    slow = Compare(Op.LT, Column("s2", "rate", DOUBLE), Literal(3, INT))
    assert root.input.predicate == And((since, slow))


def test_a_comma_join_of_three_puts_each_conjunct_where_its_streams_meet() -> None:
    root = root_of(
        "SELECT A.SID FROM A [RANGE 2 HOURS], B [RANGE 1 HOUR], Unit WHERE A.id = B.id AND Unit.SID = A.SID"
    )
    assert isinstance(root, Project)
    outer = root.input
    assert isinstance(outer, Join)
    assert outer.predicate == Compare(Op.EQ, Column("Unit", "SID", STRING), Column("A", "SID", STRING))
    assert outer.right_window is None
    assert outer.left_window == TimeWindow(HOUR, 0)


def test_a_table_needs_no_window_and_one_on_it_means_nothing() -> None:
    plain = root_of("SELECT A.SID FROM A JOIN Unit ON A.SID = Unit.SID")
    assert plain == root_of("SELECT A.SID FROM A JOIN Unit [RANGE 1 HOUR] ON A.SID = Unit.SID")


def test_aliases_are_unique_over_nested_queries() -> None:
    root = root_of("SELECT x.SID FROM (SELECT SID FROM A AS x) AS x")
    assert [source.alias for source in sources(root)] == ["x~2"]


def test_unions_take_their_names_from_the_first_branch() -> None:
    root = root_of("SELECT SID AS who FROM A UNION ALL SELECT loc FROM B")
    assert isinstance(root, Union)
    assert root.outputs == (Field("", "who", STRING),)


def test_names_of_outputs() -> None:
    text = "SELECT COUNT(*), COUNT(DISTINCT A.SID), SUM(A.id + 1), MAX(id) + 1, loc FROM A [ROWS 2] GROUP BY A.loc"
    names = [each.name for each in read_query(text, CATALOG).outputs]
    assert names == ["count(*)", "count(DISTINCT SID)", "sum(A.id + 1)", "MAX(id) + 1", "loc"]


WRONG = [
    ("SELECT Platon FROM Position", "unknown-attribute", "Platon"),
    ("SELECT p.Platon FROM Position AS p", "unknown-attribute", "p.Platon"),
    ("SELECT q.Pos FROM Position AS p", "unknown-alias", "q.Pos"),
    ("SELECT q.* FROM Position AS p", "unknown-alias", "q.*"),
    ("SELECT SID FROM Positon", "unknown-stream", "Positon"),
    ("SELECT SID FROM A [ROWS 1], B [ROWS 1]", "ambiguous-attribute", "SID"),
    ("SELECT lenght(SID) AS n FROM A", "unknown-function", "lenght(SID)"),
    ("SELECT start('a') AS n FROM A", "unknown-function", "start('a')"),
    ("SELECT self.Port AS n FROM A", "self-in-query", "self.Port"),
    ("SELECT SID FROM A WHERE ts > '2026-01-01'", "type-mismatch", "ts > '2026-01-01'"),
    ("SELECT SID FROM A WHERE id = 'x'", "type-mismatch", "id = 'x'"),
    ("SELECT SID FROM A WHERE id", "not-a-condition", "id"),
    ("SELECT SID FROM A WHERE id = 1 AND loc", "not-a-condition", "loc"),
    ("SELECT SID + 1 AS x FROM A", "type-mismatch", "SID + 1"),
    ("SELECT -SID AS x FROM A", "type-mismatch", "SID"),
    ("SELECT upper(id) AS x FROM A", "type-mismatch", "upper(id)"),
    ("SELECT CAST(ts AS INT) AS x FROM A", "bad-cast", "ts"),
    ("SELECT CAST(id AS INTEGR) AS x FROM A", "unknown-type", "INTEGR"),
    ("SELECT CASE WHEN id = 1 THEN 'a' ELSE 2 END AS x FROM A", "type-mismatch", "id = 1 THEN 'a' ELSE 2"),
    ("SELECT SID FROM A WHERE id IN {1, 2}", "set-in-query", "id IN {1, 2}"),
    ("SELECT date_trunc('hou', ts) AS x FROM A", "bad-argument", "'hou'"),
    ("SELECT SID FROM A WHERE AVG(id) > 1", "misplaced-aggregate", "AVG(id)"),
    ("SELECT SUM(MAX(id)) FROM A [ROWS 2]", "misplaced-aggregate", "MAX(id)"),
    ("SELECT SUM(SID) FROM A [ROWS 2]", "type-mismatch", "SUM(SID)"),
    ("SELECT SUM(DISTINCT id) FROM A [ROWS 2]", "bad-aggregate", "SUM(DISTINCT id)"),
    ("SELECT loc, COUNT(*) FROM A [ROWS 2]", "not-grouped", "loc"),
    ("SELECT *, COUNT(*) FROM A [ROWS 2]", "star-in-aggregate", "*"),
    ("SELECT COUNT(*) FROM A [ROWS 2] GROUP BY 1", "group-constant", "1"),
    ("SELECT COUNT(*) FROM A [ROWS 2] GROUP BY WINDOW('1 hour')", "window-twice", "WINDOW('1 hour')"),
    ("SELECT SID FROM A [ROWS 2] JOIN B ON A.id = B.id", "join-window", "B"),
    ("SELECT A.SID FROM A [ROWS 2 SLIDE 1] JOIN B [ROWS 2] ON A.id = B.id", "join-rows-step", "[ROWS 2 SLIDE 1]"),
    ("SELECT COUNT(*) FROM Unit [RANGE 1 HOUR]", "table-window", "[RANGE 1 HOUR]"),
    ("SELECT SID FROM A [RANGE 1 HOUR]", "idle-window", "[RANGE 1 HOUR]"),
    ("SELECT SID, loc AS SID FROM A", "duplicate-output", "loc AS SID"),
    ("SELECT SID AS window_start FROM A", "reserved-name", "SID AS window_start"),
    ("SELECT NULL AS x FROM A", "output-type", "NULL AS x"),
    ("SELECT ts - ts AS x FROM A", "output-type", "ts - ts AS x"),
    ("SELECT x.SID FROM A AS x [ROWS 1], B AS x [ROWS 1]", "duplicate-alias", "B"),
    ("SELECT SID FROM A UNION ALL SELECT id FROM B", "union-mismatch", "SELECT id FROM B"),
    ("SELECT SID FROM A UNION ALL SELECT SID, id FROM B", "union-mismatch", "SELECT SID, id FROM B"),
    ("SELECT LAST(n) FROM (SELECT COUNT(*) AS n FROM A [ROWS 2]) AS x [RANGE 1 DAY]", "no-order", "LAST(n)"),
    ("SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM A [ROWS 2]) AS x [ROWS 2]", "no-order", "[ROWS 2]"),
    ("SELECT n FROM (SELECT UNITED COUNT(*) AS n FROM A [RANGE 1 DAY]) AS x", "nested-united",
     "SELECT UNITED COUNT(*) AS n FROM A [RANGE 1 DAY]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "shown"), WRONG)
def test_says_what_is_wrong_where(text: str, code: str, shown: str) -> None:
    assert (code, shown) in underlined(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT AVG(Pos) FROM Position", "no-window"),
        ("SELECT COUNT(*) FROM A [ROWS 1] JOIN B [ROWS 1] ON A.id = B.id", "no-window"),
        ("SELECT SID FROM A [ROWS 2] GROUP BY SID", "no-aggregate"),
        ("SELECT UNITED AVG(id) FROM A [RANGE 1 DAY]", "united"),
        ("SELECT UNITED SUM(id) FROM A [ROWS 2]", "united"),
        ("SELECT UNITED SID FROM A", "united"),
        (
            "SELECT c.SID FROM A [ROWS 1] JOIN B [RANGE 1 DAY] ON A.id = B.id JOIN A AS c [ROWS 1] ON c.id = A.id",
            "window-mixed",
        ),
        ("SELECT SID FROM A WHERE (id = 1 BETWEEN FALSE AND TRUE)", "chained-comparison"),
        ("SELECT SID FROM A WHERE (id BETWEEN 1 AND 2) BETWEEN FALSE AND TRUE", "nested-between"),
    ],
)
def test_says_what_is_wrong_with_a_select(text: str, code: str) -> None:
    assert code in [each.code for each in refuse(text)]


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("SELECT Platon FROM Position", "did you mean `Platoon`?"),
        ("SELECT platoon FROM Position", "did you mean `Platoon`? names are case-sensitive"),
        ("SELECT SID FROM positon", "did you mean `Position`?"),
        ("SELECT lenght(SID) AS n FROM A", "did you mean `length`?"),
        ("SELECT SID FROM A [ROWS 1], B [ROWS 1]", "write one of `A.SID`, `B.SID`"),
        ("SELECT SID FROM A WHERE ts > '2026-01-01'", "write a time as TIMESTAMP '2026-01-31 10:50:00'"),
    ],
)
def test_helps(text: str, help_: str) -> None:
    assert help_ in [each.help for each in refuse(text)]


def test_names_the_stream_of_an_unknown_attribute() -> None:
    assert (
        refuse("SELECT Platon FROM Position")[0].message == "unknown attribute `Platon` of stream `Position`"
    )


def test_tells_all_problems_of_a_query() -> None:
    found = underlined("SELECT Platon, upper(Pos) FROM Position WHERE sid = 1 AND Pos = 'x'")
    assert found == [
        ("unknown-attribute", "sid"),
        ("type-mismatch", "Pos = 'x'"),
        ("unknown-attribute", "Platon"),
        ("type-mismatch", "upper(Pos)"),
    ]

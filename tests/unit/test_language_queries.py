"""Queries: what is read, printed and read again, and what is refused where."""

from __future__ import annotations

import pytest

from query_world import CATALOG, refuse, underlined
from sluicegate.language.graph_to_query import graph_to_query, resolved_to_query
from sluicegate.language.print_query import print_query
from sluicegate.language.queries import parse_query
from sluicegate.language.query_syntax import NestedItem, Start, StreamItem, WindowSpec
from sluicegate.language.resolve import read_query

HOUR = 3_600_000_000

LANGUAGE = [
    "SELECT SID FROM Health WHERE BPressure > 160;",
    "SELECT Type, COUNT(DISTINCT SID) AS ships FROM AIS [RANGE 1 HOUR SLIDE 10 MINUTES] GROUP BY Type;",
    "SELECT AVG(rainrate), LAST(samplingtime) FROM weather [ROWS 10 SLIDE 2] WHERE rainrate > 50;",
    """SELECT Health.SID, Heart FROM Position [RANGE 1 HOUR] JOIN Health [RANGE 1 HOUR]
         ON Position.SID = Health.SID WHERE Pos >= 100;""",
    """SELECT AVG(Heart) FROM Position [RANGE 1 HOUR] JOIN Health [RANGE 1 HOUR] ON Position.SID = Health.SID
         WHERE Pos >= 100 GROUP BY WINDOW('1 hour', '30 minutes');""",
    "SELECT SID FROM A UNION ALL SELECT SID FROM B;",
    "SELECT UNITED COUNT(DISTINCT SID) FROM AIS [RANGE 1 HOUR SLIDE 10 MINUTES];",
    """SELECT s1.id, s1.rate FROM A AS s1 [RANGE 5 min, SLIDE 1 min], B AS s2 [RANGE 5 min, SLIDE 1 min]
         WHERE s1.loc = s2.loc AND s1.ts > TIME '06:00';""",
    "SELECT SID FROM A START AT EARLIEST",
    "SELECT SID FROM A START AT TIMESTAMP '2026-01-01T10:00:00Z';",
    """SELECT Patient_id, Beats_per_min FROM HeartRate WHERE Beats_per_min > 80
         ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:Cardiologist, SIGN = POSITIVE);""",
]
PAPERS = [
    """SELECT s1.SID, s1.rate FROM A as s1 [RANGE 5 min, SLIDE 1 min], B as s2 [RANGE 5 min, SLIDE 1 min]
         WHERE s1.loc = s2.loc AND s1.ts > 6:00am AND s1.ts < 7:00pm AND s2.rate < 30;""",
    """SELECT s1.SID, s1.rate FROM A as s1 [RANGE 10 min, SLIDE 1 min], B as s2 [RANGE 10 min, SLIDE 1 min],
         Health as s3 [RANGE 10 min, SLIDE 1 min] WHERE s1.loc = s2.loc AND s2.SID = s3.SID AND s1.ts > 8:00am
         AND s1.ts < 7:00pm AND s2.rate < 0 AND s3.Heart > 5;""",
    """SELECT Patient_id,Beats_per_min,Timestamp
       FROM S1
       WHERE Beats_per_min > 80
       ON RESULT(
       INSERT SP AS sp_result INTO STREAM
       LET
       sp_result.DDP = TUPLES:ALL
       sp_result.SRP = frbac:Cardiologist,
       sp_result.SIGN = POSITIVE,
       sp_result.IMMUTABLE = TRUE);""",
]
MORE = [
    "SELECT * FROM A",
    "SELECT x.* FROM A x",
    "SELECT a.SID, b.SID AS other FROM A AS a [RANGE 1 HOUR] INNER JOIN A AS b [RANGE 1 HOUR] ON a.id = b.id",
    "SELECT A.SID, name FROM A JOIN Unit ON A.SID = Unit.SID",
    "SELECT a.SID, Heart FROM (A AS a [ROWS 3] JOIN Unit AS u ON a.SID = u.SID) [ROWS 2] "
    "JOIN Health AS h [RANGE '1 day'] ON h.SID = u.SID",
    "SELECT n + 1 AS m FROM (SELECT COUNT(*) AS n FROM A [RANGE 1 HOUR]) AS x WHERE n > 2",
    "SELECT MAX(n) FROM (SELECT id + 1 AS n FROM A UNION ALL (SELECT id * 2 FROM B UNION ALL SELECT 3L FROM A)) "
    "AS A [RANGE 1 HOUR] WHERE n NOT IN (1, 2) AND n BETWEEN 0 AND 9",
    "SELECT floor(rate / 10) AS bucket, COUNT(*) FROM A [RANGE 90 SECONDS] GROUP BY floor(A.rate / 10) "
    "HAVING COUNT(*) > 2 AND MIN(id) IS NOT NULL",
    "SELECT -id AS x, CASE WHEN id = 1 THEN 'it''s' WHEN rate < 1.5e3 THEN loc ELSE CAST(NULL AS STRING) END AS y, "
    "- -rate AS z FROM A WHERE NOT (loc LIKE 'a\\%%' OR id IN (1, -2)) AND ts + INTERVAL 5 MINUTES > ts",
    "SELECT COUNT(*) AS \"a b\", AVG(rate) AS \"select\" FROM A GROUP BY WINDOW(10 ROWS, 2 ROWS)",
    "SELECT date_trunc('hour', ts) AS h, LAST(rate) FROM A [RANGE 1 HOUR] GROUP BY date_trunc('hour', ts)",
    "SELECT /* what */ SID -- who\nFROM A",
]  # fmt: skip


@pytest.mark.parametrize("text", LANGUAGE + PAPERS + MORE)
def test_reads_back_what_it_prints(text: str) -> None:
    query = parse_query(text)
    assert parse_query(print_query(query)) == query


@pytest.mark.parametrize("text", LANGUAGE + PAPERS + MORE)
def test_prints_graphs_that_read_back(text: str) -> None:
    resolved = read_query(text, CATALOG)
    printed = print_query(resolved_to_query(resolved))
    assert read_query(printed, CATALOG) == resolved
    assert parse_query(printed) == resolved_to_query(resolved)


def test_reads_windows_on_either_side_of_an_alias() -> None:
    spec = WindowSpec(HOUR, None)
    for text in ("A AS s [RANGE 1 HOUR]", "A [RANGE 1 HOUR] AS s", "A s [RANGE '60 min']", "A [RANGE 1h] s"):
        assert parse_query(f"SELECT COUNT(*) FROM {text}").branches[0].sources == (
            StreamItem("A", "s", spec),
        )


def test_united_and_other_words_are_names_where_nothing_else_fits() -> None:
    select = parse_query("SELECT united, timestamp, start, type FROM A AS window").branches[0]
    assert [item.expr.name for item in select.items] == ["united", "timestamp", "start", "type"]
    assert not select.united


def test_brackets_around_branches_and_nested_queries() -> None:
    query = parse_query("SELECT SID FROM ((SELECT SID FROM A) UNION ALL SELECT SID FROM B) AS x")
    nested = query.branches[0].sources[0]
    assert isinstance(nested, NestedItem)
    assert len(nested.query.branches) == 2
    assert parse_query("((SELECT SID FROM A))") == parse_query("SELECT SID FROM A")


def test_start_is_latest_unless_said() -> None:
    assert read_query("SELECT SID FROM A", CATALOG).start is Start.LATEST
    assert read_query("SELECT SID FROM A START AT EARLIEST", CATALOG).start is Start.EARLIEST


REFUSED = [
    ("SELECT SID FROM A LEFT OUTER JOIN B ON A.id = B.id", "join-kind", "LEFT OUTER JOIN"),
    ("SELECT SID FROM A CROSS JOIN B", "join-kind", "CROSS JOIN"),
    ("SELECT SID FROM A NATURAL JOIN B", "join-kind", "NATURAL JOIN"),
    ("SELECT SID FROM A JOIN B USING (id)", "join-using", "USING"),
    ("SELECT SID FROM A JOIN B", "syntax", ""),
    ("SELECT SID FROM A ORDER BY SID", "order-by", "ORDER BY"),
    ("SELECT SID FROM A LIMIT 3", "limit", "LIMIT"),
    ("SELECT DISTINCT SID FROM A", "distinct", "DISTINCT"),
    ("SELECT SID FROM A WHERE id IN (SELECT id FROM B)", "subquery", "SELECT"),
    ("SELECT SID FROM A WHERE EXISTS (SELECT id FROM B)", "subquery", "EXISTS"),
    ("SELECT (SELECT id FROM B) AS x FROM A", "subquery", "SELECT"),
    ("SELECT COUNT(*) OVER (PARTITION BY id) FROM A", "window-function", "OVER"),
    ("SELECT COUNT(*) FILTER (WHERE id > 1) FROM A [ROWS 2]", "filter", "FILTER"),
    ("SELECT SID FROM A UNION SELECT SID FROM B", "union-distinct", "UNION"),
    ("SELECT SID FROM A EXCEPT SELECT SID FROM B", "set-operation", "EXCEPT"),
    ("SELECT SID FROM A INTERSECT SELECT SID FROM B", "set-operation", "INTERSECT"),
    ("WITH x AS (SELECT SID FROM A) SELECT SID FROM x", "with", "WITH"),
    ("VALUES (1, 2)", "values", "VALUES"),
    ("SELECT x FROM VALUES (1, 2)", "values", "VALUES"),
    ("SELECT x FROM LATERAL (SELECT 1) AS x", "lateral", "LATERAL"),
    ("SELECT SID FROM A TABLESAMPLE (10 PERCENT)", "tablesample", "TABLESAMPLE"),
    ("SELECT SID FROM explode(A)", "user-function", "explode"),
    ("SELECT db.f(SID) FROM A", "user-function", "db.f"),
    ("SELECT /*+ BROADCAST(A) */ SID FROM A", "hint", "/*+ BROADCAST(A) */"),
    ("SELECT COUNT(*) FROM A [LANDMARK]", "landmark-window", "LANDMARK"),
    ("SELECT COUNT(*) FROM A [RANGE UNBOUNDED]", "landmark-window", "UNBOUNDED"),
    ("SELECT COUNT(*) FROM A [RANGE 1 MONTH]", "bad-duration", "1 MONTH"),
    ("SELECT COUNT(*) FROM A [ROWS 0]", "empty-window", "0"),
    ("SELECT COUNT(*) FROM A GROUP BY WINDOW(ts, '1 hour')", "syntax", "ts"),
    ("SELECT COUNT(*) FROM A GROUP BY WINDOW('1 hour', 2 ROWS)", "window-mixed", "2 ROWS"),
    ("SELECT COUNT(*) FROM A GROUP BY ROLLUP (id)", "grouping-sets", "ROLLUP"),
    ("SELECT SID FROM (SELECT SID FROM A)", "nested-alias", "(SELECT SID FROM A)"),
    ("SELECT SID FROM (A)", "idle-brackets", "(A)"),
    ("SELECT SID FROM (SELECT SID FROM A START AT LATEST) AS x", "nested-ending", "START AT LATEST"),
    ("SELECT SID FROM A AS self", "reserved-name", "self"),
    ('SELECT SID FROM A AS "#window"', "reserved-name", '"#window"'),
    ("SELECT SID FROM A WHERE id = 1; SELECT 1", "syntax", "SELECT"),
    ("SELECT SID FROM db.A", "syntax", "."),
    ("SELECT SID", "syntax", ""),
    ("DELETE FROM A", "syntax", "DELETE"),
]


@pytest.mark.parametrize(("text", "code", "shown"), REFUSED)
def test_refuses_with_the_place(text: str, code: str, shown: str) -> None:
    assert (code, shown) in underlined(text)


@pytest.mark.parametrize(("text", "code", "shown"), [case for case in REFUSED if case[1] != "syntax"])
def test_says_what_to_write_instead(text: str, code: str, shown: str) -> None:
    silent = {"user-function", "empty-window", "reserved-name", "window-mixed"}
    assert code in silent or any(each.help for each in refuse(text) if each.code == code)


def test_several_problems_are_told_at_once() -> None:
    text = "SELECT DISTINCT SID FROM A LEFT JOIN B USING (id) ORDER BY SID LIMIT 3 UNION SELECT SID FROM B"
    codes = [code for code, _ in underlined(text)]
    assert codes == ["distinct", "join-kind", "join-using", "order-by", "limit", "union-distinct"]


def test_prints_a_graph_with_clashing_aliases() -> None:
    text = "SELECT A.SID FROM (SELECT A.SID, A.id FROM A) AS A [ROWS 2] JOIN A AS B [ROWS 3] ON A.id = B.id"
    resolved = read_query(text, CATALOG)
    again = read_query(print_query(graph_to_query(resolved.root)), CATALOG)
    assert again.root == resolved.root

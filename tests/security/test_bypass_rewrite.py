"""Ways round that worked elsewhere, tried on rewriting; the numbers are those of the list of bypasses.

Expected everywhere: refused, or exactly the rows that the reference model gives, in both engines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from sluicegate.api import Gate
from sluicegate.errors import DiagnosticError, InvariantError
from sluicegate.expr.evaluate import evaluate
from sluicegate.expr.nodes import TRUE, Column, Expr, Value
from sluicegate.expr.solve import implies
from sluicegate.expr.types import BOOLEAN, INT, Type
from sluicegate.graph.interpret import result_rows, run
from sluicegate.graph.operators import Node, Select, Source
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_statements import print_statements
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.environment import environment
from sluicegate.policy.model import User
from sluicegate.rewrite.explain import explain
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.source import SourceText
from sluicegate.targets.duckdb import translate
from sluicegate.testing import duckdb_run
from sluicegate.testing.differential import as_bag
from sluicegate.testing.oracle import expected

HOUR = 3_600_000_000
Row = Mapping[str, Value]

STREAMS = """
CREATE STREAM S (ts TIMESTAMP, id STRING, n INT, x DOUBLE, b BIGINT, c BIGINT) TIMESTAMP BY ts OWNER olga;
CREATE STREAM T (ts TIMESTAMP, id STRING, k INT) TIMESTAMP BY ts;
CREATE ROLE R; CREATE USER olga; CREATE USER u ROLES (R); CREATE USER eve;
"""
READ = "CREATE GRANT low READ (id, n) ON S WHERE n < 3 TO R;"
COUNT = "CREATE GRANT counts AGGREGATE (COUNT(*), MAX(n)) ON S WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' TO R;"
DATA: dict[str, list[Row]] = {
    "S": [
        {"ts": at * HOUR // 2, "id": "abc"[at % 3], "n": at, "x": float(at), "b": at, "c": -at}
        for at in range(6)
    ],
    "T": [{"ts": at * HOUR // 2, "id": "abc"[at % 3], "k": at} for at in range(6)],
}
PLAIN = [{"n": 0}, {"n": 1}, {"n": 2}]


def open_catalog(text: str) -> Catalog:
    return read_catalog(STREAMS + text)


def change(catalog: Catalog, text: str, author: str | None = None) -> Catalog:
    return apply(catalog, parse_statements(SourceText("<change>", text)), author)


def ask(
    catalog: Catalog, query: str, data: Mapping[str, list[Row]] = DATA, user: str = "u"
) -> list[dict[str, Value]]:
    """The rows: the model's, and those of both engines, which must be the same."""
    asked = read_query(query, catalog)
    plan = rewrite(catalog, catalog.users.get(user) or User(user), asked.root, asked.united).plan
    outputs = tuple(each for each in asked.root.fields if not each.hidden)
    model = expected(catalog, user, asked.root, outputs, data, asked.united).rows
    env = environment(catalog, user)
    rows = [] if plan is None else result_rows(run(plan.root, data, env), plan.outputs, plan.label)
    assert as_bag(rows) == as_bag(model)
    if plan is not None:
        assert as_bag(duckdb_run.run_duckdb(plan, data, catalog.streams, env)) == as_bag(model)
    return model


def same(rows: list[dict[str, Value]], wanted: list[dict[str, Value]]) -> bool:
    return as_bag(rows) == as_bag(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "SET enforcement = off; SELECT n FROM S",
        "SET spark.sql.extensions = ''; SELECT n FROM S",
        "set -v; SELECT n FROM S",
        "RESET ALL",
        "PRAGMA disable_verification",
        "SET ROLE R",
        "SET SESSION AUTHORIZATION olga",
        "SELECT /*+ SKIP_POLICY */ n FROM S",
        "SELECT n FROM S OPTIONS (policy = 'off')",
        "SELECT n FROM S WITH (NOLOCK)",
        "SELECT n FROM S SETTINGS row_policy = 0",
        "EXPLAIN ANALYZE SELECT n FROM S",
        "SELECT n FROM S; SELECT x FROM S",
    ],
)
def test_1_no_setting_in_a_query(text: str) -> None:
    """Bypass 1 (Kyuubi #7623, #7589: only one syntax of SET was guarded)."""
    with pytest.raises(DiagnosticError):
        read_query(text, open_catalog(READ))


@pytest.mark.parametrize(
    "text", ["SET enforcement = off;", "SET ROLE R;", "ALTER SYSTEM SET policy = 'off';", "RESET;"]
)
def test_1_no_setting_in_a_catalog(text: str) -> None:
    """Bypass 1: a setting is not a statement, nor a fact that something might read as one."""
    with pytest.raises(DiagnosticError):
        change(open_catalog(READ), text)


def test_1_no_setting_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bypass 1: variables that look like switches switch nothing."""
    for name in ("DEBUG", "DISABLE", "ENFORCE", "POLICY", "VERIFY", "USER", "MODE"):
        monkeypatch.setenv(f"SLUICEGATE_{name}", "1" if name == "DEBUG" else "off")
    assert same(ask(open_catalog(READ), "SELECT n FROM S"), PLAIN)


@contextmanager
def session(setting: str) -> Iterator[None]:
    connection = duckdb_run._connection()
    connection.execute(f"SET {setting}")
    try:
        yield
    finally:
        connection.execute(f"RESET {setting.split('=')[0]}")


@pytest.mark.parametrize(
    "setting",
    [
        "default_collation='NOCASE'",
        "default_collation='NOACCENT'",
        "integer_division=true",
        "ieee_floating_point_ops=false",
        "old_implicit_casting=true",
        "TimeZone='Asia/Tokyo'",
        "default_null_order='nulls_first'",
    ],
)
def test_1_settings_of_the_engine_change_nothing(setting: str) -> None:
    """Bypass 1: the translated query means the same whatever session runs it; `X` is not `x` because one says so."""
    catalog = open_catalog("CREATE GRANT g READ (*) ON S WHERE id = 'x' AND id < 'y' TO R;")
    texts = ["x", "X", "\u1e8b", "x ", "y", "Y"]
    rows = [{"ts": at, "id": text, "n": at, "x": at / 2} for at, text in enumerate(texts)]
    data = {"S": rows, "T": []}
    with session(setting):
        assert same(ask(catalog, "SELECT id, n FROM S", data), [{"id": "x", "n": 0}])
        assert len(ask(catalog, "SELECT n / 2 AS h, x / n AS d FROM S WHERE ts < TIME '06:00'", data)) == 1
        assert len(ask(catalog, "SELECT id, COUNT(*) AS k FROM S [RANGE 1 HOUR] GROUP BY id", data)) == 1


@dataclass(frozen=True, slots=True)
class Strange(Node):
    """An operator that nobody knows, over one that everybody does."""

    input: Node

    def __post_init__(self) -> None:
        self._pass_on(self.input)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Opaque(Expr):
    """An expression that nobody knows; it does not even tell that it looks at a column."""

    inside: Expr

    @property
    def type(self) -> Type:
        return BOOLEAN


def source() -> Source:
    stream = open_catalog("").streams["S"]
    return Source("S", "S", stream.attributes, stream.event_time)


def test_2_an_operator_that_no_pass_knows() -> None:
    """Bypass 2 (Kyuubi #7593: unknown plan nodes passed unchecked): refused by passes, engines and targets."""
    catalog = open_catalog(READ)
    with pytest.raises(InvariantError, match="Strange"):
        rewrite(catalog, catalog.users["u"], Strange(source()))
    with pytest.raises(InvariantError, match="Strange"):
        rewrite(catalog, catalog.users["u"], Select(Strange(source()), TRUE))
    with pytest.raises((TypeError, InvariantError), match="Strange"):
        run(Strange(source()), DATA)
    with pytest.raises(DiagnosticError, match="Strange"):
        translate(AuthorizedPlan(Strange(source()), ()))


def test_2_an_expression_that_no_pass_knows() -> None:
    """Bypass 2: one that hides a column from the check of required attributes does not reach a tuple."""
    catalog = open_catalog(READ)
    hidden = Opaque(Column("S", "x", INT))
    with pytest.raises((TypeError, InvariantError), match="Opaque"):
        rewrite(catalog, catalog.users["u"], Select(source(), hidden))
    with pytest.raises(TypeError, match="Opaque"):
        evaluate(hidden, {})
    with pytest.raises(DiagnosticError, match="Opaque"):
        translate(AuthorizedPlan(Select(source(), hidden), ()))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT java_method('java.lang.System', 'exit', 1) AS e FROM S",
        "SELECT n FROM S WHERE input_file_name() = 'x'",
        "SELECT n FROM S LATERAL VIEW explode(x) AS y",
        "SELECT n, ROW_NUMBER() OVER (ORDER BY n) AS r FROM S",
        "SELECT n FROM S WHERE EXISTS (SELECT 1 FROM T)",
        "SELECT n FROM S MINUS SELECT n FROM S",
        "SELECT n FROM S TABLESAMPLE (10 PERCENT)",
        "SELECT COUNT(*) FILTER (WHERE n > 3) AS k FROM S [RANGE 1 HOUR]",
        "SELECT PERCENTILE(n, 0.5) AS p FROM S [RANGE 1 HOUR]",
        "SELECT COUNT_IF(n > 3) AS k FROM S [RANGE 1 HOUR]",
        "INSERT INTO S SELECT * FROM S",
        "DESCRIBE S",
        "SHOW GRANTS",
    ],
)
def test_2_what_the_language_does_not_have(text: str) -> None:
    """Bypass 2: refused with its place, never half-read."""
    with pytest.raises(DiagnosticError) as caught:
        read_query(text, open_catalog(READ))
    assert caught.value.diagnostics[0].span is not None


OTHER_NAMES = {
    "alias": "SELECT z.n FROM S AS z",
    "alias of another stream": "SELECT T.n FROM S AS T",
    "alias like a hidden column": 'SELECT "flag".n FROM S AS "flag"',
    "alias like a made name": 'SELECT "S~2".n FROM S AS "S~2"',
    "nested": "SELECT n FROM (SELECT * FROM S) AS z",
    "nested and renamed": "SELECT m AS n FROM (SELECT n AS m FROM S) AS z",
    "star": "SELECT n FROM (SELECT * FROM (SELECT * FROM S) AS y) AS z",
}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_5_another_name_for_the_stream(name: str) -> None:
    """Bypass 5 (ClickHouse #97682, CVE-2017-7677): the rows are those of the plain query."""
    assert same(ask(open_catalog(READ), OTHER_NAMES[name]), PLAIN)


def test_5_each_union_branch_is_governed() -> None:
    """Bypass 5: a second branch under another name, or over a stream without grants, adds nothing of its own."""
    catalog = open_catalog(READ)
    twice = "SELECT n FROM S UNION ALL SELECT z.n FROM S AS z"
    assert same(ask(catalog, twice), PLAIN + PLAIN)
    assert same(ask(catalog, "SELECT n FROM S UNION ALL SELECT k FROM T"), PLAIN)
    assert ask(catalog, "SELECT n FROM S UNION ALL SELECT n FROM S", user="eve") == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM 'data/s.parquet'",
        "SELECT n FROM parquet.`data/s.parquet`",
        "SELECT n FROM read_csv('s.csv')",
        "SELECT n FROM kafka('position')",
        "SELECT n FROM system.S",
        'SELECT n FROM "s"',
        'SELECT n FROM "S "',
        "SELECT n FROM \uff33",
    ],
)
def test_5_a_stream_has_one_name(text: str) -> None:
    """Bypass 5: no path, no function, no catalog's prefix, no near name opens the feed."""
    with pytest.raises(DiagnosticError):
        read_query(text, open_catalog(READ))


DEEP = {
    "nested": "SELECT n FROM (SELECT n FROM (SELECT n, id FROM (SELECT * FROM S) AS p) AS q) AS r",
    "second operand": "SELECT b.n FROM T AS a [RANGE 1 s] JOIN S AS b [RANGE 1 s] ON a.id = b.id",
    "nested second operand": "SELECT q.n FROM T [RANGE 1 s] JOIN (SELECT id, n FROM S) AS q [RANGE 1 s] ON T.id = q.id",
    "union in a nested query": "SELECT m AS n FROM (SELECT n AS m FROM S UNION ALL SELECT k AS m FROM T WHERE k > 9) AS q",
}


@pytest.mark.parametrize("name", DEEP)
def test_7_only_deep_inside(name: str) -> None:
    """Bypass 7 (CVE-2024-10976, CVE-2023-2455): a stream that stands only in a nested query or second operand."""
    catalog = open_catalog(
        READ + "CREATE GRANT t READ (*) ON T TO R; CREATE GRANT et READ (*) ON T TO USER eve;"
    )
    assert same(ask(catalog, DEEP[name]), PLAIN)
    assert ask(catalog, DEEP[name], user="eve") == []


def test_7_the_principal_is_asked_anew() -> None:
    """Bypass 7 (CVE-2024-10976: a plan kept from another role): one query and two users in turn."""
    catalog = open_catalog(READ + "CREATE GRANT high READ (n) ON S WHERE n > 4 TO USER eve;")
    for _ in range(2):
        assert same(ask(catalog, DEEP["nested"]), PLAIN)
        assert same(ask(catalog, DEEP["nested"], user="eve"), [{"n": 5}])


def test_7_a_nested_predicate_chooses_no_population() -> None:
    """Bypass 7, R3: what may not be filtered may not be filtered further down either."""
    catalog = open_catalog(COUNT)
    assert len(ask(catalog, "SELECT COUNT(*) AS k FROM S [RANGE 1 HOUR]")) == 3
    for query in (
        "SELECT COUNT(*) AS k FROM (SELECT * FROM S WHERE n = 3) AS q [RANGE 1 HOUR]",
        "SELECT MAX(m) AS k FROM (SELECT ts, CASE WHEN n = 3 THEN n END AS m FROM S) AS q [RANGE 1 HOUR]",
        "SELECT COUNT(*) AS k FROM (SELECT n FROM S UNION ALL SELECT n FROM S) AS q [RANGE 1 HOUR]",
        "SELECT COUNT(*) AS k FROM S [RANGE 1 HOUR] HAVING MIN(n) = 2",
        "SELECT COUNT(*) AS k FROM S [RANGE 1 HOUR] WHERE n = n",
    ):
        assert ask(catalog, query) == []


def test_9_a_policy_that_closed_shows_nothing() -> None:
    """Bypass 9 (Doris #62729): after its attribute was dropped the grant is no wider one, and gives no row."""
    catalog = open_catalog("CREATE GRANT g READ (id) ON S WHERE n < 3 TO R;")
    assert len(ask(catalog, "SELECT id FROM S")) == 3
    assert ask(change(catalog, "ALTER STREAM S DROP n;"), "SELECT id FROM S") == []


ERRORS = (
    "1 / (n - 4)",
    "1 % (n - 4)",
    "CAST(id AS INT)",
    "CAST(x * 1e308 AS INT)",
    "b * 9223372036854775807",
    "9223372036854775807 + n",
    "abs(b - 9223372036854775807 - 4)",
    "CAST(CAST(n * 1000000000 AS BIGINT) AS INT)",
)


@pytest.mark.parametrize("expr", ERRORS)
def test_11_nothing_fails_before_the_filter(expr: str) -> None:
    """Bypass 11 (PostgreSQL's leakproof rules): an expression that would fail on a hidden tuple tells nothing of it."""
    catalog = open_catalog("CREATE GRANT g READ (*) ON S WHERE n < 3 TO R;")
    quiet = {**DATA, "S": DATA["S"][:3]}
    for query in (
        f"SELECT n, {expr} AS e FROM S",
        f"SELECT n FROM S WHERE {expr} >= 0",
        f"SELECT n FROM S WHERE ({expr}) IS NULL",
    ):
        assert same(ask(catalog, query), ask(catalog, query, quiet))


def test_11_a_hidden_attribute_is_never_computed_with() -> None:
    """Bypass 11: not in a predicate, a key, an expression or an aggregate's argument."""
    catalog = open_catalog(READ)
    for query in (
        "SELECT n FROM S WHERE 1 / (x - 42) > 0",
        "SELECT n, 1 / (x - 42) AS e FROM S",
        "SELECT COUNT(*) AS k FROM S [RANGE 1 HOUR] GROUP BY x",
        "SELECT SUM(x + 1) AS k FROM S [RANGE 1 HOUR]",
        "SELECT a.n FROM S AS a [RANGE 1 s] JOIN S AS b [RANGE 1 s] ON a.x = b.x",
    ):
        assert ask(catalog, query) == []


def test_11_a_slow_pattern_is_not_slow() -> None:
    """Bypass 11: a pattern that makes others backtrack takes one pass, so time tells nothing of hidden tuples."""
    catalog = open_catalog("CREATE GRANT g READ (id, n) ON S WHERE n < 3 TO R;")
    rows: list[Row] = [{"ts": at, "id": "a" * 100_000, "n": at} for at in range(6)]
    pattern = "%a_" * 30 + "b"
    asked = read_query(f"SELECT n FROM S WHERE id LIKE '{pattern}'", catalog)
    plan = rewrite(catalog, catalog.users["u"], asked.root).plan
    assert plan is not None
    begin = time.perf_counter()
    assert list(run(plan.root, {"S": rows}, environment(catalog, "u"))) == []
    assert time.perf_counter() - begin < 5


def test_11_no_value_in_a_message() -> None:
    """Bypass 11 (CVE-2021-3393): the fault of a row that lacks a column names the column, not what the row holds."""
    with pytest.raises(InvariantError) as caught:
        evaluate(Column("S", "x", INT), {Column("S", "id", INT): "topsecret"})
    assert "topsecret" not in str(caught.value)


def test_15_one_grant_less_leaves_the_rows_of_the_others() -> None:
    """Bypass 15 (CVE-2024-27309), I5: what is left shows what it showed."""
    both = open_catalog(READ + "CREATE GRANT high READ (n) ON S WHERE n > 4 TO R;" + COUNT)
    assert same(ask(both, "SELECT n FROM S"), [*PLAIN, {"n": 5}])
    assert same(ask(change(both, "DROP GRANT high;"), "SELECT n FROM S"), PLAIN)
    assert same(ask(change(both, "DROP GRANT low;"), "SELECT n FROM S"), [{"n": 5}])
    assert same(ask(change(both, "DROP GRANT counts;"), "SELECT n FROM S"), [*PLAIN, {"n": 5}])


def test_21_a_circle_of_roles_gives_no_more_the_second_time() -> None:
    """Bypass 21 (GHSA-w222-m46c-mgh6): even in a catalog that was made by hand, and asked again."""
    catalog = open_catalog(READ + "CREATE ROLE A; CREATE ROLE B INHERITS A; ALTER USER eve ADD ROLE B;")
    roles = {**catalog.roles, "A": replace(catalog.roles["A"], inherits=("B",))}
    circle = replace(catalog, roles=roles)
    for _ in range(2):
        assert circle.roles_of("eve") == {"A", "B"}
        assert ask(circle, "SELECT n FROM S", user="eve") == []


@pytest.mark.parametrize(
    "text", ["'", "''", '\'; DROP TABLE "S"; --', '"', '" OR 1=1 --', "\\", "/*", "*/", "$$", "%s", "{}"]
)
def test_32_text_does_not_become_code(text: str) -> None:
    """Bypass 32 (CVE-2025-46569): names and literals with another engine's signs stay names and literals there."""
    literal, name = text.replace("'", "''"), "q" + text.replace('"', '""')
    catalog = open_catalog(
        f"""CREATE GRANT "{name}" AGGREGATE (COUNT(*)) ON S WHERE id = '{literal}' TO R;
        CREATE GRANT r READ (id, n) ON S WHERE id = '{literal}' TO R;"""
    )
    rows: list[Row] = [{"ts": 0, "id": text, "n": 1}, {"ts": 1, "id": "other", "n": 2}]
    data = {"S": rows, "T": []}
    query = f"""SELECT "{name}".n AS "{name}" FROM S AS "{name}" WHERE "{name}".id = '{literal}'"""
    assert same(ask(catalog, query, data), [{"q" + text: 1}])
    counted = ask(catalog, "SELECT COUNT(*) AS k FROM S [RANGE 1 HOUR]", data)
    assert {row.get("_grant") for row in counted} == {None, "q" + text}
    assert {row["k"] for row in counted} == {1}


def test_32_aliases_that_imitate_hidden_columns() -> None:
    """Bypass 32: an alias with a `+` is not the pair of the aliases beside it."""
    catalog = open_catalog(
        """CREATE STREAM V (ts TIMESTAMP, id STRING, n INT, x DOUBLE) TIMESTAMP BY ts;
        CREATE GRANT j READ (S.id, T.k, T.id) ON S, T WHERE S.n < 100 TO R;
        CREATE GRANT "0:j" READ (id, n) ON V WHERE n > 4 TO R; CREATE GRANT v READ (id, x) ON V WHERE n > 3 TO R;"""
    )
    query = """SELECT p.k, "a+b".n, "a+b".x FROM (SELECT a.id AS i, b.k FROM S AS a [RANGE 1 s] JOIN T AS b [RANGE 1 s]
        ON a.id = b.id) AS p [RANGE 1 s] JOIN V AS "a+b" [RANGE 1 s] ON p.i = "a+b".id"""
    rows = ask(catalog, query, {**DATA, "V": DATA["S"]})
    assert same(rows, [{"k": 4, "x": 4.0}, {"k": 5, "n": 5}, {"k": 5, "x": 5.0}])


def test_33_a_printed_catalog_gives_the_same_rows() -> None:
    """Bypass 33 (OPA GHSA-hcw3-j74m-qc58): printed and read again, it shows exactly the same."""
    catalog = open_catalog(
        READ
        + COUNT
        + """SET FACT lim('a') = 4; CREATE GRANT odd READ (id, x) ON S
        WHERE NOT (n < lim('a') OR id LIKE 'a\\%%') AND (x - 1) - 1 > 1 AND -(-n) > 3 DURING [NULL, TIMESTAMP '1970-01-01 02:30:00'] TO R;"""
    )
    again = read_catalog(print_statements(catalog_statements(catalog)))
    for query in ("SELECT id, n, x FROM S", "SELECT COUNT(*) AS k FROM S [RANGE 1 HOUR]"):
        assert same(ask(again, query), ask(catalog, query))
    assert {"id": "b", "x": 4.0} in ask(again, "SELECT id, n, x FROM S")


def test_r7_a_fact_of_whom_nobody_knows_is_no_open_end() -> None:
    """R6, R7: an unset upper fact is open; one whose argument the profile lacks is unknown, and unknown is no."""
    text = """SET FACT stop('a') = TIMESTAMP '1970-01-01 00:30:00';
    CREATE GRANT g READ (n) ON S DURING [TIMESTAMP '1970-01-01', stop(self.act)] TO R;"""
    catalog = open_catalog(text)
    assert ask(catalog, "SELECT n FROM S") == []
    assert same(
        ask(change(catalog, "ALTER USER u SET (act = 'a');"), "SELECT n FROM S"), [{"n": 0}, {"n": 1}]
    )
    assert len(ask(change(catalog, "ALTER USER u SET (act = 'b');"), "SELECT n FROM S")) == 6


@pytest.mark.parametrize(
    ("value", "predicate"),
    [
        ("1", "ts >= self.v"),
        ("1", "ts >= abs(self.v)"),
        ("1.0", "ts >= self.v"),
        ("TRUE", "n + self.v > 0"),
        ("TRUE", "x < self.v * 2"),
        ("TIMESTAMP '1970-01-01'", "n >= self.v"),
        ("TIMESTAMP '1970-01-01'", "NOT (n < self.v)"),
        ("TIMESTAMP '1970-01-01'", "n NOT IN (7, self.v)"),
        ("TIMESTAMP '1970-01-01'", "NOT (n BETWEEN 0 AND self.v)"),
        ("1", "id <> self.v"),
        ("'1'", "n <> self.v"),
    ],
)
def test_r7_a_profile_attribute_of_the_wrong_type(value: str, predicate: str) -> None:
    """R7, I4: what cannot be compared is NULL in every engine, not a number that happens to stand for it."""
    catalog = open_catalog(
        f"CREATE GRANT g READ (n) ON S WHERE {predicate} TO R; ALTER USER u SET (v = {value});"
    )
    assert ask(catalog, "SELECT n FROM S") == []


@pytest.mark.parametrize("during", ["", "DURING [TIMESTAMP '1970-01-01', stop('a')]"])
def test_r3_a_hidden_type_is_no_premise(during: str) -> None:
    """R3, R9: a fact's type is hidden from decisions, yet nothing may follow from the wrong one.

    Between 2^54 and 2^54 + 2 lies a whole number and no double: a reader could have left such tuples out.
    """
    low = 2**54
    catalog = open_catalog(
        f"SET FACT t('a') = {low + 1}L; CREATE GRANT g COUNT (*) ON S WHERE b < t('a') AND c > t('a') {during} TO R;"
    )
    rows: list[Row] = [{"ts": 0, "b": low, "c": low + 2}, {"ts": 1, "b": 0, "c": low + 6}]
    data = {"S": rows, "T": []}
    chosen = "CAST(b AS DOUBLE) < CAST(c AS DOUBLE)"
    assert ask(catalog, f"SELECT COUNT(*) AS k FROM S [RANGE 1 HOUR] WHERE {chosen}", data) == []
    (row,) = ask(catalog, "SELECT COUNT(*) AS k FROM S [RANGE 1 HOUR] WHERE b < c", data)
    assert row["k"] == 2


@pytest.mark.parametrize(
    ("grant", "query"),
    [
        (
            "AVG (x) ON S DURING [start('a'), NULL]",
            "SELECT AVG(x) AS k FROM S [RANGE 1 HOUR] WHERE ts IS NOT NULL",
        ),
        (
            "READ (id, ts) ON S DURING [start('a'), NULL]",
            "SELECT id FROM S WHERE ts > TIMESTAMP '2026-06-01'",
        ),
        ("READ (id, ts) ON S WHERE ts < start('a') OR id = 'z'", "SELECT id FROM S"),
    ],
)
def test_r9_decisions_do_not_tell_whether_a_fact_is_set(grant: str, query: str) -> None:
    """R9: unset, past, future: the same decision, notices, witnesses and reasons, since the fact is not public."""
    told = set()
    for fact in (
        "",
        "SET FACT start('a') = TIMESTAMP '2020-01-01';",
        "SET FACT start('a') = TIMESTAMP '2030-01-01';",
    ):
        catalog = open_catalog(f"{fact} CREATE GRANT g {grant} TO R;")
        found = explain(catalog, "u", read_query(query, catalog).root)
        told.add(repr((found.decision, found.notices, found.grants, found.graphs.total, found.graphs.valid)))
    assert len(told) == 1


@pytest.mark.parametrize(
    ("author", "text"),
    [
        (
            "eve",
            "CREATE STREAM Mine AS SELECT ts, n FROM S; CREATE GRANT m READ (n) ON Mine WHERE n > secret('x') TO USER eve;",
        ),
        (
            "eve",
            "CREATE STREAM Mine AS SELECT ts, n FROM S; CREATE GRANT m READ (n) ON Mine DURING [begin('x'), NULL] TO USER eve;",
        ),
        ("u", "CREATE GRANT m READ (n) ON S WHERE n < 3 AND n > secret('x') TO USER eve;"),
        ("u", "CREATE GRANT m READ (n) ON S WHERE n < 3 AND n > secret(self.k) TO USER eve;"),
    ],
)
def test_d3_a_reader_names_no_facts_by_a_grant_of_its_own(author: str, text: str) -> None:
    """D3, R9: whoever may read by a grant that it wrote could ask for any fact, one bit at a time."""
    catalog = open_catalog(
        """SET FACT secret('x') = 2; SET FACT begin('x') = TIMESTAMP '1970-01-01'; SET PUBLIC FACT open('x') = 1;
        CREATE GRANT low READ (id, n) ON S WHERE n < 3 TO R WITH GRANT OPTION; CREATE GRANT e READ (ts, n) ON S TO USER eve;"""
    )
    with pytest.raises(DiagnosticError, match="may not name the fact"):
        change(catalog, text, author)
    public = (
        text.replace("secret('x')", "open('x')").replace("begin('x')", "NULL").replace("secret(self.k)", "1")
    )
    assert "m" in change(catalog, public, author).grants
    assert "m" in change(catalog, text.replace("Mine AS", "Mine OWNER eve AS")).grants


def test_d3_facts_of_the_parent_may_be_passed_on() -> None:
    """R19: what the parent names its holder knows to be there, and the owner of a stream may name any."""
    catalog = open_catalog(
        "SET FACT lim('a') = 3; CREATE GRANT low READ (id, n) ON S WHERE n < lim('a') TO R WITH GRANT OPTION;"
    )
    text = "CREATE GRANT m READ (n) ON S WHERE n < lim('a') AND n > 0 TO USER eve;"
    assert same(ask(change(catalog, text, "u"), "SELECT n FROM S", user="eve"), [{"n": 1}, {"n": 2}])
    assert (
        "m" in change(catalog, "CREATE GRANT m READ (n) ON S WHERE n > lim('b') TO USER eve;", "olga").grants
    )


def test_i4_digits_are_read_as_written() -> None:
    """I4: CAST of a text with one digit, or with zeros inside or before, is that number in every engine."""
    catalog = open_catalog("CREATE GRANT g READ (n) ON S WHERE CAST(id AS INT) < 10 TO R;")
    texts = ["1", "105", "200", "-7", "0" * 60 + "9", "+-1", "1 0", ""]
    rows: list[Row] = [{"ts": at, "id": text, "n": at} for at, text in enumerate(texts)]
    assert same(ask(catalog, "SELECT n FROM S", {"S": rows, "T": []}), [{"n": 0}, {"n": 3}, {"n": 4}])


def test_the_solver_takes_no_unknown_for_a_premise() -> None:
    """R7: a predicate that cannot be told implies nothing."""
    hidden = Opaque(Column("S", "x", INT))
    with pytest.raises(TypeError):
        implies(hidden, Column("S", "flag", BOOLEAN))


def test_results_that_double_with_each_level_are_refused_soon() -> None:
    """A query is bounded with all that it rests on, before any of it is put together."""
    text = "CREATE STREAM S (ts TIMESTAMP, id INT) TIMESTAMP BY ts; CREATE USER u; CREATE GRANT g READ (*) ON S TO USER u;"
    for level in range(14):
        below = f"R{level - 1}" if level else "S"
        join = f"{below} AS a [RANGE 1 HOUR] JOIN {below} AS b [RANGE 1 HOUR] ON a.id = b.id"
        text += f"CREATE STREAM R{level} OWNER u AS SELECT a.id AS id FROM {join};"
    gate = Gate(read_catalog(text))
    start = time.process_time()
    with pytest.raises(DiagnosticError) as caught:
        gate.authorize("u", "SELECT id FROM R13")
    assert caught.value.diagnostics[0].code == "too-many-operators"
    assert time.process_time() - start < 20
    assert gate.authorize("u", "SELECT id FROM R1").plan is not None

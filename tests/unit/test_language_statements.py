"""Catalog statements: read, printed, read again, folded; findings underline the exact text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import sluicegate.language
from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Column, Literal, Polygon
from sluicegate.expr.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, Kind, Type, set_of
from sluicegate.graph.operators import AggFunction
from sluicegate.language.fold import apply, plan_drop
from sluicegate.language.load import load_catalog, read_catalog, read_sources
from sluicegate.language.parse_statements import parse_statement, parse_statements
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_statements import print_statement, print_statements
from sluicegate.language.statement_codes import STATEMENT_CODES
from sluicegate.language.statements import CreateGrant, CreateStream, Drop, InsertSP
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import LeastWindow
from sluicegate.policy.punctuation import (
    Anything,
    Constant,
    DataDescription,
    Nothing,
    OneOf,
    Range,
    Restriction,
)
from sluicegate.source import SourceText

LANGUAGE = Path(__file__).parent.parent / "fixtures" / "catalogs" / "language"

BASE = """
CREATE STREAM S (ts TIMESTAMP, id STRING, n INT, x DOUBLE, ok BOOLEAN) TIMESTAMP BY ts OWNER olga;
CREATE STREAM U (ts TIMESTAMP, id STRING, y INT) TIMESTAMP BY ts;
CREATE STREAM T (id STRING, label STRING);
CREATE ROLE R;
CREATE ROLE Senior INHERITS R;
CREATE USER olga;
CREATE USER ann ROLES (R) SET (g = 'A');
CREATE USER bob;
SET FACT limit_of('a') = 5;
"""


def base() -> Catalog:
    return read_catalog(BASE)


def change(catalog: Catalog, text: str, author: str | None = None) -> Catalog:
    return apply(catalog, parse_statements(SourceText("<change>", text)), author)


def findings(text: str, catalog: Catalog | None = None, author: str | None = None) -> list[tuple[str, str]]:
    """Code and underlined text of each finding."""
    with pytest.raises(DiagnosticError) as caught:
        change(catalog or base(), text, author)
    return [(each.code, each.span.text if each.span else "") for each in caught.value.diagnostics]


def test_every_statement_is_printed_and_read_again() -> None:
    for text in read_sources(LANGUAGE).texts:
        for statement in parse_statements(text):
            assert parse_statement(print_statement(statement)) == statement


def test_language_catalog_folds_and_comes_back() -> None:
    catalog = load_catalog(LANGUAGE)
    assert "pairs" not in catalog.grants
    assert "feed" not in catalog.grants  # its role was dropped with CASCADE
    assert catalog.users["lta"].disabled
    assert catalog.users["paul"].attribute("Platoon") == Literal("Y", STRING)
    assert catalog.streams["Consult"].attributes == (("ts", TIMESTAMP), ("Patient_id", INT))
    assert [column.name for column in catalog.grants["all_weather"].attributes] == [
        "samplingtime",
        "rainrate",
        "windspeed",
    ]
    again = read_catalog(print_statements(catalog_statements(catalog)))
    assert replace(again, version=catalog.version) == catalog


def test_order_of_statements_does_not_matter() -> None:
    statements = [line for line in BASE.splitlines() if line]
    assert read_catalog("\n".join(reversed(statements))) == base()


def test_facts_are_read_from_files() -> None:
    catalog = load_catalog(LANGUAGE)
    tiny = catalog.fact("fleet", ("tiny",))
    port = catalog.fact("port", ("RT",))
    assert tiny is not None
    assert tiny.value == Literal(frozenset({244660000, 244660001}), set_of(INT))
    assert port is not None
    assert port.public
    assert isinstance(port.value.value, Polygon)
    assert port.value.value.parts == ((((4.0, 51.85), (4.5, 51.85), (4.5, 52.0), (4.0, 52.0)),),)


def test_clauses_stand_in_any_order() -> None:
    one = parse_statement(
        "CREATE GRANT g AVG (x) ON S WHERE n > 1 BY (id) WINDOW AT LEAST '1 hour' MIN GROUP 5 TO R"
    )
    other = parse_statement(
        "CREATE GRANT g AVG (x) TO R MIN GROUP 5 WINDOW AT LEAST '60 minutes' BY (id) WHERE n > 1 ON S"
    )
    assert one == other
    stream = "CREATE STREAM s (t TIMESTAMP) {}"
    assert parse_statement(stream.format("OWNER o TIMESTAMP BY t WATERMARK '1 min'")) == parse_statement(
        stream.format("TIMESTAMP BY t WATERMARK '60 seconds' OWNER o")
    )


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("'1 hour'", LeastWindow(3_600_000_000, 3_600_000_000)),
        ("'1 hour' STEP AT LEAST '30 minutes'", LeastWindow(3_600_000_000, 1_800_000_000)),
        ("10 MINUTES STEP AT LEAST 0", LeastWindow(600_000_000, 0)),
        ("5 ROWS", LeastWindow(5, 5, True)),
        ("5 ROWS STEP AT LEAST 2 ROWS", LeastWindow(5, 2, True)),
        ("5 ROWS STEP AT LEAST 0", LeastWindow(5, 0, True)),
        ("0", LeastWindow(0, 0)),
    ],
)
def test_least_window(text: str, least: LeastWindow) -> None:
    statement = parse_statement(f"CREATE GRANT g AVG (x) ON S WINDOW AT LEAST {text} TO R")
    assert isinstance(statement, CreateGrant)
    assert statement.least == least


def test_rights_are_resolved() -> None:
    catalog = change(
        base(),
        "CREATE GRANT g AGGREGATE (COUNT(*), COUNT(DISTINCT id), AVG(x)) ON S TO R;"
        "CREATE GRANT h READ (y, U.id, x) ON S, U WHERE S.id = U.id TO USER ann;",
    )
    rights = [
        (right.function, right.attribute and right.attribute.name) for right in catalog.grants["g"].rights
    ]
    assert rights == [(AggFunction.COUNT, None), (AggFunction.COUNT_DISTINCT, "id"), (AggFunction.AVG, "x")]
    assert catalog.grants["h"].attributes == (
        Column("U", "y", INT),
        Column("U", "id", STRING),
        Column("S", "x", DOUBLE),
    )
    assert catalog.version == base().version + 2


@pytest.mark.parametrize(
    ("text", "code", "underlined"),
    [
        ("CREAT ROLE x;", "unknown-statement", "CREAT"),
        ("SELECT 1;", "unknown-statement", "SELECT"),
        ("CREATE ROLE R;", "name-taken", "R"),
        ("CREATE ROLE A INHERITS r;", "unknown-role", "r"),
        ("CREATE ROLE _x;", "reserved-name", "_x"),
        ('CREATE ROLE "#x";', "reserved-name", '"#x"'),
        ("CREATE USER self;", "reserved-name", "self"),
        ("ALTER ROLE R INHERITS Senior;", "role-cycle", "R"),
        ("CREATE ROLE A INHERITS A;", "role-cycle", "A"),
        ("CREATE USER x ROLES (Q);", "unknown-role", "Q"),
        ("CREATE GRANT g READ (idd) ON S TO R;", "unknown-attribute", "idd"),
        ("CREATE GRANT g READ (id) ON SS TO R;", "unknown-stream", "SS"),
        ("CREATE GRANT g READ (id) ON S TO Q;", "unknown-role", "Q"),
        ("CREATE GRANT g READ (id) ON S TO ann;", "unknown-role", "ann"),
        ("CREATE GRANT g READ (id) ON S TO USER anna;", "unknown-user", "anna"),
        ("CREATE GRANT g READ (id) ON S, U TO R;", "ambiguous-attribute", "id"),
        ("CREATE GRANT g READ (id, id) ON S TO R;", "name-twice", "id"),
        ("CREATE GRANT g READ (id, S.id) ON S TO R;", "name-twice", "id"),
        ("CREATE GRANT g READ (S.id) ON S, S TO R;", "name-twice", "S"),
        ("CREATE GRANT g READ (id) ON S AS a, U AS a TO R;", "name-twice", "a"),
        ("CREATE GRANT g READ () ON S TO R;", "empty-right", "g"),
        ("CREATE GRANT g READ (id) ON S;", "missing-clause", "g"),
        ("CREATE GRANT g READ (id) TO R;", "missing-clause", "g"),
        ("CREATE GRANT g REED (id) ON S TO R;", "unknown-right", "REED"),
        ("CREATE GRANT g READ (id) ON S TO R TO Senior;", "clause-twice", "TO"),
        ("CREATE GRANT g READ (id) ON S WHERE n = 1 WERE x = 1 TO R;", "syntax", "WERE"),
        ("CREATE GRANT g READ (id) ON S WHERE n = 'a' TO R;", "type-mismatch", "n = 'a'"),
        ("CREATE GRANT g READ (id) ON S WHERE n TO R;", "not-a-condition", "n"),
        ("CREATE GRANT g READ (id) ON S WHERE self.g IS NULL TO R;", "null-test", "self.g IS NULL"),
        (
            "CREATE GRANT g READ (id) ON S WHERE n > coalesce(f('a'), 0) TO R;",
            "null-test",
            "n > coalesce(f('a'), 0)",
        ),
        (
            "CREATE GRANT g READ (id) ON S WHERE greatest(n, f('a')) > 1 TO R;",
            "null-test",
            "greatest(n, f('a')) > 1",
        ),
        ("CREATE GRANT g AVG (id) ON S TO R;", "type-mismatch", "id"),
        ("CREATE GRANT g MAX (ok) ON S TO R;", "type-mismatch", "ok"),
        ("CREATE GRANT g AVG (*) ON S TO R;", "wildcard", "*"),
        ("CREATE GRANT g SUM (DISTINCT n) ON S TO R;", "distinct", "DISTINCT"),
        ("CREATE GRANT g AGGREGATE (MEDIAN(n)) ON S TO R;", "unknown-function", "MEDIAN"),
        ("CREATE GRANT g AVG (n) ON S MIN GROUP -1 TO R;", "bad-min-group", "-1"),
        (
            "CREATE GRANT g AVG (n) ON S WINDOW AT LEAST 5 ROWS STEP AT LEAST '1 hour' TO R;",
            "mixed-window",
            None,
        ),
        ("CREATE GRANT g COUNT (id) ON T WINDOW AT LEAST '1 hour' TO R;", "window-on-table", "g"),
        ("CREATE GRANT g READ (id) ON T DURING [NULL, NULL] TO R;", "during-on-table", "g"),
        ("CREATE GRANT g READ (id) ON S WINDOW AT LEAST '1 hour' TO R;", "window-on-read", "g"),
        ("CREATE GRANT g READ (id) ON S DURING [ts, NULL] TO R;", "unknown-attribute", "ts"),
        ("CREATE GRANT g READ (id) ON S DURING [limit_of('a'), NULL] TO R;", "bad-bound", "limit_of('a')"),
        (
            "CREATE GRANT g READ (id) ON S DURING [TIMESTAMP '2026-01-02', TIMESTAMP '2026-01-01'] TO R;",
            "empty-during",
            "TIMESTAMP '2026-01-01'",
        ),
        ("CREATE GRANT g READ (id) ON S MIN GROUP 5 TO R;", "aggregate-clause", "g"),
        ("CREATE GRANT g APPEND ON S, U TO R;", "append-streams", "g"),
        ("SET FACT limit_of('b') = 'x';", "fact-type", "limit_of"),
        ("SET FACT lower('b') = 1;", "reserved-name", "lower"),
        ("SET FACT f(1.5) = 1;", "fact-argument", "SET FACT f(1.5) = 1"),
        ("SET FACT f(TRUE) = 1;", "fact-argument", "SET FACT f(TRUE) = 1"),
        ("SET FACT f('a') = NULL;", "null-fact", "SET FACT f('a') = NULL"),
        ("SET FACT f('a') = POLYGON '1 2, 3 4';", "bad-polygon", "'1 2, 3 4'"),
        ("SET FACT f('a') = FROM FILE 'x.csv';", "no-files", "'x.csv'"),
        ("DROP FACT nope('a');", "unknown-fact", "nope"),
        ("CREATE STREAM Q (a INT, A INT);", "near-name", "A"),
        ("CREATE STREAM Q (a INT) TIMESTAMP BY a;", "type-mismatch", "a"),
        ("CREATE STREAM Q (a INT) TIMESTAMP BY b;", "unknown-attribute", "b"),
        ("CREATE STREAM Q (a INT) WATERMARK '1 hour';", "table-option", "Q"),
        ("CREATE STREAM Q (a INT) GOVERNED BY PROVIDER;", "not-punctuated", "Q"),
        ("CREATE STREAM Q (a INT) OWNER nobody;", "unknown-user", "nobody"),
        ("CREATE STREAM Q;", "stream-attributes", "Q"),
        ("CREATE STREAM Q AS SELECT id FROM S;", "result-event-time", "SELECT id FROM S"),
        ("CREATE STREAM Q AS SELECT ts, idd FROM S;", "unknown-attribute", "idd"),
        ("CREATE SP p INTO STREAM S LET DDP = TUPLES:ALL, SRP = frbac:R;", "not-punctuated", "S"),
        ("CREATE USER u FOLLOW S (x) ON id WITHIN '1 hour';", "follow-key", "id"),
        ("CREATE USER u SET (id = 'a') FOLLOW T (label) ON id WITHIN '1 hour';", "follow-table", "T"),
        ("DROP ROLE R;", "in-use", "R"),
        ("DROP STREAM q;", "unknown-stream", "q"),
        ("ALTER STREAM S DROP ts;", "in-use", "ts"),
        ("INSERT SP INTO STREAM S LET DDP = TUPLES:ALL, SRP = frbac:R;", "not-a-catalog-change", None),
        ("BEGIN; CREATE ROLE A;", "not-committed", "BEGIN"),
        ("COMMIT;", "commit", "COMMIT"),
        ("CREATE ROLE A", "not-ended", "CREATE ROLE A"),
        ("CREATE OR REPLACE ROLE A;", "replace", "CREATE OR REPLACE"),
    ],
)
def test_finding(text: str, code: str, underlined: str | None) -> None:
    found = findings(text)
    assert found[0][0] == code
    assert underlined is None or found[0][1] == underlined


def test_near_words_are_suggested() -> None:
    with pytest.raises(DiagnosticError, match="did you mean `CREATE`"):
        change(base(), "CREAT ROLE x;")
    with pytest.raises(DiagnosticError, match="names are case-sensitive"):
        change(base(), "CREATE GRANT g READ (ID) ON S TO R;")


def test_one_run_shows_all_errors() -> None:
    found = findings("CREATE ROLE; CREATE GRANT g READ (a, b ON S TO R; CREATE ROL x; DROP ROLE 'a;b';")
    assert [underlined for _, underlined in found] == [";", "ON", "ROL", "'a;b'"]


def test_what_follows_from_another_finding_is_not_told() -> None:
    text = "CREATE STREAM Q (a INT, A INT); CREATE GRANT g READ (a) ON Q TO R; CREATE GRANT h READ (zz) ON S TO R;"
    assert [code for code, _ in findings(text)] == ["near-name", "unknown-attribute"]


def test_statements_of_a_group_are_one_version() -> None:
    catalog = base()
    assert change(catalog, "BEGIN; CREATE ROLE A; CREATE ROLE B; COMMIT;").version == catalog.version + 1
    assert change(catalog, "CREATE ROLE A; CREATE ROLE B;").version == catalog.version + 2


def test_nothing_is_done_when_something_fails() -> None:
    catalog = base()
    findings("CREATE ROLE A; CREATE ROLE R;", catalog)
    assert catalog == base()


def test_profile_changes() -> None:
    catalog = change(
        base(),
        "ALTER USER ann SET (g = NULL, h = 1); ALTER USER ann ADD ROLE Senior; ALTER USER ann DROP ROLE R;",
    )
    assert catalog.users["ann"].profile == (("h", Literal(1, INT)),)
    assert catalog.users["ann"].roles == ("Senior",)
    disabled = change(catalog, "ALTER USER ann DISABLE;")
    assert disabled.users["ann"].disabled
    assert change(disabled, "ALTER USER ann ENABLE;") == replace(catalog, version=disabled.version + 1)


def test_numbers_keep_their_types() -> None:
    catalog = change(base(), "ALTER USER ann SET (a = 5, b = 5L, c = 5.0, d = 3000000000, e = -1);")
    types = {name: value.of for name, value in catalog.users["ann"].profile}
    assert types == {"a": INT, "b": BIGINT, "c": DOUBLE, "d": BIGINT, "e": INT, "g": STRING}
    assert read_catalog(print_statements(catalog_statements(catalog))).users == catalog.users


def test_empty_set_takes_the_type_of_its_siblings() -> None:
    catalog = change(base(), "SET FACT fleet('a') = {}; SET FACT fleet('b') = {1};")
    assert catalog.fact_types["fleet"] == set_of(INT)
    assert read_catalog(print_statements(catalog_statements(catalog))).facts == catalog.facts
    alone = change(catalog, "DROP FACT fleet('b');")
    assert alone.fact_types["fleet"] == Type(Kind.SET, Kind.UNKNOWN)


def test_a_fact_is_typed_when_it_is_set_first() -> None:
    catalog = change(base(), "CREATE GRANT g READ (id) ON S WHERE x > far('a') TO R;")
    later = change(catalog, "SET FACT far('a') = 2.5;")
    assert later.grants["g"] != catalog.grants["g"]
    assert read_catalog(print_statements(catalog_statements(later))).grants == later.grants
    assert findings("SET FACT far('a') = 'text';", catalog) == [("fact-type", "far")]


def test_drop_says_what_goes() -> None:
    catalog = change(base(), "CREATE GRANT g READ (id) ON S TO R;")
    statement = parse_statement("DROP ROLE R CASCADE")
    assert isinstance(statement, Drop)
    assert plan_drop(catalog, statement) == (
        "grant g",
        "role R of user ann",
        "inheritance of R by role Senior",
    )
    after = apply(catalog, [statement])
    assert (list(after.grants), after.users["ann"].roles, after.roles["Senior"].inherits) == ([], (), ())


def test_drop_user_keeps_the_streams_it_owned() -> None:
    assert findings("DROP USER olga;") == [("in-use", "olga")]
    assert change(base(), "DROP USER olga CASCADE;").streams["S"].owner is None


def test_drop_stream_takes_named_results_with_it() -> None:
    catalog = change(base(), "CREATE STREAM Q AS SELECT ts, id FROM S; CREATE GRANT q READ (id) ON Q TO R;")
    after = change(catalog, "DROP STREAM S CASCADE;")
    assert set(after.streams) == {"U", "T"}
    assert not after.grants


def test_windowed_result_has_its_bounds() -> None:
    catalog = change(base(), "CREATE STREAM Q AS SELECT AVG(x) AS mean FROM S [RANGE 1 HOUR];")
    names = [name for name, _ in catalog.streams["Q"].attributes]
    assert names == ["mean", "window_start", "window_end", "window_time"]
    assert catalog.streams["Q"].event_time == "window_time"


def test_result_of_a_join_has_the_pairs_time() -> None:
    """D5: neither side's own time, whichever is selected."""
    join = "S [RANGE 1 HOUR] JOIN S AS o [RANGE 1 HOUR] ON S.id = o.id"
    catalog = change(base(), f"CREATE STREAM Q AS SELECT S.ts, o.x FROM {join};")
    assert [name for name, _ in catalog.streams["Q"].attributes] == ["ts", "x", "event_time"]
    assert catalog.streams["Q"].event_time == "event_time"
    text = print_statements(catalog_statements(catalog))
    assert "TIMESTAMP BY event_time" in text
    assert read_catalog(text).streams == catalog.streams


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE STREAM Q AS SELECT ts, id FROM S START AT EARLIEST;", "result-start"),
        ("CREATE STREAM Q WATERMARK '1 minute' AS SELECT ts, id FROM S;", "named-result"),
        (
            "CREATE STREAM Q TIMESTAMP BY t AS SELECT ts, ts + INTERVAL 1 HOUR AS t FROM S;",
            "result-event-time",
        ),
        ("CREATE STREAM Q AS SELECT AVG(x) AS window_time FROM S [RANGE 1 HOUR];", "result-event-time"),
        ("CREATE STREAM Q AS SELECT AVG(x) AS m FROM S [ROWS 3];", "result-event-time"),
        ("CREATE STREAM Q AS SELECT MAX(ts) AS t FROM S [ROWS 3] GROUP BY id;", "result-event-time"),
        (
            "CREATE STREAM Q AS SELECT x AS a FROM S UNION ALL SELECT AVG(x) AS a FROM S [RANGE 1 HOUR];",
            "result-event-time",
        ),
    ],
)
def test_results_without_an_event_time_of_their_own_are_refused(text: str, code: str) -> None:
    assert findings(text)[0][0] == code


def test_results_of_results_are_not_piled_up_without_end() -> None:
    made = [f"CREATE STREAM Q{n} AS SELECT ts, id FROM {f'Q{n - 1}' if n else 'S'};" for n in range(17)]
    catalog = change(base(), "".join(made[:16]))
    assert findings(made[16], catalog)[0][0] == "too-deep"
    assert (
        change(catalog, "CREATE STREAM Other AS SELECT ts, id FROM Q14;").streams["Other"].event_time == "ts"
    )


def test_result_of_tuple_windows_has_the_time_of_the_latest_tuple() -> None:
    catalog = change(base(), "CREATE STREAM Q AS SELECT AVG(x) AS m, MAX(ts) AS t FROM S [ROWS 3];")
    assert catalog.streams["Q"].event_time == "t"
    assert findings("ALTER STREAM Q TIMESTAMP BY t;", catalog)[0][0] == "named-result"


def test_query_of_a_named_result_must_go_on_to_resolve() -> None:
    catalog = change(base(), "CREATE STREAM Q AS SELECT ts, n FROM S;")
    assert findings("ALTER STREAM S DROP n;", catalog)[0][0] == "in-use"
    assert change(catalog, "ALTER STREAM S DROP x;").streams["Q"] == catalog.streams["Q"]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("ALL", Anything()),
        ("*", Anything()),
        ("NONE", Nothing()),
        ("{}", Nothing()),
        ("120", Constant(120)),
        ("'a'", Constant("a")),
        ("[120, 200]", Range(120, 200, True)),
        ("(-1, 2.5)", Range(-1, 2.5, False)),
        ("{1, 'b'}", OneOf((1, "b"))),
    ],
)
def test_pattern(text: str, pattern: object) -> None:
    statement = parse_statement(f"INSERT SP INTO STREAM s LET DDP = TUPLES:{text}, SRP = frbac:R")
    assert isinstance(statement, InsertSP)
    assert statement.ddp.tuples == pattern
    assert parse_statement(print_statement(statement)) == statement


def test_punctuation_as_figure_8_prints_it() -> None:
    statement = parse_statement(
        "INSERT SECURITY PUNCTUATION AS sp1 INTO STREAM 3 LET sp1.DDP = TUPLES:[120, 200] AND ATTRIBUTES:Frequency"
        " sp1.SRP = frbac:R1 WITH GRANT OPTION, sp1.SIGN = POSITIVE, sp1.IMMUTABLE = TRUE"
    )
    assert isinstance(statement, InsertSP)
    assert statement.stream is not None
    assert statement.stream.text == "3"
    assert statement.ddp == DataDescription(Anything(), Range(120, 200, True), Constant("Frequency"))
    assert statement.srp == Restriction("frbac", Constant("R1"), True)
    assert statement.immutable


def test_punctuation_of_a_query() -> None:
    statement = parse_statement(
        "INSERT SP INTO STREAM Stream1 LET QUERY = 'Q2', SRP = user:ann, SIGN = NEGATIVE"
    )
    assert isinstance(statement, InsertSP)
    assert (statement.query, statement.positive) == ("Q2", False)


def test_several_punctuations_on_a_result() -> None:
    text = (
        "CREATE STREAM C AS SELECT ts FROM S ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:A;"
        " INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:B)"
    )
    statement = parse_statement(text)
    assert isinstance(statement, CreateStream)
    assert "C" in apply(base(), [statement]).streams


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("INSERT SP AS a INTO STREAM s LET b.DDP = TUPLES:ALL, SRP = frbac:R", "wrong-prefix"),
        ("INSERT SP INTO STREAM s LET a.DDP = TUPLES:ALL, SRP = frbac:R", "wrong-prefix"),
        ("INSERT SP INTO STREAM s LET DDP = TUPLES:ALL", "missing-srp"),
        ("INSERT SP INTO STREAM s LET SRP = frbac:R", "missing-ddp"),
        ("INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:R", "missing-stream"),
        ("INSERT SP INTO STREAM s LET DDP = TUPLES:ALL, SRP = frbac:R, SRP = frbac:Q", "clause-twice"),
        ("INSERT SP INTO STREAM s LET DDP = TUPLES:[1, 2), SRP = frbac:R", "syntax"),
        ("INSERT SP INTO STREAM s LET DDP = TUPLES:[1, 'a'], SRP = frbac:R", "mixed-range"),
        ("INSERT SP INTO STREAM s LET QUERY = 'q', DDP = TUPLES:ALL, SRP = user:a", "query-punctuation"),
        ("CREATE SP p INTO STREAM s LET QUERY = 'q', SRP = user:a", "query-punctuation"),
    ],
)
def test_bad_punctuation(text: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_statement(text)
    assert caught.value.diagnostics[0].code == code


def test_unknown_model_is_kept_with_a_warning(tmp_path: Path) -> None:
    text = "CREATE STREAM p (ts TIMESTAMP, a INT) TIMESTAMP BY ts PUNCTUATED BY a;"
    text += "CREATE SP s INTO STREAM p LET DDP = TUPLES:ALL, SRP = magic:R;"
    (tmp_path / "a.sql").write_text(text)
    sources = read_sources(tmp_path)
    assert sources.load().punctuations["s"].srp.model == "magic"
    assert [warning.code for warning in sources.warnings()] == ["unknown-model"]


def test_every_code_is_explained() -> None:
    folder = Path(sluicegate.language.__file__).parent
    modules = ["authority", "clauses", "drops", "files", "fold", "fold_grants", "fold_state", "fold_streams"]
    modules += ["fold_users", "load", "named_results", "parse_grants", "parse_statements", "punctuations"]
    used: set[str] = set()
    for module in modules:
        text = (folder / f"{module}.py").read_text(encoding="utf-8")
        used |= set(re.findall(r"(?:fail|note|Diagnostic)\(\s*\"([a-z-]+)\"", text))
    assert used <= set(STATEMENT_CODES)

"""Ways round a catalog that worked elsewhere, tried on its text; the numbers are those of the list of bypasses."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import FALSE, Literal
from sluicegate.expr.types import STRING
from sluicegate.language.fold import apply
from sluicegate.language.load import load_catalog, read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_statements import print_statements
from sluicegate.language.statements import CreateRole, CreateUser, Name
from sluicegate.policy.catalog import Catalog
from sluicegate.source import SourceText

BASE = """
CREATE STREAM S (ts TIMESTAMP, id STRING, n INT, x DOUBLE) TIMESTAMP BY ts OWNER olga;
CREATE STREAM Other (ts TIMESTAMP, id STRING) TIMESTAMP BY ts OWNER olga;
CREATE ROLE R;
CREATE ROLE Q;
CREATE USER olga;
CREATE USER ann ROLES (R);
CREATE USER bob ROLES (Q);
CREATE USER eve ROLES (Q);
CREATE GRANT shared READ (id, n) ON S WHERE n > 5 TO R WITH GRANT OPTION;
CREATE GRANT plain READ (id) ON S TO Q;
"""


def base() -> Catalog:
    return read_catalog(BASE)


def change(catalog: Catalog, text: str, author: str | None = None) -> Catalog:
    return apply(catalog, parse_statements(SourceText("<change>", text)), author)


def codes(text: str, author: str | None = None, catalog: Catalog | None = None) -> list[str]:
    with pytest.raises(DiagnosticError) as caught:
        change(catalog or base(), text, author)
    return [each.code for each in caught.value.diagnostics]


def attempt(text: str) -> tuple[Sequence[Diagnostic], Catalog | None]:
    """Findings, or the catalog."""
    try:
        return (), change(base(), text)
    except DiagnosticError as error:
        return error.diagnostics, None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE GRANT g READ (i*) ON S TO R;", "wildcard"),
        ("CREATE GRANT g READ (S.*) ON S TO R;", "wildcard"),
        ("CREATE GRANT g READ (id, *) ON S TO R;", "wildcard"),
        ("CREATE GRANT g READ (*, id) ON S TO R;", "text-after-star"),
        ("CREATE GRANT g READ (*id) ON S TO R;", "text-after-star"),
        ("CREATE GRANT g READ (* EXCEPT (n)) ON S TO R;", "text-after-star"),
        ("CREATE GRANT g COUNT (*, n) ON S TO R;", "text-after-star"),
        ("CREATE GRANT g READ (id) ON S* TO R;", "wildcard"),
        ("CREATE GRANT g READ (id) ON * TO R;", "syntax"),
        ("CREATE GRANT g READ (id) ON S TO R*;", "wildcard"),
        ("CREATE GRANT g READ (ID) ON S TO R;", "unknown-attribute"),
        ("CREATE GRANT g READ (id) ON s TO R;", "unknown-stream"),
        ("CREATE GRANT g READ (id) ON S TO r;", "unknown-role"),
        ('CREATE GRANT g READ (id) ON S TO "R ";', "unknown-role"),
        ('CREATE GRANT g READ ("id ") ON S TO R;', "unknown-attribute"),
        ("INSERT SP INTO STREAM S LET DDP = TUPLES:ALL, SRP = frbac:Doc*;", "wildcard"),
        ("INSERT SP INTO STREAM S LET DDP = TUPLES:ALL, SRP = frbac:*Doc;", "text-after-star"),
    ],
)
def test_6_wildcards_and_near_names(text: str, code: str) -> None:
    """Bypass 6 (CVE-2017-7676, Kyuubi #6930): what stands beside a `*`, and names that are only nearly right."""
    assert codes(text)[0] == code


def test_6_names_that_cannot_be_seen() -> None:
    """Bypass 6: a name with an invisible character is not another name that looks the same."""
    for odd in ("R\u200b", "R\u00a0", "\u202eR", "R\x00"):
        assert codes(f'CREATE ROLE "{odd}";') == ["unsafe-character"]


def test_6_star_is_what_the_stream_had_then() -> None:
    """Bypass 6, D6: an attribute that is added later is seen by no grant that said `*`."""
    catalog = change(base(), "CREATE GRANT all_of_it READ (*) ON S TO R; ALTER STREAM S ADD secret STRING;")
    assert [column.name for column in catalog.grants["all_of_it"].attributes] == ["ts", "id", "n", "x"]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE GRANT g READ (id) ON S WHERE no_such(n) > 1 AND lower(n) = 'a' TO R;",
        "CREATE GRANT g AVG (id) ON S TO R;",
        "CREATE GRANT g AGGREGATE (MEDIAN(n)) ON S TO R;",
        "CREATE GRANT g READ (id) ON S WHERE n = 'text' TO R;",
        "CREATE GRANT g READ (id) ON S WHERE gone > 1 TO R;",
        "CREATE GRANT g READ (id) ON S WINDOW AT LEAST '1 hour' TO R;",
        "CREATE GRANT g READ (id) ON S WHERE (SELECT 1) = 1 TO R;",
        "CREATE GRANT g READ (id) ON S WHERE id RLIKE '.*' TO R;",
        "CREATE GRANT g READ (id) ON S WHERE COALESCE(self.g, 'x') = 'x' TO R;",
    ],
)
def test_9_a_policy_that_cannot_be_enforced_is_refused(text: str) -> None:
    """Bypass 9 (Doris #62729: the statement succeeded, the policy was discarded)."""
    assert codes(text)


@pytest.mark.parametrize("column", ["n", "id"])
def test_9_a_dropped_attribute_closes_its_grants(column: str) -> None:
    """Bypass 9, D6: the grant stays, says why, and allows nothing, its predicate not even by accident."""
    catalog = change(base(), f"ALTER STREAM S DROP {column};")
    grant = catalog.grants["shared"]
    assert grant.closed is not None
    assert f"`{column}`" in grant.closed
    assert (grant.attributes, grant.predicate, grant.grant_option) == ((), FALSE, False)
    assert (catalog.grants["plain"].closed is None) == (column == "n")
    again = read_catalog(print_statements(catalog_statements(catalog)))
    assert again.grants == catalog.grants


def test_9_an_attribute_that_comes_back_opens_nothing() -> None:
    """Bypass 9: dropping and adding an attribute of the same name does not bring its grants back."""
    catalog = change(base(), "ALTER STREAM S DROP n; ALTER STREAM S ADD n STRING;")
    assert catalog.grants["shared"].closed is not None


@pytest.mark.parametrize(
    "broken",
    [
        b"CREATE GRANT g READ (id) ON",
        b"\xff\xfe\x00binary",
        b"'",
        b"CREATE ROLE Z",
        b"CREATE ROLE R;",
        b"\x00" * 50,
    ],
)
def test_14_one_bad_file_and_there_is_no_catalog(tmp_path: Path, broken: bytes) -> None:
    """Bypass 14 (Gravitino #11981): a half-read catalog is not served as if it were whole."""
    (tmp_path / "a.sql").write_text(BASE)
    assert load_catalog(tmp_path).grants
    (tmp_path / "b.sql").write_bytes(broken)
    with pytest.raises(DiagnosticError):
        load_catalog(tmp_path)


def test_14_a_file_that_was_cut_off_is_noticed(tmp_path: Path) -> None:
    """Bypass 14: no beginning of a catalog's text is a wider catalog; what ends inside a statement is refused."""
    text = "CREATE STREAM S (a INT);\nCREATE ROLE R;\nCREATE GRANT g READ (a) ON S TO R WHERE a > 5;"
    for end in range(len(text)):
        try:
            catalog = read_catalog(text[:end])
        except DiagnosticError:
            continue
        assert not catalog.grants


def test_14_missing_and_empty_folders(tmp_path: Path) -> None:
    """Bypass 14, 13: nothing to read is a finding, not a catalog."""
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(DiagnosticError):
            load_catalog(folder)
    (tmp_path / "dir.sql").mkdir()
    with pytest.raises(DiagnosticError, match="file-unreadable"):
        load_catalog(tmp_path)


def test_14_a_huge_file_costs_little(tmp_path: Path) -> None:
    """Bypass 14: refused in bounded time."""
    (tmp_path / "a.sql").write_bytes(b"CREATE ROLE x;\n" * 700_000)
    start = time.monotonic()
    with pytest.raises(DiagnosticError, match="file-too-large"):
        load_catalog(tmp_path)
    assert time.monotonic() - start < 5


def test_15_removing_one_rule_leaves_the_others() -> None:
    """Bypass 15 (CVE-2024-27309)."""
    catalog = base()
    for name in catalog.grants:
        after = change(catalog, f"DROP GRANT {name};")
        assert after.grants == {key: grant for key, grant in catalog.grants.items() if key != name}


def test_15_a_closed_grant_does_not_touch_others() -> None:
    """Bypass 15: the same for a grant that closes."""
    catalog = change(base(), "ALTER STREAM S DROP n;")
    assert catalog.grants["plain"] == base().grants["plain"]


@pytest.mark.parametrize(
    "text",
    [
        "ALTER STREAM S OWNER eve;",
        "ALTER STREAM S ADD more INT;",
        "DROP STREAM S CASCADE;",
        "CREATE STREAM Mine (a INT);",
        "CREATE STREAM Mine AS SELECT ts, id FROM S; ALTER STREAM S OWNER eve;",
        "CREATE STREAM Mine OWNER ann AS SELECT ts, id FROM S;",
        "CREATE OR REPLACE GRANT plain READ (*) ON S TO Q;",
        "CREATE GRANT more READ (*) ON S TO Q;",
        "CREATE GRANT more READ (id) ON S TO Q;",
        "CREATE GRANT more READ (id) ON S GRANTED BY olga TO Q;",
        "DROP GRANT shared;",
        "DROP GRANT plain;",
        "ALTER USER eve ADD ROLE R;",
        "ALTER ROLE Q INHERITS R;",
        "CREATE USER x;",
        "CREATE ROLE x;",
        "SET FACT f('a') = 1;",
        "DROP USER olga CASCADE;",
        "DROP ROLE R CASCADE;",
        "CREATE SP p INTO STREAM S LET DDP = TUPLES:ALL, SRP = frbac:Q;",
        "BEGIN; ALTER STREAM S OWNER eve; COMMIT;",
    ],
)
def test_16_a_reader_changes_nothing(text: str) -> None:
    """Bypass 16 (GHSA-vjr2-wpfh-5r9p): owner, streams, grants, roles, facts."""
    assert {"not-allowed", "may-not-grant"} & set(codes(text, "eve"))


def test_16_unknown_and_disabled_authors() -> None:
    """Bypass 16, 13: nobody is not an administrator."""
    assert codes("CREATE ROLE x;", "nobody")[0] == "unknown-author"
    disabled = change(base(), "ALTER USER olga DISABLE;")
    assert codes("ALTER STREAM S ADD more INT;", "olga", disabled)[0] == "unknown-author"
    assert codes("CREATE ROLE x;", "")[0] == "unknown-author"


def test_16_owners_and_holders_of_the_option_may() -> None:
    """R19: an owner grants freely; a holder of the option no more than it has, and may take its own back."""
    catalog = change(base(), "CREATE GRANT o READ (*) ON S TO Q; ALTER STREAM S ADD more INT;", "olga")
    assert catalog.grants["o"].grantor is None
    passed = change(catalog, "CREATE GRANT p READ (id) ON S WHERE n > 10 TO USER eve;", "ann")
    assert passed.grants["p"].grantor == "ann"
    assert codes("CREATE GRANT p READ (id) ON S WHERE n > 1 TO USER eve;", "ann") == ["may-not-grant"]
    assert codes("CREATE OR REPLACE GRANT p READ (id) ON S WHERE n > 10 TO Q;", "eve", passed) == [
        "not-allowed"
    ]
    assert "p" not in change(passed, "DROP GRANT p;", "ann").grants
    assert read_catalog(print_statements(catalog_statements(passed))).grants == passed.grants


def test_16_a_named_result_cannot_borrow_rights() -> None:
    """Bypass 16: who made a result may not give it to an owner with more rights, or put another feed under a stream."""
    made = change(
        base(), "CREATE STREAM Mine AS SELECT ts, id FROM S; CREATE GRANT m READ (id) ON Mine TO Q;", "eve"
    )
    assert made.streams["Mine"].owner == "eve"
    assert codes("ALTER STREAM Mine OWNER olga;", "eve", made) == ["not-allowed"]
    assert codes("ALTER STREAM S FROM text OPTIONS (path = 'x');", "olga") == ["not-allowed"]
    assert codes("ALTER STREAM S OPTIONS (path = 'x');", "olga") == ["not-allowed"]
    gone = change(made, "DROP USER eve CASCADE;")
    assert "Mine" not in gone.streams
    assert "m" not in gone.grants


def test_16_what_was_passed_on_ends_with_its_ground() -> None:
    """R19: dropping the grant drops it; a lost role closes it."""
    passed = change(base(), "CREATE GRANT p READ (id) ON S WHERE n > 10 TO USER eve;", "ann")
    assert "p" not in change(passed, "DROP GRANT shared;").grants
    lost = change(passed, "ALTER USER ann DROP ROLE R;")
    assert lost.grants["p"].closed is not None
    assert not lost.grants["p"].attributes
    narrowed = change(
        passed, "CREATE OR REPLACE GRANT shared READ (n) ON S WHERE n > 5 TO R WITH GRANT OPTION;"
    )
    assert narrowed.grants["p"].closed is not None


def test_21_roles_cannot_inherit_in_a_circle() -> None:
    """Bypass 21 (GHSA-w222-m46c-mgh6): refused whichever statement closes the circle; asking again changes nothing."""
    circle = "CREATE ROLE A INHERITS B; CREATE ROLE B INHERITS C; CREATE ROLE C INHERITS A;"
    for _ in range(2):
        with pytest.raises(DiagnosticError):
            read_catalog(circle)
        with pytest.raises(DiagnosticError, match="role-cycle"):
            change(base(), "ALTER ROLE R INHERITS Q; ALTER ROLE Q INHERITS R;")
    catalog = base()
    assert catalog.roles_of("ann") == {"R"}
    assert catalog.roles_of("ann") == {"R"}


def test_21_a_long_chain_is_no_circle() -> None:
    """Bypass 21: a chain of 300 roles is read, and without recursion."""
    statements = [CreateRole(Name("r0"))] + [
        CreateRole(Name(f"r{at}"), (Name(f"r{at - 1}"),)) for at in range(1, 300)
    ]
    catalog = apply(Catalog(), [*statements, CreateUser(Name("u"), (Name("r299"),))])
    assert len(catalog.roles_of("u")) == 300


@pytest.mark.parametrize(
    "path",
    [
        "../secret.csv",
        "/etc/hostname",
        "a/../../secret.csv",
        "link.csv",
        "linked/secret.csv",
        "..\\secret.csv",
        "C:x.csv",
        "",
        ".",
    ],
)
def test_32_paths_do_not_leave_the_folder(tmp_path: Path, path: str) -> None:
    """Bypass 32 (CVE-2025-46569): a path is a file of the catalog's folder or nothing."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("1\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "a").mkdir()
    (folder / "a.sql").write_text(f"SET FACT f('a') = FROM FILE '{path}';")
    with pytest.raises(DiagnosticError, match=r"file-outside|file-missing"):
        load_catalog(folder)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("x.geojson", "{", "bad-geojson"),
        ("x.geojson", "[" * 100_000, "bad-geojson"),
        ("x.geojson", '{"type": "Point", "coordinates": [1, 2]}', "bad-geojson"),
        ("x.geojson", '{"type": "Polygon", "coordinates": [[[1, 2], [3, 4]]]}', "bad-polygon"),
        ("x.geojson", '{"type": "Polygon", "coordinates": [[[1, 2], [3, NaN], [4, 1]]]}', "bad-polygon"),
        ("x.geojson", '{"type": "Polygon", "coordinates": [[["1", "2"], [3, 4], [5, 6]]]}', "bad-geojson"),
        ("x.geojson", '{"type": "FeatureCollection", "features": []}', "bad-geojson"),
        ("x.py", "1", "file-type"),
        ("x.csv", "1\n" * (9 * 1024 * 1024), "file-too-large"),
    ],
)
def test_32_data_files_are_data(tmp_path: Path, name: str, content: str, code: str) -> None:
    """Bypass 32: whatever a file holds, it is a polygon, a set or a finding."""
    (tmp_path / name).write_text(content)
    (tmp_path / "a.sql").write_text(f"SET FACT f('a') = FROM FILE '{name}';")
    with pytest.raises(DiagnosticError, match=code):
        load_catalog(tmp_path)


HOSTILE = [
    "'",
    "''",
    "';DROP ROLE R;--",
    "--",
    "/*",
    "*/",
    ";",
    '"',
    '";DROP ROLE R;',
    "\\",
    "\\'",
    "$(x)",
    "{{x}}",
    "\n;\n",
    "%s",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_32_33_text_stays_text(text: str) -> None:
    """Bypass 32, 33 (OPA GHSA-hcw3-j74m-qc58): names and strings with the language's own signs print and read the same."""
    name = f"a{text}b".replace("\n", "")
    statements = [
        CreateRole(Name(name)),
        CreateUser(Name("u"), (Name(name),), ((Name(name), Literal(text, STRING)),)),
    ]
    catalog = apply(Catalog(), statements)
    again = read_catalog(print_statements(catalog_statements(catalog)))
    assert (again.roles, again.users) == (catalog.roles, catalog.users)
    assert set(again.roles) == {name}


def test_32_a_forbidden_function_by_another_name() -> None:
    """Bypass 32 (CVE-2022-36085): what is not a built-in is a fact that is not set, and allows nothing; none hides one."""
    assert codes("CREATE GRANT g READ (id) ON S WHERE id = java_method('java.lang.System', id) TO R;") == [
        "bad-fact"
    ]
    for name in ("lower", "LOWER", "distance_nm", "count", "Count"):
        assert codes(f"SET FACT {name}('a') = 1;") == ["reserved-name"]


def test_33_a_printed_catalog_means_the_same() -> None:
    """Bypass 33: every grant of a printed catalog equals the grant that was printed, and printing is stable."""
    catalog = change(
        base(),
        "CREATE GRANT g READ (a.id, b.id) ON S AS a, S AS b WHERE a.n = b.n AND NOT (a.x > 1 OR b.x IS NULL) TO USER bob;"
        "CREATE GRANT h AGGREGATE (COUNT(*), LAST(x)) ON S DURING [NULL, stop(self.k)] NARROW BY (n) MIN GROUP 3 TO R;"
        "CREATE GRANT i APPEND ON S WHERE id LIKE 'a\\%%' AND n IN (1, 2) TO Q;",
    )
    text = print_statements(catalog_statements(catalog))
    again = read_catalog(text)
    assert replace(again, version=catalog.version) == catalog
    assert print_statements(catalog_statements(again)) == text


FRAGMENTS = [
    *[
        "CREATE",
        "OR",
        "REPLACE",
        "GRANT",
        "STREAM",
        "ROLE",
        "USER",
        "SP",
        "SET",
        "FACT",
        "PUBLIC",
        "READ",
        "AVG",
        "COUNT",
        "AGGREGATE",
        "APPEND",
        "ON",
        "WHERE",
        "TO",
        "BY",
    ],
    *[
        "DURING",
        "WINDOW",
        "AT",
        "LEAST",
        "STEP",
        "ROWS",
        "MIN",
        "GROUP",
        "NARROW",
        "WITH",
        "OPTION",
        "ALTER",
        "DROP",
        "CASCADE",
        "BEGIN",
        "COMMIT",
        "INSERT",
        "INTO",
    ],
    *[
        "LET",
        "DDP",
        "SRP",
        "SIGN",
        "TUPLES",
        "ALL",
        "SELECT",
        "FROM",
        "FILE",
        "OWNER",
        "INHERITS",
        "POLYGON",
        "TIMESTAMP",
        "NULL",
        "self",
        "S",
        "R",
        "n",
        "id",
        "a",
        "b",
    ],
    *[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        ":",
        ".",
        "*",
        "=",
        "<",
        ">",
        "-",
        "+",
        "''",
        "'x'",
        '"q"',
        "1",
        "0",
        "-1",
        "1e999",
        "99999999999999999999",
        "5min",
    ],
    "--",
    "/*",
    "*/",
    "'",
    '"',
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map(" ".join) | st.text(max_size=60))
def test_any_text_is_a_catalog_or_findings(text: str) -> None:
    """No text makes reading fail in another way than with findings; what is read is stable under printing (I6)."""
    findings, catalog = attempt(text)
    assert all(each.code and each.message for each in findings)
    if catalog is None:
        assert findings
        return
    assert (
        replace(read_catalog(print_statements(catalog_statements(catalog))), version=catalog.version)
        == catalog
    )


@pytest.mark.parametrize(
    "text",
    [
        "(" * 50_000,
        "CREATE GRANT g READ (id) ON S WHERE " + "(" * 5_000 + "1" + ")" * 5_000 + " = 1 TO R;",
        "CREATE GRANT g READ (id) ON S WHERE " + "NOT " * 5_000 + "n = 1 TO R;",
        "CREATE ROLE " + "x" * 100_000 + ";",
        "SET FACT f('a') = {" + "1," * 100_000 + "'a'};",
        "CREATE ROLE;" * 20_000,
        ";" * 100_000,
        "CREATE GRANT g READ (" + ", ".join(f"a{at}" for at in range(3_000)) + ") ON S TO R;",
        "CREATE STREAM Z (" + ", ".join(f"a{at} INT" for at in range(3_000)) + ", a1 INT);",
    ],
    ids=["open", "nested", "not", "long-name", "set", "many-errors", "semicolons", "attributes", "columns"],
)
def test_hostile_sizes_end_soon(text: str) -> None:
    """Bounded time, no recursion error; at most a page of findings."""
    start = time.monotonic()
    findings, _ = attempt(text)
    assert len(findings) <= 50
    assert time.monotonic() - start < 5

"""Queries that a change does not concern are not judged anew: only where judging would say the same (R10)."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.network.authorize import authorize, is_same_for
from sluicegate.source import SourceText

BASE = """
CREATE STREAM S (ts TIMESTAMP, id STRING, kind STRING, n INT) TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, id STRING, n INT) TIMESTAMP BY ts;
CREATE ROLE Senior INHERITS Junior; CREATE ROLE Junior; CREATE ROLE Counter; CREATE ROLE Other;
CREATE USER ann ROLES (Senior) SET (kind = 'a');
CREATE USER bob ROLES (Counter) SET (kind = 'b');
CREATE USER eve;
SET FACT low('n') = 1; SET FACT begin('a') = TIMESTAMP '2026-01-01 00:00:00'; SET PUBLIC FACT idle('x') = 5;
CREATE GRANT own READ (ts, id, n) ON S WHERE kind = self.kind AND n >= low('n') TO Junior;
CREATE GRANT mine READ (id, n) ON T TO USER ann;
CREATE GRANT sums AGGREGATE (SUM(n), COUNT(*)) ON S DURING [begin('a'), end('a')] BY (kind)
  WINDOW AT LEAST '1 minute' STEP AT LEAST '1 minute' TO Counter;
CREATE GRANT idle READ (id) ON T TO Other;
"""
CHANGES = [
    "ALTER USER ann SET (kind = 'b');",
    "ALTER USER ann SET (other = 1);",
    "ALTER USER ann DROP ROLE Senior;",
    "ALTER USER ann ADD ROLE Counter;",
    "ALTER USER ann ADD ROLE Other;",
    "ALTER USER ann DISABLE;",
    "ALTER USER bob DISABLE;",
    "ALTER USER bob ADD ROLE Junior;",
    "ALTER USER eve ADD ROLE Junior;",
    "ALTER ROLE Senior INHERITS NONE;",
    "ALTER ROLE Counter INHERITS Senior;",
    "ALTER ROLE Junior INHERITS Other;",
    "SET FACT low('n') = 2;",
    "SET PUBLIC FACT low('n') = 1;",
    "DROP FACT low('n');",
    "SET FACT end('a') = TIMESTAMP '2026-02-01 00:00:00';",
    "SET FACT idle('x') = 6;",
    "DROP GRANT own;",
    "DROP GRANT mine;",
    "DROP GRANT sums;",
    "DROP GRANT idle;",
    "CREATE OR REPLACE GRANT own READ (ts, id) ON S WHERE kind = self.kind TO Junior;",
    "CREATE OR REPLACE GRANT sums AGGREGATE (SUM(n)) ON S WINDOW AT LEAST '2 minutes' STEP AT LEAST '2 minutes' TO Counter;",
    "CREATE OR REPLACE GRANT idle READ (id, n) ON T TO Junior;",
    "CREATE GRANT more READ (id, kind) ON S WHERE n > 5 TO USER eve;",
    "CREATE GRANT pairs READ (S.id, T.n) ON S, T WHERE S.id = T.id TO Counter;",
    "ALTER STREAM T ADD extra INT;",
    "CREATE STREAM U (ts TIMESTAMP, id STRING) TIMESTAMP BY ts;",
    "CREATE USER zoe ROLES (Senior);",
    "CREATE ROLE Newest INHERITS Senior;",
]
QUERIES = [
    "SELECT id, n FROM S WHERE n > 3",
    "SELECT id, kind FROM S",
    "SELECT id, n FROM T",
    "SELECT SUM(n), COUNT(*) FROM S [RANGE 1 MINUTE]",
    "SELECT S.id, T.n FROM S [RANGE 1 MINUTE] JOIN T [RANGE 1 MINUTE] ON S.id = T.id",
]
USERS = ["ann", "bob", "eve", "nobody"]
CATALOG = read_catalog(BASE)


def make_change(text: str) -> Catalog:
    return apply(CATALOG, parse_statements(SourceText("<change>", text)))


def judge(catalog: Catalog, user: str, query: str) -> object:
    try:
        found = authorize(catalog, user, query)
    except DiagnosticError as error:
        return tuple(each.message for each in error.diagnostics)
    return found.mark, found.notices, found.releases, found.follow


judge_before = cache(lambda user, query: judge(CATALOG, user, query))


@pytest.mark.parametrize("text", CHANGES)
def test_who_is_passed_over_would_be_judged_the_same(text: str) -> None:
    changed = make_change(text)
    for user, query in product(USERS, QUERIES):
        if is_same_for(user, CATALOG, changed):
            assert judge(changed, user, query) == judge_before(user, query)


def test_most_changes_pass_most_users_over() -> None:
    passed = [is_same_for(user, CATALOG, make_change(text)) for user, text in product(USERS, CHANGES)]
    assert sum(passed) > len(passed) // 2

"""Whether a fact that is not PUBLIC is set, and to what, shows nowhere in what a principal is told (R9)."""

from __future__ import annotations

import io
import json

import pytest

from sluicegate.cli.console import Console
from sluicegate.cli.explain_text import tell
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.resolve import read_query
from sluicegate.rewrite.explain import explain
from sluicegate.rewrite.explain_json import explanation_json
from sluicegate.source import SourceText

CATALOG = read_catalog("""
CREATE STREAM P (ts TIMESTAMP, id INT, Pos DOUBLE, Port STRING) TIMESTAMP BY ts;
CREATE STREAM H (ts TIMESTAMP, id INT, B DOUBLE) TIMESTAMP BY ts;
CREATE ROLE R;
CREATE USER paul ROLES (R) SET (Port = 'X');
CREATE GRANT near READ (id, Pos, ts) ON P WHERE Pos >= target('a') - 5 AND abs(Pos - target('a')) < 9 TO R;
CREATE GRANT sums AGGREGATE (SUM(Pos), COUNT(*)) ON P WHERE Pos > target('a') DURING [start('a'), end('a')] BY (id)
  WINDOW AT LEAST '10 minutes' STEP AT LEAST '10 minutes' TO R;
CREATE GRANT pairs READ (P.id, Pos, B) ON P, H WHERE P.id = H.id AND Pos > target('b') DURING [start('b'), NULL] TO R;
CREATE GRANT fleets COUNT (*) ON P WHERE is_member(id, fleet('a')) WINDOW AT LEAST '10 minutes' MIN GROUP 3 TO R;
""")
SETTINGS = (
    "",
    "SET FACT target('a') = 100.0;",
    "SET FACT target('a') = 500;",
    "SET FACT target('a') = 1; SET FACT start('a') = TIMESTAMP '2026-01-01 10:00:00';",
    "SET FACT start('a') = TIMESTAMP '2026-01-01 10:00:00'; SET FACT end('a') = TIMESTAMP '2026-01-01 09:00:00';",
    "SET FACT target('b') = 1.0; SET FACT start('b') = TIMESTAMP '2026-01-01 10:00:00';",
    "SET FACT fleet('a') = {1, 2, 3};",
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, Pos FROM P WHERE Pos > 200",
        "SELECT SUM(Pos) FROM P [RANGE 10 MINUTES]",
        "SELECT id, COUNT(*) FROM P [RANGE 1 MINUTE] GROUP BY id",
        "SELECT UNITED COUNT(*) FROM P [RANGE 10 MINUTES]",
        "SELECT P.id, B FROM P [RANGE 1 HOUR] JOIN H [RANGE 1 HOUR] ON P.id = H.id",
    ],
)
def test_explanations_do_not_depend_on_facts_that_are_not_public(query: str) -> None:
    told = set()
    for setting in SETTINGS:
        catalog = apply(CATALOG, parse_statements(SourceText("<facts>", setting)))
        asked = read_query(query, catalog)
        found = explain(catalog, "paul", asked.root, asked.united)
        told.add(
            (
                json.dumps(explanation_json(found), sort_keys=True),
                tell(Console(io.StringIO(), io.StringIO()), found, query),
            )
        )
    assert len(told) == 1
    assert "target('a')" in next(iter(told))[1] or " JOIN " in query

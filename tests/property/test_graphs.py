"""Authorized graphs that are kept: whatever changed in the catalog, what is found again is what would be found anew."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.network.authorize import Allowed, authorize
from sluicegate.runtime.network.graphs import Graphs
from sluicegate.runtime.network.seats import Seat, seat_catalog
from sluicegate.source import SourceText

BASE = """
CREATE STREAM S (ts TIMESTAMP, id STRING, kind STRING, n INT) TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, id STRING, n INT) TIMESTAMP BY ts;
CREATE STREAM U (ts TIMESTAMP, id STRING, n INT) TIMESTAMP BY ts;
CREATE ROLE Senior INHERITS Junior; CREATE ROLE Junior; CREATE ROLE Counter;
CREATE USER ann ROLES (Senior) SET (kind = 'a', at = 'x');
CREATE USER bob ROLES (Counter, Junior) SET (kind = 'b', id = 's1') FOLLOW U (n) ON id WITHIN '1 minute';
SET FACT low('x') = 1; SET FACT begin('a') = TIMESTAMP '2026-01-01 00:00:00'; SET PUBLIC FACT idle('x') = 5;
CREATE GRANT g0 READ (ts, id, n) ON S WHERE kind = self.kind AND n >= low(self.at) TO Junior;
CREATE GRANT g1 READ (id, n) ON T TO USER ann;
CREATE GRANT g2 AGGREGATE (SUM(n), COUNT(*)) ON S DURING [begin('a'), end('a')] BY (kind)
  WINDOW AT LEAST '1 minute' STEP AT LEAST '1 minute' TO Counter;
CREATE GRANT g3 READ (id, n) ON T WHERE n < self.n TO Junior;
"""
CATALOG = read_catalog(BASE)
QUERIES = (
    "SELECT id, n FROM S WHERE n > 3",
    "SELECT id, n FROM S UNION ALL SELECT id, n FROM T",
    "SELECT id, n FROM T",
    "SELECT SUM(n), COUNT(*) FROM S [RANGE 1 MINUTE]",
    "SELECT S.id, T.n FROM S [RANGE 1 MINUTE] JOIN T [RANGE 1 MINUTE] ON S.id = T.id",
)
SEATS = (
    Seat("ann"),
    Seat("ann", frozenset({"Junior"})),
    Seat("bob"),
    Seat("bob", frozenset({"Counter"})),
    Seat("eve", frozenset({"Junior"}), claimed=True),
)
PREDICATES = (
    "n > {k}",
    "kind = self.kind",
    "n >= low(self.at)",
    "n < idle('x')",
    "id <> 'a{k}'",
    "n < self.n",
)
WITHOUT_KIND = ("n > {k}", "n < idle('x')", "n < self.n", "n >= low('x')")


def make_statement(rng: Random) -> str:
    """Some change; often one that the catalog as it is refuses."""
    k, role = rng.randrange(4), rng.choice(("Senior", "Junior", "Counter", "Late"))
    name, stream = f"g{rng.randrange(6)}", rng.choice("STU")
    subject = rng.choice((role, "USER ann", "USER bob", "USER eve"))
    predicate = rng.choice(PREDICATES if stream == "S" else WITHOUT_KIND).format(k=k)
    return rng.choice(
        (
            f"CREATE OR REPLACE GRANT {name} READ (id, n) ON {stream} WHERE {predicate} TO {subject};",
            f"CREATE OR REPLACE GRANT {name} AGGREGATE (SUM(n)) ON {stream} WHERE {predicate}"
            f" WINDOW AT LEAST '{k + 1} minutes' STEP AT LEAST '1 minute' TO {subject};",
            f"CREATE OR REPLACE GRANT {name} READ (S.id, T.n) ON S, T WHERE S.id = T.id AND S.n > {k} TO {subject};",
            f"DROP GRANT {name};",
            f"ALTER USER {rng.choice(('ann', 'bob'))} SET (kind = '{rng.choice('ab')}');",
            f"ALTER USER {rng.choice(('ann', 'bob'))} SET ({rng.choice(('n', 'other'))} = {k});",
            f"ALTER USER {rng.choice(('ann', 'bob'))} {rng.choice(('ADD', 'DROP'))} ROLE {role};",
            f"ALTER USER {rng.choice(('ann', 'bob'))} {rng.choice(('DISABLE', 'ENABLE'))};",
            f"ALTER ROLE {role} INHERITS {rng.choice(('NONE', 'Counter', 'Junior'))};",
            f"CREATE ROLE {role};",
            f"SET FACT low('x') = {k};",
            f"SET PUBLIC FACT low('x') = {k};",
            f"SET FACT low('y') = '{k}';",
            f"SET FACT {rng.choice(('begin', 'end'))}('a') = TIMESTAMP '2026-0{k + 1}-01 00:00:00';",
            f"DROP FACT {rng.choice(('low', 'idle'))}('x');",
            f"SET PUBLIC FACT idle('x') = {k};",
            f"ALTER STREAM {stream} ADD extra{k} INT;",
            f"ALTER STREAM {stream} DROP {rng.choice(('n', f'extra{k}'))};",
            f"CREATE STREAM V{k} (ts TIMESTAMP, id STRING) TIMESTAMP BY ts;",
        )
    )


def change(catalog: Catalog, text: str) -> Catalog:
    try:
        return apply(catalog, parse_statements(SourceText("<change>", text)))
    except DiagnosticError:
        return catalog


def ask(graphs: Graphs | None, catalog: Catalog, user: str, query: str) -> Allowed | list[str]:
    try:
        return (authorize if graphs is None else graphs.authorize)(catalog, user, query)
    except DiagnosticError as error:
        return [each.message for each in error.diagnostics]


@settings(max_examples=40)
@given(st.integers(0, 1 << 32))
def test_what_is_kept_is_what_would_be_found(seed: int) -> None:
    rng, graphs, catalog = Random(seed), Graphs(), CATALOG
    asked = rng.sample(list(product(SEATS, QUERIES)), 3)
    for _ in range(8):
        for seat, query in asked:
            seated = seat_catalog(catalog, seat)
            assert ask(graphs, seated, seat.user, query) == ask(None, seated, seat.user, query)
        catalog = change(catalog, make_statement(rng))


def test_seats_of_one_user_keep_their_own() -> None:
    graphs = Graphs()
    seats = [seat_catalog(CATALOG, each) for each in SEATS[:2]]
    seats[1] = seat_catalog(change(CATALOG, "ALTER USER ann ADD ROLE Counter;"), SEATS[1])
    before = [graphs.authorize(each, "ann", QUERIES[0]) for each in seats]
    assert [graphs.authorize(each, "ann", QUERIES[0]) for each in seats] == before
    assert graphs.hits == 2


@pytest.mark.parametrize(
    "text",
    [
        "CREATE GRANT more READ (id, n) ON U TO Senior;",
        "CREATE GRANT more READ (id, n) ON S TO USER bob;",
        "ALTER USER bob SET (kind = 'c');",
        "CREATE STREAM V (ts TIMESTAMP, id STRING) TIMESTAMP BY ts;",
        "ALTER STREAM U ADD extra INT;",
        "SET FACT begin('a') = TIMESTAMP '2026-02-01 00:00:00';",
        "CREATE ROLE Newest INHERITS Senior;",
    ],
)
def test_what_does_not_decide_it_takes_nothing_away(text: str) -> None:
    graphs = Graphs()
    before = graphs.authorize(CATALOG, "ann", QUERIES[0])
    changed = change(CATALOG, text)
    assert changed is not CATALOG
    assert graphs.authorize(changed, "ann", QUERIES[0]) is before


@pytest.mark.parametrize(
    "text",
    [
        "CREATE GRANT more READ (id, n) ON S TO Senior;",
        "CREATE OR REPLACE GRANT g0 READ (id, n) ON S TO Junior;",
        "ALTER USER ann SET (kind = 'c');",
        "ALTER STREAM S ADD extra INT;",
        "SET FACT low('x') = 2;",
        "SET FACT low('y') = 2;",
        "ALTER USER ann ADD ROLE Counter;",
    ],
)
def test_what_decides_it_makes_it_be_found_anew(text: str) -> None:
    graphs = Graphs()
    before = graphs.authorize(CATALOG, "ann", QUERIES[0])
    assert graphs.authorize(CATALOG, "ann", QUERIES[0]) is before
    assert graphs.authorize(change(CATALOG, text), "ann", QUERIES[0]) is not before


def test_users_queries_and_grants_left_out_are_told_apart() -> None:
    graphs = Graphs()
    found = [
        graphs.authorize(CATALOG, "ann", QUERIES[0]),
        graphs.authorize(CATALOG, "bob", QUERIES[2]),
        graphs.authorize(CATALOG, "ann", QUERIES[2]),
        graphs.authorize(CATALOG, "ann", QUERIES[2], frozenset({"g3"})),
    ]
    assert len({id(each) for each in found}) == len(found)
    assert graphs.hits == 0


def test_only_so_many_are_kept() -> None:
    graphs = Graphs(most=1)
    first = graphs.authorize(CATALOG, "ann", QUERIES[0])
    graphs.authorize(CATALOG, "ann", QUERIES[2])
    assert graphs.authorize(CATALOG, "ann", QUERIES[0]) is not first
    with pytest.raises(DiagnosticError):
        graphs.authorize(CATALOG, "nobody", QUERIES[0])

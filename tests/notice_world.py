"""Small worlds for decisions and notices: random grants and queries as text, and what the reference model says of them.

The solver speaks of all values. So constants are few and lie inside the domain, which has values between and beyond them:
a query that some tuple satisfies is satisfied by one of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from random import Random

from sluicegate.expr.nodes import Value
from sluicegate.expr.values import write_timestamp
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import ResolvedQuery, read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.rewrite.explain import Explanation, explain
from sluicegate.testing.oracle import expected
from sluicegate.testing.oracle_grants import Principal
from sluicegate.testing.oracle_run import Run
from sluicegate.testing.oracle_ways import maximal_sets

HOUR = 3_600_000_000
BASE = 1_767_225_600_000_000
NUMBERS: tuple[Value, ...] = (None, -2, -1, 0, 1, 2, 3, 4)
FEW: tuple[Value, ...] = (None, -2, -1, 0, 1, 2, 3)
TEXTS: tuple[Value, ...] = (None, "w", "x", "xa", "y", "z")
DOMAINS: Mapping[str, Mapping[str, Sequence[Value]]] = {
    "S": {"a": NUMBERS, "c": NUMBERS, "b": TEXTS},
    "P": {"a": FEW, "c": FEW},
    "T": {"a": FEW, "d": FEW},
}
SCHEMA = """
CREATE STREAM S (ts TIMESTAMP, a INT, c INT, b STRING) TIMESTAMP BY ts;
CREATE STREAM P (ts TIMESTAMP, a INT, c INT) TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, a INT, d INT) TIMESTAMP BY ts;
CREATE USER u; CREATE USER root;
CREATE GRANT root_s READ (*) ON S TO USER root;
CREATE GRANT root_p READ (*) ON P TO USER root;
CREATE GRANT root_t READ (*) ON T TO USER root;
"""

Tuples = list[dict[str, Value]]
Identity = tuple[tuple[str, int], ...]


def universe(stream: str) -> Tuples:
    """Every tuple of a stream's small domain, all at one time."""
    domains = DOMAINS[stream]
    return [{"ts": BASE, **dict(zip(domains, values, strict=True))} for values in product(*domains.values())]


def random_predicate(rng: Random, stream: str, alias: str = "", depth: int = 2) -> str:
    if depth and rng.random() < 0.45:
        parts = [random_predicate(rng, stream, alias, depth - 1) for _ in range(2)]
        joined = f"({parts[0]} {rng.choice(('AND', 'OR'))} {parts[1]})"
        return f"NOT {joined}" if rng.random() < 0.15 else joined
    name = rng.choice(tuple(DOMAINS[stream]))
    place = f"{alias}.{name}" if alias else name
    if rng.random() < 0.12:
        return f"{place} IS {rng.choice(('', 'NOT '))}NULL"
    operator = rng.choice(("=", "<>", "<", "<=", ">", ">="))
    if name == "b":
        if rng.random() < 0.2:
            return f"{place} IN ('x', 'y')"
        return f"{place} {operator} '{rng.choice('xy')}'"
    others = [each for each in DOMAINS[stream] if each not in (name, "b")]
    if rng.random() < 0.12:
        return f"{place} {operator} {alias + '.' if alias else ''}{rng.choice(others)}"
    return f"{place} {operator} {rng.choice((0, 1, 2) if stream == 'S' else (0, 1))}"


def where(rng: Random, predicate: str, chance: float = 0.8) -> str:
    return f" WHERE {predicate}" if rng.random() < chance else ""


def random_subset(rng: Random, names: Sequence[str], least: int = 1) -> list[str]:
    return sorted(rng.sample(list(names), rng.randint(least, len(names))))


def read_grants(rng: Random, stream: str, most: int = 3, least: int = 1) -> str:
    """Grants whose attributes are more often all than not, so that queries are often valid."""
    names = tuple(DOMAINS[stream])
    made = []
    for number in range(rng.randint(least, most)):
        shown = names if rng.random() < 0.5 else random_subset(rng, names)
        condition = where(rng, random_predicate(rng, stream))
        made.append(
            f"CREATE GRANT {stream.lower()}{number} READ ({', '.join(shown)}) ON {stream}{condition} TO USER u;"
        )
    return "\n".join(made)


@dataclass(frozen=True)
class World:
    """A catalog and a query, and what comes of them."""

    grants: str
    text: str

    @cached_property
    def catalog(self) -> Catalog:
        return read_catalog(SCHEMA + self.grants)

    @cached_property
    def query(self) -> ResolvedQuery:
        return read_query(self.text, self.catalog)

    @cached_property
    def found(self) -> Explanation:
        return explain(self.catalog, "u", self.query.root, self.query.united, limit=0)

    def kinds(self) -> set[str]:
        return {notice.kind for notice in self.found.notices if notice.code == "PR"}

    def messages(self) -> list[str]:
        return [notice.message for notice in self.found.notices]

    def rows(self, user: str, data: Mapping[str, Tuples]) -> list[dict[str, Value]]:
        query = self.query
        return expected(self.catalog, user, query.root, query.outputs, data, query.united).rows

    def seen(self, user: str, data: Mapping[str, Tuples]) -> dict[Identity, list[frozenset[str]]]:
        """For each combination of source tuples that gives rows: the output names of each."""
        usage = {each.column: False for each in self.query.outputs}
        names = {each.column: each.name for each in self.query.outputs}
        found: dict[Identity, list[frozenset[str]]] = {}
        run = Run(Principal(self.catalog, user, data), self.query.united)
        for row in run.rows(self.query.root, usage, frozenset()):
            sets = [frozenset(names[each] for each in shown) for shown in maximal_sets(row.alternatives)]
            if any(sets):
                found[row.identity] = [each for each in sets if each]
        return found

    def describe(self) -> str:
        return f"{self.grants}\n{self.text}\n{self.found.decision}\n" + "\n".join(
            f"{each.code} {each.kind}: {each.message} {each.witness}" for each in self.found.notices
        )


def plain_world(rng: Random) -> World:
    """One stream; outputs are bare, now and then one is computed."""
    items = random_subset(rng, tuple(DOMAINS["S"]))
    if rng.random() < 0.15:
        items.append("a + c AS e")
    return World(
        read_grants(rng, "S"), f"SELECT {', '.join(items)} FROM S{where(rng, random_predicate(rng, 'S'))}"
    )


def _join_grants(rng: Random, left: str, right: str, count: int) -> Iterator[str]:
    for number in range(count):
        shown = [f"l.{each}" for each in random_subset(rng, tuple(DOMAINS[left]))]
        shown += [f"r.{each}" for each in random_subset(rng, tuple(DOMAINS[right]))]
        parts = ["l.a = r.a"] if rng.random() < 0.8 else []
        parts += [random_predicate(rng, left, "l", 1)] if rng.random() < 0.6 else []
        condition = f" WHERE {' AND '.join(parts)}" if parts else ""
        least = " WINDOW AT LEAST '2 hours'" if rng.random() < 0.2 else ""
        yield (
            f"CREATE GRANT j{number} READ ({', '.join(shown)}) ON {left} AS l, {right} AS r"
            f"{condition}{least} TO USER u;"
        )


def join_world(rng: Random) -> World:
    """Two streams, or one with itself, by a key; read grants on the sides and grants on the join."""
    left, right = "P", rng.choice(("T", "T", "P"))
    grants = [read_grants(rng, left, most=2, least=rng.choice((0, 1, 1)))]
    if right != left:
        grants.append(read_grants(rng, right, most=2, least=rng.choice((0, 1, 1))))
    grants += _join_grants(rng, left, right, rng.choice((0, 0, 1, 2)))
    items = [f"x.{each} AS x{each}" for each in random_subset(rng, tuple(DOMAINS[left]))]
    items += [f"y.{each} AS y{each}" for each in random_subset(rng, tuple(DOMAINS[right]), 0)]
    parts = [random_predicate(rng, left, "x", 1)] if rng.random() < 0.5 else []
    parts += [random_predicate(rng, right, "y", 1)] if rng.random() < 0.4 else []
    condition = f" WHERE {' AND '.join(parts)}" if parts else ""
    text = (
        f"SELECT {', '.join(items)} FROM {left} AS x [RANGE 1 HOUR] JOIN {right} AS y [RANGE 1 HOUR]"
        f" ON x.a = y.a{condition}"
    )
    return World("\n".join(grants), text)


def union_world(rng: Random) -> World:
    grants = (
        read_grants(rng, "P", 2, rng.choice((0, 1, 1)))
        + "\n"
        + read_grants(rng, "T", 2, rng.choice((0, 1, 1)))
    )
    first, second = "a AS p, c AS q", "a, d"
    if rng.random() < 0.3:
        first, second = "c AS q", "d"
    one, two = where(rng, random_predicate(rng, "P")), where(rng, random_predicate(rng, "T"))
    text = f"SELECT {first} FROM P{one} UNION ALL SELECT {second} FROM T{two}"
    if rng.random() < 0.4:
        text = f"SELECT * FROM ({text}) AS w WHERE q {rng.choice(('=', '<', '>='))} {rng.choice((0, 1))}"
    return World(grants, text)


def aggregate_world(rng: Random) -> World:
    """An aggregate over P, read or granted, grouped or not, filtered above or not. COUNT(*) tells populations apart."""
    made = [read_grants(rng, "P", 2, rng.choice((0, 0, 1)))]
    for number in range(rng.choice((0, 1, 1, 2))):
        rights = random_subset(rng, ("COUNT(*)", "SUM(a)", "MAX(c)"))
        predicate = random_predicate(rng, "P", depth=1)
        parts = [
            f"CREATE GRANT agg{number} AGGREGATE ({', '.join(rights)}) ON P{where(rng, predicate, 0.5)}",
            rng.choice(("", " BY (a)", " BY (a, c)")),
            rng.choice(("", "", " NARROW BY (c)")),
            rng.choice(("", "", "", " WINDOW AT LEAST '2 hours' STEP AT LEAST '2 hours'")),
            rng.choice(("", "", "", " MIN GROUP 3")),
            " TO USER u;",
        ]
        made.append("".join(parts))
    calls = ["COUNT(*) AS n", *random_subset(rng, ("SUM(a) AS s", "MAX(c) AS m"), 0)]
    grouped = rng.random() < 0.4
    condition = where(rng, random_predicate(rng, "P", depth=1), 0.6)
    united = "UNITED " if rng.random() < 0.15 else ""
    keys = "a AS k, " if grouped else ""
    text = f"SELECT {united}{keys}{', '.join(calls)} FROM P [RANGE 1 HOUR]{condition}{' GROUP BY a' if grouped else ''}"
    if not united and rng.random() < 0.3:
        tests = ["n > 0", *(["k < 1", "k = 2"] if grouped else [])]
        text = f"SELECT * FROM ({text}) AS w WHERE {rng.choice(tests)}"
    return World("\n".join(made), text)


def during_world(rng: Random) -> World:
    """An aggregate by time under grants with intervals; tests on event time cut its windows."""
    made = []
    for number in range(rng.choice((0, 1, 2))):
        condition = rng.choice((" WHERE a >= 0", " WHERE a < 1", ""))
        made.append(f"CREATE GRANT r{number} READ (ts, a) ON P{condition}{_during(rng)} TO USER u;")
    for number in range(rng.choice((0, 1, 1, 2)) if made else rng.choice((1, 2))):
        condition = rng.choice((" WHERE a >= 0", "", "")) + rng.choice(("", " NARROW BY (ts)"))
        parts = condition.partition(" NARROW")
        made.append(
            f"CREATE GRANT g{number} AGGREGATE (COUNT(*), MAX(a)) ON P{parts[0]}{_during(rng)}"
            f"{parts[1]}{parts[2]} TO USER u;"
        )
    tests = [f"ts >= {_time(rng, 0)}"] if rng.random() < 0.7 else []
    tests += [f"ts {rng.choice(('<', '<='))} {_time(rng, 1)}"] if rng.random() < 0.7 else []
    window = rng.choice(("1 HOUR", "2 HOURS", "2 HOURS SLIDE 1 HOUR", "90 MINUTES SLIDE 30 MINUTES"))
    condition = f" WHERE {' AND '.join(tests)}" if tests else ""
    return World("\n".join(made), f"SELECT COUNT(*) AS n, MAX(a) AS m FROM P [RANGE {window}]{condition}")


def _time(rng: Random, from_: int, by: int = 0) -> str:
    halves = rng.choice((2 * from_, 2 * from_ + 1, 2 * from_ + 2, 2 * from_ + 4))
    return f"TIMESTAMP '{write_timestamp(BASE + halves * HOUR // 2 + by)}'"


def _during(rng: Random) -> str:
    if rng.random() < 0.25:
        return ""
    lower = _time(rng, 0) if rng.random() < 0.8 else "NULL"
    upper = _time(rng, 2, rng.choice((0, -1))) if rng.random() < 0.8 else "NULL"
    return f" DURING [{lower}, {upper}]"


def spread(tuples: Tuples, copies: int = 3) -> Tuples:
    """Each tuple in a window of its own, far from the others, and then all of them in one window."""
    alone = [
        {**each, "ts": BASE + 10 * number * HOUR + copy}
        for number, each in enumerate(tuples)
        for copy in range(copies)
    ]
    together = BASE + 10 * len(tuples) * HOUR
    return [*alone, *({**each, "ts": together + copy} for each in tuples for copy in range(copies))]

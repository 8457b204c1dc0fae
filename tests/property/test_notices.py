"""R9 against the reference model over whole small domains: decisions, notices and witnesses are exact, and tell nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from notice_world import (
    BASE,
    DOMAINS,
    HOUR,
    Identity,
    Tuples,
    World,
    aggregate_world,
    during_world,
    join_world,
    plain_world,
    spread,
    union_world,
    universe,
)
from sluicegate.expr.nodes import TRUE, Column, Expr, FactRef, Literal, Value
from sluicegate.expr.rebuild import transform
from sluicegate.expr.types import UNKNOWN
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import During, Grant, Privilege, StreamRef, Subject, User
from sluicegate.rewrite.explain import Explanation, explain
from sluicegate.rewrite.notices import Decision
from sluicegate.testing.cases import Case, describe, random_case
from sluicegate.testing.oracle import expected

Seen = Mapping[Identity, list[frozenset[str]]]
STREAMS = {plain_world: ("S",), join_world: ("P", "T"), union_world: ("P", "T")}


def judge_nothing(world: World, asked: object, got: object) -> str | None:
    """The decision where nothing comes back, checked; None where something does."""
    found = world.found
    codes = [notice.code for notice in found.notices]
    if found.decision is Decision.DENY:
        assert not got, world.describe()
        return "deny"
    assert (codes == ["EMPTY"]) == (not asked), world.describe()
    assert (codes == ["NR"]) == bool(asked and not got), world.describe()
    return None if asked and got else codes[0]


@pytest.mark.parametrize(
    ("make", "count"),
    [(plain_world, 60), (join_world, 40), (union_world, 80)],
    ids=["plain", "join", "union"],
)
def test_notices_on_rows_are_exact(make: Callable[[Random], World], count: int) -> None:
    decided: Counter[str] = Counter()
    data = {stream: universe(stream) for stream in STREAMS[make]}
    for seed in range(count):
        world = make(Random(seed))
        asked, got = world.seen("root", data), world.seen("u", data)
        nothing = judge_nothing(world, asked, got)
        decided[nothing or world.found.decision.value] += 1
        if nothing is None:
            check_rows(world, asked, got)
            check_attributes(world, got)
            check_witnesses(world, data)
    assert {"NR", "partial", "permit"} <= set(decided), decided


def check_rows(world: World, asked: Seen, got: Seen) -> None:
    """PR on rows where a tuple asked for does not come back; of a union, only in branches that are not left out."""
    kinds = world.kinds()
    hidden = [each for each in asked if each not in got]
    if "UNION" in world.text:
        alive = {each[0][0] for each in got}
        assert ("branch" in kinds) == ({each[0][0] for each in asked} != alive), world.describe()
        hidden = [each for each in hidden if each[0][0] in alive]
    assert ("rows" in kinds) == bool(hidden), world.describe()
    assert (world.found.decision is Decision.PERMIT) == (not kinds), world.describe()
    assert not any("may be withheld" in message for message in world.messages()), world.describe()


def check_attributes(world: World, got: Seen) -> None:
    names = {each.name for each in world.query.outputs}
    rows = [shown for sets in got.values() for shown in sets]
    lacking = {name for shown in rows for name in names - shown}
    having = {name for shown in rows for name in shown}
    assert ("attributes" in world.kinds()) == bool(lacking), world.describe()
    if "JOIN" in world.text or "UNION" in world.text:
        return
    pattern = r"attribute `(\w+)` of `\w+` is left out( in some rows)?$"
    told = {(each[1], bool(each[2])) for text in world.messages() if (each := re.match(pattern, text))}
    assert told == {(name, name in having) for name in lacking}, world.describe()


def check_witnesses(world: World, data: Mapping[str, Tuples]) -> None:
    """With what it does not tell filled in, a witness is a tuple that is asked for and does not come back."""
    for notice in world.found.notices:
        if notice.witness is not None:
            for alias in ("x", "y") if "JOIN" in world.text else ("",):
                assert set(told_of(notice.witness, alias)) <= readable(world, alias), world.describe()
            filled = fill(world, data, notice.witness)
            assert any(is_hidden(world, notice.witness, each) for each in filled), world.describe()


def told_of(witness: Mapping[str, Value], alias: str) -> dict[str, Value]:
    prefix = f"{alias}." if alias else ""
    return {name.removeprefix(prefix): value for name, value in witness.items() if name.startswith(prefix)}


def readable(world: World, alias: str) -> set[str]:
    """Attributes that some grant to the user shows."""
    streams = {"": set(DOMAINS), "x": {"P"}, "y": {"T" if "JOIN T" in world.text else "P"}}[alias]
    return {
        column.name
        for grant in world.catalog.grants_to("u")
        for column in grant.attributes
        for ref in grant.streams
        if ref.alias == column.qualifier and ref.stream in streams
    }


def fill(world: World, data: Mapping[str, Tuples], told: Mapping[str, Value]) -> Iterator[dict[str, Tuples]]:
    """Tuples with the witness's values; what it does not tell is any value of the domain or one that it has elsewhere."""
    if "JOIN" not in world.text:
        for stream, tuples in data.items():
            if set(told) <= set(DOMAINS[stream]):
                yield {stream: [{**each, **told} for each in tuples]}
        return
    sides: dict[str, Tuples] = {}
    for alias, stream in (("x", "P"), ("y", "T" if "JOIN T" in world.text else "P")):
        own = told_of(told, alias)
        choices = [
            [own[name]] if name in own else [*domain, *told.values()]
            for name, domain in DOMAINS[stream].items()
        ]
        made = [
            {"ts": BASE, **dict(zip(DOMAINS[stream], values, strict=True))} for values in product(*choices)
        ]
        sides[stream] = [*sides.get(stream, ()), *made]
    yield sides


def is_hidden(world: World, witness: Mapping[str, Value], data: Mapping[str, Tuples]) -> bool:
    asked, got = world.seen("root", data), world.seen("u", data)
    right = "T" if "JOIN T" in world.text else "P"
    streams = {"x": "P", "y": right}
    for identity in asked:
        if identity not in got and all(
            data[streams[alias]][at][name] == value
            for alias, at in identity
            if alias in streams
            for name, value in told_of(witness, alias).items()
        ):
            return True
    return False


@pytest.mark.slow
def test_notices_on_aggregates_are_exact() -> None:
    decided: Counter[str] = Counter()
    many, one = ({"P": spread(universe("P"), copies)} for copies in (3, 1))
    for seed in range(80):
        world = aggregate_world(Random(seed))
        asked, got = world.rows("root", many), world.rows("u", many)
        nothing = judge_nothing(world, asked, got)
        decided[nothing or world.found.decision.value] += 1
        if nothing is None:
            whole = answers(asked, got) and answers(world.rows("root", one), world.rows("u", one))
            assert whole == (world.found.decision is Decision.PERMIT), world.describe()
            if not whole:
                check_shortfalls(world, asked, got)
    assert {"EMPTY", "NR", "partial", "permit", "deny"} <= set(decided), decided


def answers(asked: list[dict[str, Value]], got: list[dict[str, Value]]) -> bool:
    """Whether every row asked for is there, whichever grant it comes by."""
    known = {frozenset((name, value) for name, value in row.items() if name != "_grant") for row in got}
    return all(frozenset(row.items()) in known for row in asked)


def check_shortfalls(world: World, asked: list[dict[str, Value]], got: list[dict[str, Value]]) -> None:
    kinds, names = world.kinds(), {each.name for each in world.query.outputs}
    wider = any(row["window_end"] != row["window_start"] + HOUR for row in got)  # type: ignore[operator]
    assert ("window" in kinds) == wider, world.describe()
    for kind, named in (("function", True), ("attributes", False)):
        short = any(names - set(row) for row in got if ("_grant" in row) is named)
        assert (kind in kinds) == short, world.describe()
    if "MIN GROUP" in world.grants and "READ" in world.grants:
        return  # tuples that are partly readable come back in the company of others only
    alone = BASE + 10 * len(universe("P")) * HOUR
    slots = [
        {int(row["window_start"]) // (10 * HOUR) for row in rows if int(row["window_start"]) < alone}
        for rows in (asked, got)
    ]  # type: ignore[arg-type]
    told = any(text.startswith("tuples that the query asks for") for text in world.messages())
    assert told == bool(slots[0] - slots[1]), world.describe()


def test_windows_that_an_interval_does_not_cover() -> None:
    times = [BASE + half * HOUR // 2 + by for half in range(-3, 13) for by in (-1, 0)]
    data: Tuples = [{"ts": time, "a": a, "c": 0} for time in (*times, None) for a in (None, -1, 0, 1)]
    decided: Counter[str] = Counter()
    for seed in range(40):
        world = during_world(Random(seed))
        runs = [[each] for each in data[::5]] + [data]
        asked, got = ([world.rows(user, {"P": run}) for run in runs] for user in ("root", "u"))
        nothing = judge_nothing(world, any(asked), any(got))
        decided[nothing or world.found.decision.value] += 1
        if nothing is None and world.found.decision is Decision.PERMIT:
            assert all(answers(*each) for each in zip(asked, got, strict=True)), world.describe()
        elif nothing is None:
            singles = [({"P": [each]}) for each in data]
            short = not answers(asked[-1], got[-1]) or any(
                not answers(world.rows("root", each), world.rows("u", each)) for each in singles
            )
            assert short, world.describe()
    assert {"NR", "partial", "permit"} <= set(decided), decided


def with_root(catalog: Catalog) -> Catalog:
    """With a user who reads everything: what the query would give if nothing were withheld."""
    grants = dict(catalog.grants)
    for stream in catalog.streams.values():
        attributes = tuple(Column(stream.name, name, of) for name, of in stream.attributes)
        grants[f"root_{stream.name}"] = Grant(
            f"root_{stream.name}",
            Subject("root", True),
            Privilege.READ,
            (StreamRef(stream.name, stream.name),),
            attributes,
            predicate=TRUE,
        )
    return replace(catalog, grants=grants, users={**catalog.users, "root": User("root")})


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 400, 100))
def test_decisions_hold_on_whole_random_cases(start: int) -> None:
    """Of every kind of query: nothing comes after EMPTY, NR and deny, and all of it after permit."""
    for seed in range(start, start + 100):
        case = random_case(Random(seed))
        catalog = with_root(case.catalog)
        found = explain(catalog, case.user, case.root, case.united, limit=0)
        got = expected(catalog, case.user, case.root, case.outputs, case.data, case.united).rows
        if found.decision in (Decision.DENY, Decision.EMPTY):
            assert not got, describe(case)
        elif found.decision is Decision.PERMIT:
            asked = expected(catalog, "root", case.root, case.outputs, case.data).rows
            assert not count_rows(asked) - count_rows(got), describe(case)


def count_rows(rows: list[dict[str, Value]]) -> Counter[tuple[tuple[str, str], ...]]:
    return Counter(
        tuple(sorted((name, repr(value)) for name, value in row.items() if name != "_grant")) for row in rows
    )


def tell(found: Explanation) -> str:
    """Everything that a principal is told."""
    graphs = [(each.grants, each.refusal) for each in found.graphs.graphs]
    return repr((found.decision, found.notices, found.grants, found.graphs.total, found.graphs.valid, graphs))


def ask(case: Case, catalog: Catalog) -> str:
    return tell(explain(catalog, case.user, case.root, case.united, limit=4))


def test_facts_that_are_not_public_do_not_show() -> None:
    changed = 0
    for seed in range(120):
        rng = Random(seed)
        case = random_case(rng)
        told = ask(case, case.catalog)
        for other in change_facts(case.catalog, rng, public=False):
            assert ask(case, other) == told, describe(case)
        changed += any(ask(case, other) != told for other in change_facts(case.catalog, rng, public=True))
    assert changed, "no public fact made a difference: the test compares nothing"


def change_facts(catalog: Catalog, rng: Random, public: bool) -> Iterator[Catalog]:
    """Facts (only those that are public, or only those that are not) with other values, and not set at all."""
    moved = {
        key: replace(fact, value=_move(fact.value, rng)) if fact.public is public else fact
        for key, fact in catalog.facts.items()
    }
    yield replace(catalog, facts=moved)
    left = {key: fact for key, fact in catalog.facts.items() if fact.public is not public}
    names = {fact.name for fact in left.values()}
    yield replace(
        catalog, facts=left, grants={name: _untype(each, names) for name, each in catalog.grants.items()}
    )


def _move(value: Literal, rng: Random) -> Literal:
    match value.value:
        case bool() as truth:
            return replace(value, value=not truth)
        case int() | float() as number:
            return replace(value, value=number + rng.choice((-7, 1, 1_000_000)))
        case str() as text:
            return replace(value, value=text + "q")
        case _:
            return replace(value, value=frozenset())


def _untype(grant: Grant, set_: set[str]) -> Grant:
    """As it is read when the facts that it names are not set."""

    def change(node: Expr) -> Expr | None:
        return replace(node, of=UNKNOWN) if isinstance(node, FactRef) and node.name not in set_ else None

    during = grant.during
    if during is not None:
        during = During(transform(during.lower, change), transform(during.upper, change))
    return replace(grant, predicate=transform(grant.predicate, change), during=during)


def test_grants_of_others_do_not_show() -> None:
    for seed in range(60):
        case = random_case(Random(seed))
        told = ask(case, case.catalog)
        other = with_root(case.catalog)
        assert ask(case, other) == told, describe(case)
        assert "root" not in told


@pytest.mark.parametrize(
    "query", ["SELECT a FROM P WHERE a > 1", "SELECT SUM(a) FROM P [RANGE 1 HOUR] WHERE a > 0"]
)
def test_neither_type_nor_absence_of_a_fact_shows(query: str) -> None:
    """Read as text: a fact that is not set has no type, and a grant that names it can match nothing."""
    grants = """
    CREATE GRANT r READ (a, c) ON P WHERE a > lim('x') AND c <= lim('x') + 5 DURING [start('x'), NULL] TO USER u;
    CREATE GRANT g SUM (a) ON P WHERE a > lim('x') AND lim('x') >= 0 TO USER u;
    """
    facts = [f"SET FACT lim('x') = {value};" for value in ("10", "-3", "10.5", "10000000000")]
    start = "SET FACT start('x') = TIMESTAMP '2026-01-01 00:00:00';"
    told = {tell(World(grants + each, query).found) for each in ("", start, *facts, facts[0] + start)}
    assert len(told) == 1
    public = World(
        grants + start.replace("FACT", "PUBLIC FACT") + facts[0].replace("FACT", "PUBLIC FACT"), query
    )
    assert tell(public.found) not in told

"""Results that state policies (`ON RESULT`) over random punctuated streams: chains of makers, against the model (R15)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from counters import record_cases
from sluicegate.expr.nodes import Column, Value
from sluicegate.expr.types import INT, TIMESTAMP
from sluicegate.graph.interpret import result_rows, run
from sluicegate.graph.operators import Shield, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.named_results import read_result
from sluicegate.language.resolve import read_query
from sluicegate.language.statements import QueryText
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Grant, Privilege, Role, Stream, StreamRef, Subject, User
from sluicegate.policy.who import read_who
from sluicegate.rewrite.explain import explain
from sluicegate.rewrite.named_results import Results
from sluicegate.rewrite.notices import Decision
from sluicegate.testing.differential import as_bag
from sluicegate.testing.masks import add_masks
from sluicegate.testing.oracle import expected
from sluicegate.testing.oracle_elements import Element
from sluicegate.testing.oracle_policies import PARTITION, SENDER, SP, SP_COUNT, SP_TS
from sluicegate.testing.random_elements import NAME, ROLES, USERS, Mix, random_sequence

MAKERS = ("ann", "cat")
READER = "ben"
FIRST = (
    f"SELECT ts, id, pulse, place FROM {NAME}",
    f"SELECT ts, id, pulse FROM {NAME} WHERE place > 0",
    f"SELECT id, SUM(pulse) AS pulse FROM {NAME} [RANGE 3 SECONDS] GROUP BY id",
    f"SELECT a.id AS id, b.pulse AS pulse FROM {NAME} AS a [RANGE 3 SECONDS] JOIN {NAME} AS b [RANGE 3 SECONDS] ON a.id = b.id",
    f"SELECT ts, id, pulse FROM {NAME} UNION ALL SELECT ts, id, place AS pulse FROM {NAME}",
    "SELECT ts, id, pulse FROM Plain",
    f"SELECT {NAME}.id AS id, Plain.pulse AS pulse FROM {NAME} [RANGE 5 SECONDS] JOIN Plain [RANGE 5 SECONDS] ON {NAME}.id = Plain.id",
)
READINGS = (
    "SELECT id, pulse FROM {0}",
    "SELECT pulse FROM {0} WHERE id > 1",
    "SELECT COUNT(*) AS n FROM {0} [RANGE 5 SECONDS]",
    "SELECT a.id AS x, b.pulse AS y FROM {0} AS a [RANGE 4 SECONDS] JOIN {0} AS b [RANGE 4 SECONDS] ON a.id = b.id",
    "SELECT {0}.pulse AS x, p.place AS y FROM {0} [RANGE 4 SECONDS] JOIN "
    + NAME
    + " AS p [RANGE 4 SECONDS] ON {0}.id = p.id",
)


def write_stated(rng: Random, names: list[str]) -> str:
    """One or two punctuations, mostly positive and often with the grant option."""
    made = []
    for _ in range(rng.randint(1, 2)):
        some = f" AND ATTRIBUTES:{{{', '.join(rng.sample(names, 2))}}}" if rng.random() < 0.3 else ""
        who = rng.choice(["frbac:*", f"frbac:{rng.choice(ROLES)}", f"frbac:{rng.choice(ROLES)}", "user:ben"])
        option = " WITH GRANT OPTION" if rng.random() < 0.7 else ""
        sign = "POSITIVE" if rng.random() < 0.85 else "NEGATIVE"
        made.append(f"INSERT SP INTO STREAM LET DDP = TUPLES:ALL{some}, SRP = {who}{option}, SIGN = {sign}")
    return f" ON RESULT ({', '.join(made)})"


def add_result(catalog: Catalog, name: str, owner: str, query: str, rng: Random, stated: bool) -> Catalog:
    found = read_result(catalog, QueryText(query))
    text = query + (write_stated(rng, [each for each, _ in found.attributes]) if stated else "")
    found = read_result(catalog, QueryText(text), found.event_time, name)
    stream = Stream(
        name,
        found.attributes,
        found.event_time,
        owner=owner,
        governed_by_provider=stated,
        query=text,
        stated=found.stated,
    )
    return replace(catalog, streams={**catalog.streams, name: stream})


def with_options(rng: Random, elements: tuple[Element, ...]) -> list[dict[str, object]]:
    """Rows of the input; most punctuations may be passed on."""
    rows: list[dict[str, object]] = []
    for at, each in enumerate(elements):
        if each.punctuation is not None:
            srp = replace(each.punctuation.srp, grant_option=rng.random() < 0.7)
            rows.append({SP: replace(each.punctuation, srp=srp), PARTITION: each.partition})
        else:
            values = {"ts": each.time, "id": each.key, "pulse": at % 7, "place": at % 3}
            named = {SP_TS: each.ts, SP_COUNT: each.count, SENDER: each.producer, PARTITION: each.partition}
            rows.append(values | named)
    return rows


def make_grant(rng: Random, name: str, stream: Stream, user: str, option: float) -> Grant:
    columns = tuple(Column(stream.name, each, of) for each, of in stream.attributes)
    ref = StreamRef(stream.name, stream.name)
    return Grant(
        name, Subject(user, True), Privilege.READ, (ref,), columns, grant_option=rng.random() < option
    )


def make_world(rng: Random) -> tuple[Catalog, dict[str, list[dict[str, object]]]]:
    """A punctuated stream, a plain one, the results R of ann's and Q of cat's over R, who reads by what roles."""
    found = random_sequence(rng, Mix(policies=3, tuples=6, partitions=1, faults=0.05))
    stream = replace(found.stream, governed_by_provider=rng.random() < 0.6)
    plain = Stream("Plain", (("ts", TIMESTAMP), ("id", INT), ("pulse", INT)), "ts")
    roles = {name: Role(name, ("Doctor",) if name == "Surgeon" else ()) for name in ROLES}
    users = {name: User(name) for name in USERS}
    users |= {name: User(name, tuple(rng.sample(ROLES, rng.randint(1, 3)))) for name in (*MAKERS, READER)}
    grants = {
        grant.name: grant
        for at, user in enumerate((*MAKERS, READER))
        for each in (stream, plain)
        for grant in [make_grant(rng, f"g{at}{each.name}", each, user, 0.8)]
        if rng.random() < 0.9
    }
    catalog = Catalog(streams={NAME: stream, "Plain": plain}, roles=roles, users=users, grants=grants)
    first = rng.choice(FIRST)
    catalog = add_result(catalog, "R", "ann", first, rng, stated=first != FIRST[5] or rng.random() < 0.5)
    if not catalog.streams["R"].stated:
        grant = make_grant(rng, "on R", catalog.streams["R"], "cat", 0.7)
        catalog = replace(catalog, grants={**catalog.grants, grant.name: grant})
    time = catalog.streams["R"].event_time
    catalog = add_result(catalog, "Q", "cat", f"SELECT {time}, id, pulse FROM R", rng, stated=True)
    times = [each.time for each in found.elements if each.time is not None] or [0]
    rows = [{"ts": rng.choice(times), "id": rng.randrange(4), "pulse": rng.randrange(5)} for _ in range(5)]
    return catalog, {NAME: with_options(rng, found.elements), "Plain": rows}


def read_plan(catalog: Catalog, user: str, query: str) -> AuthorizedPlan | None:
    asked = read_query(query, catalog)
    found = explain(catalog, user, asked.root, asked.united, 0, asked.delegating)
    if found.draft.plan is None or found.decision is Decision.DENY:
        return None
    return Results(catalog, delegating=asked.delegating).inline(found.draft.plan)


def interpret(
    catalog: Catalog, user: str, plan: AuthorizedPlan | None, data: object
) -> list[dict[str, Value]]:
    if plan is None:
        return []
    rows = run(plan.root, add_masks(catalog, plan, data), environment(catalog, user))  # type: ignore[arg-type]
    return result_rows(rows, plan.outputs, plan.label)


def test_readers_of_stated_results_get_the_models_rows() -> None:
    ran = with_rows = chained = 0
    for seed in range(600):
        rng = Random(seed)
        catalog, data = make_world(rng)
        name = rng.choice(["R", "Q", "Q"])
        query = rng.choice(READINGS).format(name)
        if rng.random() < 0.2:
            query = rng.choice(READINGS[:3]).format(name) + write_stated(rng, ["a", "b"])
        asked = read_query(query, catalog)
        model = expected(
            catalog, READER, asked.root, asked.outputs, data, asked.united, asked.delegating
        ).rows
        got = interpret(catalog, READER, read_plan(catalog, READER, query), data)
        assert as_bag(got) == as_bag(model), (
            seed,
            query,
            catalog.streams["R"].query,
            catalog.streams["Q"].query,
        )
        ran += 1
        with_rows += bool(model)
        chained += bool(model) and name == "Q"
    record_cases("results that state policies against the model", ran, with_rows)
    assert with_rows > 80
    assert chained > 25


def test_every_shield_below_an_on_result_asks_for_the_grant_option() -> None:
    seen = 0
    for seed in range(200):
        catalog, _ = make_world(Random(seed))
        for name in ("R", "Q"):
            if not catalog.streams[name].stated:
                continue
            plan = read_plan(catalog, READER, f"SELECT id FROM {name}")
            shields = [] if plan is None else [node for node in walk(plan.root) if isinstance(node, Shield)]
            for shield in shields:
                who = read_who(str(getattr(shield.who, "value", "")))
                assert who.option
                assert who.standing.user == "ann"
                seen += 1
    assert seen > 50


def test_without_the_option_nothing_is_passed_on() -> None:
    """Grants and punctuations as before, none with the option: no reader of a stated result gets a row."""
    for seed in range(100):
        catalog, data = make_world(Random(seed))
        grants = {name: replace(each, grant_option=False) for name, each in catalog.grants.items()}
        bare = {
            name: [
                row | {SP: replace(sp, srp=replace(sp.srp, grant_option=False))}
                if (sp := row.get(SP)) is not None
                else row
                for row in rows
            ]
            for name, rows in data.items()
        }
        catalog = replace(catalog, grants=grants)
        plan = read_plan(catalog, READER, "SELECT id, pulse FROM Q")
        assert interpret(catalog, READER, plan, bare) == []

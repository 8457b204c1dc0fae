"""Punctuations on random sequences: Fig. 10 against R13, verdicts against the model, what merging and narrowing keep."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from counters import record_cases
from sluicegate.expr.nodes import Column, Compare, Literal, Op
from sluicegate.expr.types import BIGINT, INT, TIMESTAMP
from sluicegate.graph.interpret import result_rows, run
from sluicegate.graph.operators import AggFunction, Source
from sluicegate.language.punctuation_wire import Arrived, read_punctuation, write_punctuation
from sluicegate.language.resolve import read_query
from sluicegate.policy.analyze import intersect, match, merge_policy, narrow, unite
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.classes import make_class, read_class, write_class
from sluicegate.policy.elements import Punctuation, Reason, matches
from sluicegate.policy.environment import environment
from sluicegate.policy.model import AggRight, Grant, Privilege, Role, Stream, StreamRef, Subject, User
from sluicegate.policy.punctuation import Constant, Nothing, OneOf, Pattern, Range, ServerPunctuation
from sluicegate.policy.verdict import mask_attributes, servers_covering, servers_on, standing_of
from sluicegate.rewrite.explain import explain
from sluicegate.testing.differential import as_bag
from sluicegate.testing.fig10 import OURS, Difference, run_fig10
from sluicegate.testing.masks import add_masks
from sluicegate.testing.oracle import expected
from sluicegate.testing.oracle_elements import Element, govern
from sluicegate.testing.oracle_policies import PARTITION, SENDER, SP, SP_COUNT, SP_TS, Asked, Policies
from sluicegate.testing.random_elements import (
    ATTRIBUTES,
    KEYS,
    NAME,
    OWNER,
    ROLES,
    SENDERS,
    USERS,
    Mix,
    random_sequence,
)

CATALOG_ROLES = {name: Role(name, ("Doctor",) if name == "Surgeon" else ()) for name in ROLES}
NAMES = [name for name, _ in ATTRIBUTES]


def catalog_of(stream: Stream, user: str = "ann", roles: tuple[str, ...] = (), **more: object) -> Catalog:
    users = {name: User(name) for name in (*USERS, *SENDERS)} | {user: User(user, roles)}
    other = replace(stream, name="Other")
    return Catalog(streams={NAME: stream, "Other": other}, roles=CATALOG_ROLES, users=users, **more)  # type: ignore[arg-type]


def rows_of(elements: tuple[Element, ...]) -> list[dict[str, object]]:
    """As the corpus' typed input has them."""
    rows: list[dict[str, object]] = []
    for at, each in enumerate(elements):
        if each.punctuation is not None:
            rows.append({SP: each.punctuation, PARTITION: each.partition})
        else:
            values = {"ts": each.time, "id": each.key, "pulse": at % 7, "place": at % 3}
            named = {SP_TS: each.ts, SP_COUNT: each.count, SENDER: each.producer, PARTITION: each.partition}
            rows.append(values | named)
    return rows


def released(catalog: Catalog, stream: Stream, elements: tuple[Element, ...], user: str) -> list[bool | None]:
    policies = Policies(catalog, user, {NAME: rows_of(elements)})
    source = Source(NAME, NAME, stream.attributes, stream.event_time)
    asked = Asked(frozenset(NAMES), frozenset())
    return [
        None if each.punctuation is not None else policies.judge(source, at, asked) is not None
        for at, each in enumerate(elements)
    ]


def test_only_the_listed_differences_from_figure_10() -> None:
    """With all of them the figure's machine is the model; without any one of them it is not."""
    inherited = {name: frozenset({name, *role.inherits}) for name, role in CATALOG_ROLES.items()}
    told: Counter[Difference | None] = Counter()
    for seed in range(500):
        rng = Random(seed)
        found = random_sequence(rng, Mix(attributes=False))
        roles = tuple(rng.sample(ROLES, rng.randint(1, 2)))
        catalog = catalog_of(found.stream, "eve", roles)
        elements = tuple(each for each in found.elements if _by_role(each))
        model = released(catalog, found.stream, elements, "eve")
        apr = frozenset(roles)
        assert run_fig10(found.stream, elements, apr, inherited, OURS) == model, seed
        for missing in Difference:
            told[missing] += run_fig10(found.stream, elements, apr, inherited, OURS - {missing}) != model
        told[None] += sum(1 for each in model if each)
    assert all(told[each] > 3 for each in Difference), told
    assert told[None] > 300


def _by_role(element: Element) -> bool:
    """The figure knows no other model."""
    return element.punctuation is None or element.punctuation.srp.model == "frbac"


@pytest.mark.parametrize("order_any", [False, True])
def test_every_reason_occurs_and_tuples_are_released(order_any: bool) -> None:
    reasons: Counter[Reason | None] = Counter()
    for seed in range(300):
        found = random_sequence(Random(seed), Mix(order_any=order_any))
        judged = govern(found.stream, found.elements)
        reasons.update(each.reason for each in judged if each is not None)
    never = set() if order_any else {Reason.LATE}
    assert {each for each in Reason if not reasons[each]} == never
    assert reasons[None] > 300


def test_verdicts_are_the_models() -> None:
    """Attribute by attribute, with the server's punctuations, before and after they are put into the class."""
    judged = allowed = 0
    for seed in range(400):
        rng = Random(seed)
        found = random_sequence(rng)
        punctuations = {
            f"s{at}": _server(f"s{at}", each.punctuation)
            for at, each in enumerate(random_sequence(rng).elements[: rng.randint(0, 3)])
            if each.punctuation is not None
        }
        roles = tuple(rng.sample(ROLES, rng.randint(0, 3)))
        catalog = catalog_of(found.stream, "ann", roles, punctuations=punctuations)
        policies = Policies(catalog, "ann", {NAME: rows_of(found.elements)})
        source = Source(NAME, NAME, found.stream.attributes, found.stream.event_time)
        standing = standing_of(catalog, "ann")
        for at, (element, governed) in enumerate(
            zip(found.elements, govern(found.stream, found.elements), strict=True)
        ):
            if governed is None or governed.reason is not None:
                continue
            policy = make_class(governed.covering, immutable=governed.immutable)
            assert read_class(write_class(policy)) == policy
            servers = servers_covering(servers_on(catalog, NAME), element.key)
            masks = mask_attributes(policy, servers, standing, NAMES)
            model = {
                name: policies.judge(source, at, Asked(frozenset({name}), frozenset())) for name in NAMES
            }
            assert {name for name, mask in masks.items() if mask} == {
                name for name, each in model.items() if each
            }
            assert all(
                bin(masks[name]).count("1") == len(each.subjects) for name, each in model.items() if each
            )
            assert mask_attributes(narrow(policy, servers, catalog, NAMES), (), standing, NAMES) == masks
            judged += 1
            allowed += any(masks.values())
    record_cases("verdicts of policies against the model", judged, allowed)
    assert allowed > 200


def _server(name: str, like: Punctuation) -> ServerPunctuation:
    return ServerPunctuation(name, NAME, like.ddp, like.srp, like.positive)


def test_merging_changes_nothing_that_is_said() -> None:
    saved = 0
    for seed in range(300):
        rng = Random(seed)
        found = random_sequence(rng, Mix(policies=3))
        policy = [each.punctuation for each in found.elements if each.punctuation is not None]
        analysis = merge_policy(policy)
        saved += analysis.saved
        assert analysis.before == len(policy)
        assert analysis.immutable == any(each.immutable for each in policy)
        for key, attribute, role in product(range(KEYS), NAMES, ROLES):
            for positive in (True, False):
                before, after = (
                    any(
                        each.positive is positive
                        and match(each, NAME, key, attribute)
                        and each.srp.model == "frbac"
                        and matches(each.srp.subjects, role)
                        for each in rules
                    )
                    for rules in (policy, analysis.rules)
                )
                assert before == after, (seed, key, attribute, role)
    assert saved > 100


PATTERNS: list[Pattern] = [
    Nothing(),
    *(Constant(each) for each in range(3)),
    *(OneOf(each) for each in ((0, 1), (1, 2, 4), (3,))),
    *(
        Range(low, high, closed)
        for low, high in ((0, 2), (1, 4), (3, 4), (2, 2), (3, 1))
        for closed in (True, False)
    ),
    Range(0.5, 2.5, closed=True),
]


@pytest.mark.parametrize("left", PATTERNS, ids=str)
@pytest.mark.parametrize("right", PATTERNS, ids=str)
def test_union_and_intersection_of_patterns(left: Pattern, right: Pattern) -> None:
    values = [each / 4 for each in range(-4, 24)]
    either, both = unite(left, right), intersect(left, right)
    for value in values:
        if either is not None:
            assert matches(either, value) == (matches(left, value) or matches(right, value))
        if both is not None:
            assert matches(both, value) == (matches(left, value) and matches(right, value))


def test_the_wire_form_gives_back_what_was_written() -> None:
    for seed in range(200):
        found = random_sequence(Random(seed))
        catalog = catalog_of(found.stream)
        for each in found.elements:
            sp = each.punctuation
            if sp is not None:
                written = write_punctuation(sp, INT)
                assert read_punctuation(written, Arrived(found.stream, sp.sender), catalog) == sp, written


QUERIES = (
    f"SELECT id, pulse, place FROM {NAME}",
    f"SELECT pulse FROM {NAME} WHERE id > 1",
    f"SELECT id, pulse + 1 AS p, place FROM {NAME} WHERE place = 1",
    f"SELECT COUNT(*) AS n FROM {NAME} [RANGE 5 SECONDS]",
    f"SELECT place, SUM(pulse) AS s, COUNT(*) AS n FROM {NAME} [RANGE 3 SECONDS] GROUP BY place",
    f"SELECT MAX(pulse) AS m FROM {NAME} [ROWS 2]",
    f"SELECT a.pulse, b.place FROM {NAME} AS a [RANGE 3 SECONDS] JOIN {NAME} AS b [RANGE 2 SECONDS] ON a.id = b.id",
    f"SELECT pulse AS v FROM {NAME} UNION ALL SELECT place AS v FROM {NAME} WHERE id = 2",
    f"SELECT n, place FROM (SELECT id, COUNT(pulse) AS n FROM {NAME} [RANGE 3 SECONDS] GROUP BY id) AS c"
    f" [RANGE 9 SECONDS] JOIN {NAME} [RANGE 9 SECONDS] ON c.id = {NAME}.id",
)


def _random_grants(rng: Random) -> dict[str, Grant]:
    column = {name: Column(NAME, name, of) for name, of in ATTRIBUTES}
    grants = {}
    for at in range(rng.randint(1, 3)):
        attributes = tuple(column[name] for name in NAMES if rng.random() < 0.8)
        predicate = Compare(Op.LT, column["pulse"], Literal(rng.choice((3, 9)), BIGINT))
        subject = Subject(rng.choice(ROLES))
        grants[f"g{at}"] = Grant(
            f"g{at}", subject, Privilege.READ, (StreamRef(NAME, NAME),), attributes, predicate=predicate
        )
    if rng.random() < 0.5:
        rights = (AggRight(AggFunction.SUM, column["pulse"]), AggRight(AggFunction.COUNT, None))
        grants["total"] = Grant(
            "total",
            Subject(rng.choice(ROLES)),
            Privilege.AGGREGATE,
            (StreamRef(NAME, NAME),),
            rights=rights,
            by=(column["place"],),
            min_group=rng.choice((0, 2)),
        )
    return grants


def test_plans_with_a_shield_give_the_models_rows() -> None:
    """Rewritten, verified and interpreted, against the tuples governed one by one and the query as asked."""
    ran = with_rows = 0
    for seed in range(500):
        rng = Random(seed)
        found = random_sequence(rng, Mix(policies=4, tuples=5, partitions=1, faults=0.08))
        stream = replace(found.stream, governed_by_provider=rng.random() < 0.5)
        roles = tuple(rng.sample(ROLES, rng.randint(1, 3)))
        catalog = catalog_of(stream, "ann", roles, grants=_random_grants(rng))
        query = read_query(rng.choice(QUERIES), catalog)
        data = {NAME: rows_of(found.elements), "Other": []}
        plan = explain(catalog, "ann", query.root, query.united, limit=0).draft.plan
        model = expected(catalog, "ann", query.root, query.outputs, data, query.united).rows
        got = []
        if plan is not None:
            rows = run(plan.root, add_masks(catalog, plan, data), environment(catalog, "ann"))
            got = result_rows(rows, plan.outputs, plan.label)
        assert as_bag(got) == as_bag(model), (seed, query)
        ran += 1
        with_rows += bool(model)
    record_cases("shielded plans against the model", ran, with_rows)
    assert with_rows > ran / 3


def test_owner_and_times_are_what_sequences_say() -> None:
    found = random_sequence(Random(1))
    assert found.stream.owner == OWNER
    assert dict(found.stream.attributes)["ts"] == TIMESTAMP
    assert random_sequence(Random(1)) == found

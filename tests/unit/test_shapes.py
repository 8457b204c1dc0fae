"""Shapes: which plans have one, what its constants are, and that shape and constants together are the plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from counters import record_cases
from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Call, Expr, In, Like, Literal, Parameter
from sluicegate.expr.nodes import walk as walk_expr
from sluicegate.expr.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP
from sluicegate.graph.operators import Join, Node, Select, sources, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.policy.environment import environment
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.runtime.network.bind_shape import bind_shape, name_outputs
from sluicegate.runtime.network.lift import find_parameters, is_lifted, lift_joins, reads
from sluicegate.runtime.network.shapes import LONGEST_TEXT, Moving, Shaped, find_shape
from sluicegate.targets.base import node_expressions
from sluicegate.testing.case_variants import vary
from sluicegate.testing.cases import Case, describe, random_case
from sluicegate.testing.differential import as_bag, authorize, interpret

CATALOG = read_catalog("""
CREATE STREAM S (ts TIMESTAMP, k INT, n BIGINT, x DOUBLE, g STRING, b BOOLEAN) TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, k INT, g STRING) TIMESTAMP BY ts;
CREATE ROLE reader;
CREATE USER ann ROLES (reader) SET (g = 'a', k = 1);
CREATE USER bob ROLES (reader) SET (g = 'b', k = 2);
CREATE USER cyd ROLES (reader) SET (k = 2);
CREATE USER dan ROLES (reader) SET (k = 1) FOLLOW S (g) ON k WITHIN '10 minutes';
SET FACT since('a') = TIMESTAMP '2026-01-01 00:00:00';
SET FACT team('a') = {1, 2};
CREATE GRANT gs READ (*) ON S WHERE S.g = self.g TO reader;
CREATE STREAM W (ts TIMESTAMP, k INT) TIMESTAMP BY ts;
CREATE GRANT gw AGGREGATE (SUM(k)) ON W DURING [since('a'), NULL] TO reader;
CREATE GRANT gt READ (*) ON T WHERE T.ts >= since('a') AND IS_MEMBER(T.k, team('a')) TO reader;
""")


def shape_of(query: str, user: str = "ann") -> Shaped:
    resolved = read_query(query, CATALOG)
    plan = rewrite(CATALOG, CATALOG.users[user], resolved.root, resolved.united).plan
    assert plan is not None
    return find_shape(plan, environment(CATALOG, user))


def constants(shaped: Shaped) -> list[object]:
    return [each.value for each in shaped.constants if isinstance(each, Literal)]


def expressions(plan: AuthorizedPlan) -> Iterator[Expr]:
    return (part for node in walk(plan.root) for expr in node_expressions(node) for part in walk_expr(expr))


def test_two_users_of_one_query_have_one_shape() -> None:
    ann, bob = (shape_of("SELECT k FROM S WHERE x > 1.5", user) for user in ("ann", "bob"))
    assert ann.shape == bob.shape
    assert hash(ann.shape) == hash(bob.shape)
    assert ann.types == bob.types
    assert set(constants(ann)) == {"a", 1.5}
    assert set(constants(bob)) == {"b", 1.5}


def test_a_grants_name_is_a_constant() -> None:
    """Else a thousand aggregate grants of one form would be a thousand plans."""
    made = read_catalog("""
        CREATE STREAM W (ts TIMESTAMP, k INT) TIMESTAMP BY ts;
        CREATE ROLE one; CREATE ROLE other; CREATE USER ann ROLES (one); CREATE USER bob ROLES (other);
        CREATE GRANT first SUM (k) ON W WHERE k > 1 TO one;
        CREATE GRANT second SUM (k) ON W WHERE k > 2 TO other;
    """)
    resolved = read_query("SELECT SUM(k) AS s FROM W [RANGE 10 SECONDS]", made)
    plans = [rewrite(made, made.users[user], resolved.root).plan for user in ("ann", "bob")]
    ann, bob = (find_shape(plan, environment(made, "ann")) for plan in plans if plan is not None)
    assert ann.key == bob.key
    # whoever has the same key runs the same plan, so that no shorter one will do
    assert len(ann.key) == 64
    assert set(constants(ann)) == {"first", 1}
    assert set(constants(bob)) == {"second", 2}


def test_a_missing_value_is_in_the_shape() -> None:
    """NULL is no constant like another: it grants nothing, whoever shares the shape (R7)."""
    ann, cyd = (shape_of("SELECT k FROM S", user) for user in ("ann", "cyd"))
    assert ann.shape != cyd.shape
    assert constants(cyd) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT k FROM S WHERE n = 1", "SELECT k FROM S WHERE n = 9"),
        ("SELECT p.k FROM S AS p WHERE p.n = 1", "SELECT q.k AS name FROM S AS q WHERE q.n = 2"),
        (
            "SELECT SUM(k) AS s FROM S [RANGE 10 SECONDS] WHERE g IN ('a', 'b')",
            "SELECT SUM(k) AS total FROM S [RANGE 10 SECONDS] WHERE g IN ('c', 'd')",
        ),
        (
            "SELECT a.k FROM S [RANGE 5 SECONDS] AS a JOIN T [RANGE 5 SECONDS] AS b ON a.k = b.k AND a.x > 1.0",
            "SELECT c.k FROM S [RANGE 5 SECONDS] AS c JOIN T [RANGE 5 SECONDS] AS d ON c.k = d.k AND c.x > 2.0",
        ),
    ],
    ids=["literals", "names", "lists", "joins"],
)
def test_names_and_constants_do_not_matter(one: str, other: str) -> None:
    assert shape_of(one).shape == shape_of(other, "bob").shape


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT SUM(k) AS s FROM S [RANGE 10 SECONDS]", "SELECT SUM(k) AS s FROM S [RANGE 20 SECONDS]"),
        (
            "SELECT SUM(k) AS s FROM S [RANGE 10 SECONDS]",
            "SELECT SUM(k) AS s FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS]",
        ),
        ("SELECT SUM(k) AS s FROM S [ROWS 2]", "SELECT SUM(k) AS s FROM S [ROWS 3]"),
        ("SELECT k FROM S WHERE n < 1", "SELECT k FROM S WHERE n <= 1"),
        ("SELECT k FROM S WHERE n = 1", "SELECT k FROM S WHERE k = 1"),
        ("SELECT k FROM S WHERE k IN (1, 2)", "SELECT k FROM S WHERE k IN (1, 2, 3)"),
        ("SELECT k FROM S WHERE g LIKE 'a%'", "SELECT k FROM S WHERE g LIKE 'b%'"),
        ("SELECT k + 1 AS y FROM S", "SELECT k + 2 AS y FROM S"),
        ("SELECT k FROM S", "SELECT k FROM T"),
        ("SELECT k FROM S", "SELECT n FROM S"),
    ],
    ids=["size", "step", "rows", "operator", "column", "length", "like", "output", "stream", "attribute"],
)
def test_what_belongs_to_the_shape(one: str, other: str) -> None:
    assert shape_of(one).shape != shape_of(other).shape


@pytest.mark.parametrize(
    ("test", "of", "value"),
    [
        ("k = 7", INT, 7),
        ("n = 3000000000", BIGINT, 3_000_000_000),
        ("x = 0.5", DOUBLE, 0.5),
        ("g = 'it''s'", STRING, "it's"),
        ("ts > TIMESTAMP '1970-01-01 00:00:01'", TIMESTAMP, 1_000_000),
    ],
    ids=["int", "bigint", "double", "string", "timestamp"],
)
def test_constants_have_the_type_of_their_literal(test: str, of: object, value: object) -> None:
    shaped = shape_of(f"SELECT k FROM S WHERE {test}")
    assert (of, value) in list(zip(shaped.types, constants(shaped), strict=True))
    parameters = {(each.index, each.of) for each in expressions(shaped.shape) if isinstance(each, Parameter)}
    assert parameters == set(enumerate(shaped.types))


def test_a_fact_is_a_constant_and_a_set_stays() -> None:
    shaped = shape_of("SELECT k FROM T")
    assert constants(shaped) == [1_767_225_600_000_000]
    member = next(each for each in expressions(shaped.shape) if isinstance(each, Call))
    assert member.args[1] == Literal(frozenset({1, 2}), member.args[1].type)


def test_patterns_stay() -> None:
    shaped = shape_of("SELECT k FROM S WHERE g LIKE 'a%' AND b = TRUE")
    assert [each.pattern for each in expressions(shaped.shape) if isinstance(each, Like)] == ["a%"]
    assert constants(shaped) == ["a"]


def test_list_members_are_constants() -> None:
    shaped = shape_of("SELECT k FROM S WHERE k IN (1, NULL, 3)")
    listed = next(each for each in expressions(shaped.shape) if isinstance(each, In))
    assert [type(each) for each in listed.items] == [Parameter, Literal, Parameter]


def test_what_follows_a_stream_is_looked_up_in_each_tick() -> None:
    resolved = read_query("SELECT k FROM S", CATALOG)
    plan = rewrite(CATALOG, CATALOG.users["dan"], resolved.root, resolved.united).plan
    assert plan is not None
    shaped = find_shape(plan, environment(CATALOG, "dan"), {"g": STRING})
    assert shaped.constants == (Moving("g"),)
    with pytest.raises(TypeError, match="follows a stream"):
        bind_shape(shaped.shape, shaped.constants)


def test_a_long_text_is_refused() -> None:
    assert (
        len(str(constants(shape_of(f"SELECT k FROM S WHERE g = '{'y' * LONGEST_TEXT}'"))[1])) == LONGEST_TEXT
    )
    with pytest.raises(DiagnosticError) as caught:
        shape_of(f"SELECT k FROM S WHERE g = '{'y' * (LONGEST_TEXT + 1)}'")
    assert [each.code for each in caught.value.diagnostics] == ["constant-too-long"]


JOIN = "SELECT a.x FROM S [RANGE 5 SECONDS] AS a JOIN T [RANGE 9 SECONDS] AS b ON a.k = b.k AND a.x > {}"


def joins(plan: AuthorizedPlan) -> list[Join]:
    return [each for each in walk(plan.root) if isinstance(each, Join)]


def below(node: Node) -> frozenset[int]:
    return frozenset(index for each in walk(node) for index in find_parameters(each))


def test_no_parameter_is_left_in_a_join_predicate() -> None:
    shape = shape_of(JOIN.format("1.0")).shape
    assert [find_parameters(each) for each in joins(shape)] == [frozenset()]
    assert not is_lifted(shape)


def test_a_lifted_join_has_no_parameter_below() -> None:
    shape = shape_of(JOIN.format("1.0")).shape
    lifted = lift_joins(shape)
    assert is_lifted(lifted)
    assert [below(each) for each in joins(lifted)] == [frozenset()]
    assert below(lifted.root) == below(shape.root)
    assert reads(lifted.root) == ("S", "T")
    assert lift_joins(lifted) == lifted


def test_a_join_that_counts_is_not_lifted() -> None:
    """`[ROWS n]` counts what the query may see: selecting later would count more."""
    query = "SELECT a.x FROM S [ROWS 2] AS a JOIN T [RANGE 9 SECONDS] AS b ON a.k = b.k"
    shape = shape_of(query).shape
    assert lift_joins(shape) == shape
    assert any(isinstance(each, Select) and find_parameters(each) for each in walk(joins(shape)[0]))


def test_what_needs_the_bounds_of_a_window_stays_below_the_join() -> None:
    """DURING must hold the whole window (R8), and a pair has no window."""
    nested = "(SELECT SUM(k) AS s FROM W [RANGE 10 SECONDS])"
    query = f"SELECT a.s FROM {nested} [RANGE 5 SECONDS] AS a JOIN T [RANGE 9 SECONDS] AS b ON TRUE"
    shape = shape_of(query).shape
    lifted = lift_joins(shape)
    side, other = joins(lifted)[0].inputs
    assert below(side)
    assert not below(other)
    assert below(joins(shape)[0].right)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))])
def test_shape_and_constants_are_the_plan(part: int) -> None:
    """On the graph interpreter, as made and with joins lifted."""
    ran = with_rows = lifted = 0
    for number in range(part * 500, part * 500 + 500):
        rng = Random(9_000_000 + number)
        case = random_case(rng)
        case = vary(case, rng) if number % 2 else case
        plan = authorize(case)
        if plan is None:
            continue
        wanted = as_bag(interpret(case, plan))
        ran, with_rows = ran + 1, with_rows + bool(wanted)
        bounds = _bound_plans(case, plan)
        lifted += len(bounds) > 1
        for bound in bounds:
            assert as_bag(interpret(case, bound)) == wanted, f"case {number}\n{describe(case)}"
    record_cases("shapes with their constants put back", ran, with_rows)
    assert with_rows > ran / 3
    assert lifted > 25


def _bound_plans(case: Case, plan: AuthorizedPlan) -> list[AuthorizedPlan]:
    shaped = find_shape(plan, environment(case.catalog, case.user))
    bound = [bind_shape(each, shaped.constants) for each in {shaped.shape, lift_joins(shaped.shape)}]
    assert not any(isinstance(each, Parameter) for plan in bound for each in expressions(plan))
    return [name_outputs(each, plan) for each in bound]


def test_a_wrong_constant_is_noticed() -> None:
    """The comparison above can fail."""
    shaped = shape_of("SELECT k FROM S WHERE k = 1")
    at = next(at for at, each in enumerate(shaped.constants) if each == Literal(1, INT))
    wrong = (*shaped.constants[:at], Literal(2, INT), *shaped.constants[at + 1 :])
    right, other = (bind_shape(shaped.shape, each) for each in (shaped.constants, wrong))
    row = {"ts": 0, "k": 1, "n": 0, "x": 0.0, "g": "a", "b": True}
    case = replace(random_case(Random(0)), catalog=CATALOG, user="ann", data={"S": [row]})
    assert interpret(case, right) == [{"o0": 1}]
    assert interpret(case, other) == []


def test_variants_keep_the_graph_and_mostly_the_shape() -> None:
    same = total = 0
    for number in range(40):
        rng = Random(number)
        case = random_case(rng)
        first = _shape(case)
        for _ in range(5):
            other = vary(case, rng)
            assert [each.stream for each in sources(other.root)] == [
                each.stream for each in sources(case.root)
            ]
            assert all(
                column in other.root.types
                for column in ((each.qualifier, each.name) for each in case.outputs)
            )
            total, same = total + 1, same + (_shape(other) == first)
    assert same > total * 0.9


def _shape(case: Case) -> AuthorizedPlan | None:
    plan = authorize(case)
    return None if plan is None else find_shape(plan, environment(case.catalog, case.user)).shape

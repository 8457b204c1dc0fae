"""The authorized graphs of Algorithm 1: counted as a plain enumeration counts them, listed lazily, never in vain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice, product
from random import Random
from time import perf_counter

import pytest

from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.rewrite.blocks import (
    AggLeaf,
    Block,
    JoinTree,
    SourceLeaf,
    Tree,
    UnionLeaf,
    aliases,
    linked_streams,
)
from sluicegate.rewrite.candidates import AggCandidate, Candidates, JoinCandidate, ReadCandidate
from sluicegate.rewrite.explain import explain
from sluicegate.rewrite.graphs import iterate_graphs, list_graphs
from sluicegate.rewrite.notices import Decision
from sluicegate.rewrite.passes.unite import unite
from sluicegate.rewrite.pipeline import Draft, rewrite
from sluicegate.testing.cases import describe, random_case

MOST = 300


@dataclass(frozen=True)
class Pick:
    """One choice of candidates, as an enumeration without any cunning makes it."""

    reads: dict[str, ReadCandidate] = field(default_factory=dict)
    joins: dict[frozenset[str], JoinCandidate] = field(default_factory=dict)
    aggregates: dict[str, AggCandidate] = field(default_factory=dict)
    used: tuple[tuple[str, str], ...] = ()
    """(stream, grant) for every occurrence of a stream."""

    def __add__(self, other: Pick) -> Pick:
        return Pick(
            self.reads | other.reads,
            self.joins | other.joins,
            self.aggregates | other.aggregates,
            self.used + other.used,
        )

    @property
    def candidates(self) -> Candidates:
        return Candidates(
            {key: (each,) for key, each in self.reads.items()},
            {key: (each,) for key, each in self.joins.items()},
            {key: (each,) for key, each in self.aggregates.items()},
        )

    def is_valid(self) -> bool:
        every = (*self.reads.values(), *self.joins.values(), *self.aggregates.values())
        return all(each.refusal is None for each in every)


class Enumeration:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.found = draft.candidates

    def block(self, block: Block) -> list[Pick]:
        linked = linked_streams(block.tree)
        return [pick for pick in self.tree(block.tree) if _agrees(pick, linked)]

    def tree(self, tree: Tree) -> list[Pick]:
        match tree:
            case SourceLeaf(source):
                reads = self.found.reads.get(tree.alias, ())
                return [Pick({tree.alias: each}, used=((source.stream, each.grant.name),)) for each in reads]
            case JoinTree():
                both = [a + b for a, b in product(self.tree(tree.left), self.tree(tree.right))]
                return both + [
                    Pick(
                        joins={aliases(tree): each},
                        used=tuple((name, each.grant.name) for name in each.grant.stream_names),
                    )
                    for each in self.found.joins.get(aliases(tree), ())
                ]
            case AggLeaf():
                granted = self.found.aggregates.get(tree.name, ())
                return self.block(tree.input) + [Pick(aggregates={tree.name: each}) for each in granted]
            case UnionLeaf():
                return self.union([self.block(branch) for branch in tree.branches])

    def union(self, branches: list[list[Pick]]) -> list[Pick]:
        kept = [each for each in branches if any(pick.is_valid() for pick in each)]
        kept = kept or [each for each in branches if each]
        return [sum(picks, Pick()) for picks in product(*kept)] if kept else []

    def count(self) -> tuple[int, int]:
        picks = self.block(self.draft.ready)
        draft = self.draft
        valid = [
            pick
            for pick in picks
            if pick.is_valid()
            and unite(draft.ready, draft.usage, pick.candidates, draft.binder, draft.united) is not None
        ]
        return len(picks), len(valid)


def _agrees(pick: Pick, linked: frozenset[str]) -> bool:
    names: dict[str, set[str]] = {}
    for stream, grant in pick.used:
        names.setdefault(stream, set()).add(grant)
    return all(len(names.get(stream, ())) < 2 for stream in linked)


def test_counts_are_those_of_a_plain_enumeration() -> None:
    seen = invalid = 0
    for seed in range(300):
        case = random_case(Random(seed))
        draft = rewrite(case.catalog, case.catalog.users[case.user], case.root, case.united)
        graphs = list_graphs(draft, 0)
        if graphs.total > MOST:
            continue
        assert (graphs.total, graphs.valid) == Enumeration(draft).count(), describe(case)
        listed = list(iterate_graphs(draft))
        assert len(listed) == graphs.total, describe(case)
        assert sum(each.refusal is None for each in listed) == graphs.valid, describe(case)
        assert all((each.plan is None) == (each.refusal is not None) for each in listed), describe(case)
        seen += graphs.total > 1
        invalid += graphs.valid < graphs.total
    assert seen > 100
    assert invalid > 30


SELF = """
CREATE STREAM S (ts TIMESTAMP, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, k INT, w INT) TIMESTAMP BY ts;
CREATE USER u;
CREATE GRANT s1 READ (k) ON S TO USER u;
CREATE GRANT s2 READ (k, v) ON S WHERE v > 0 TO USER u;
CREATE GRANT t1 READ (k, w) ON T TO USER u;
CREATE GRANT st READ (S.k, v, w) ON S, T WHERE S.k = T.k TO USER u;
CREATE GRANT sum_v SUM (v) ON S BY (k) TO USER u;
"""


@pytest.mark.parametrize(
    ("query", "total", "valid"),
    [
        ("SELECT k FROM S", 2, 2),
        ("SELECT v FROM S", 2, 1),  # under s1 nothing is left
        ("SELECT a.k FROM S AS a [RANGE 1 HOUR] JOIN S AS b [RANGE 1 HOUR] ON a.k = b.k", 2, 2),
        ("SELECT a.v FROM S AS a [RANGE 1 HOUR] JOIN S AS b [RANGE 1 HOUR] ON a.k = b.k", 2, 1),
        ("SELECT v FROM S [RANGE 1 HOUR] JOIN T [RANGE 1 HOUR] ON S.k = T.k", 3, 2),
        (
            "SELECT a.v FROM S AS a [RANGE 1 HOUR] JOIN T [RANGE 1 HOUR] ON a.k = T.k"
            " JOIN S AS b [RANGE 1 HOUR] ON b.k = T.k",
            2,  # `st` serves the inner join, but nothing reads the other S by it
            1,
        ),
        ("SELECT SUM(v) FROM S [RANGE 1 HOUR]", 3, 2),
        ("SELECT SUM(v), COUNT(*) FROM S [RANGE 1 HOUR]", 3, 3),
        ("SELECT v FROM S UNION ALL SELECT w FROM T", 2, 2),
        ("SELECT k FROM S WHERE v > 1 UNION ALL SELECT k FROM T", 2, 1),
    ],
)
def test_counts_by_hand(query: str, total: int, valid: int) -> None:
    catalog = read_catalog(SELF)
    found = explain(catalog, "u", read_query(query, catalog).root)
    assert (found.graphs.total, found.graphs.valid) == (total, valid)
    assert len(found.graphs.graphs) == total


def chained(grants: int, streams: int) -> str:
    """So many streams, each under so many grants."""
    made = ["CREATE USER u;"]
    for number in range(streams):
        made.append(f"CREATE STREAM S{number} (ts TIMESTAMP, k INT, v INT, w INT) TIMESTAMP BY ts;")
        made += [
            f"CREATE GRANT g{number}_{each:02} READ (k, {'vw'[each % 2]}) ON S{number} WHERE v > {each} AND w <> {each} TO USER u;"
            for each in range(grants)
        ]
    return "\n".join(made)


def chained_query(count: int, streams: int) -> str:
    joined = " ".join(
        f"JOIN S{each % streams} AS a{each} [RANGE 1 HOUR] ON a{each - 1}.k = a{each}.k"
        for each in range(1, count)
    )
    shown = ", ".join(f"a{each}.v AS v{each}" for each in range(count))
    return f"SELECT {shown} FROM S0 AS a0 [RANGE 1 HOUR] {joined}"


def draft_of(count: int, grants: int, streams: int) -> Draft:
    catalog = read_catalog(chained(grants, streams))
    return rewrite(catalog, catalog.users["u"], read_query(chained_query(count, streams), catalog).root)


def fastest(run: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = perf_counter()
        run()
        taken.append(perf_counter() - start)
    return min(taken)


def test_sixty_operators_under_sixty_grants_are_counted_and_listed_at_once() -> None:
    draft = draft_of(30, 60, 30)
    graphs = list_graphs(draft)
    assert len(graphs.graphs) == 64
    assert graphs.total == 60**30
    assert graphs.valid == 60**30 - 30**30  # without the graphs in which no source shows its `v`
    assert fastest(lambda: list_graphs(draft)) < 0.15  # 15 ms on an idle machine


def test_listing_never_searches_in_vain() -> None:
    """The last source has no grant that goes with what the first can be read by: there are no graphs, not billions of tries."""
    catalog = read_catalog(
        chained(9, 12) + "CREATE STREAM A (ts TIMESTAMP, k INT) TIMESTAMP BY ts;"
        "CREATE GRANT pair READ (A.k) ON A, S0 WHERE A.k = S0.k TO USER u;"
    )
    query = chained_query(12, 12).replace(
        "S0 AS a0 [RANGE 1 HOUR]", "A AS x [RANGE 1 HOUR] JOIN S0 AS a0 [RANGE 1 HOUR] ON x.k = a0.k", 1
    )
    for text, total in ((query, 9**11), (f"{query} JOIN A AS y [RANGE 1 HOUR] ON y.k = a0.k", 0)):
        draft = rewrite(catalog, catalog.users["u"], read_query(text, catalog).root)
        assert list_graphs(draft).total == total
        assert len(list(islice(iterate_graphs(draft), 64))) == min(total, 64)


@pytest.mark.parametrize("streams", [18, 9, 1])
def test_joins_of_eighteen_do_not_explode(streams: int) -> None:
    """Eighteen sources under three grants each; with fewer streams, occurrences that must agree (R4)."""
    catalog = read_catalog(chained(3, streams))
    root = read_query(chained_query(18, streams), catalog).root
    found = explain(catalog, "u", root)
    assert found.decision is Decision.PARTIAL
    assert found.graphs.total == 3**streams
    assert fastest(lambda: explain(catalog, "u", root), 2) < 2


def test_a_plain_query_is_explained_in_milliseconds() -> None:
    catalog = read_catalog(SELF)
    root = read_query("SELECT k, v FROM S WHERE v > 3", catalog).root
    assert fastest(lambda: explain(catalog, "u", root), 5) < 0.03  # 2 ms on an idle machine
    joined = read_query(
        "SELECT v, w FROM S [RANGE 1 HOUR] JOIN T [RANGE 1 HOUR] ON S.k = T.k WHERE w > 1", catalog
    ).root
    assert fastest(lambda: explain(catalog, "u", joined), 5) < 0.05

"""How long secure rewriting takes: the papers' figures (seed 000 Fig. 8, seed 004 Fig. 13) and ratios to parsing."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from json import dumps
from pathlib import Path
from random import Random
from types import ModuleType

from sluicegate.bench.plot import MISSING, can_draw, draw_figures
from sluicegate.bench.policies import USER, PolicyMaker, make_catalog, make_crowd
from sluicegate.bench.sample import Row, Work, compare, describe, time_in_turns, time_once
from sluicegate.bench.workload import (
    TABLE_4,
    TABLE_III,
    build_query,
    count_operators,
    drop_brackets,
    write_text,
)
from sluicegate.errors import SluicegateError
from sluicegate.graph.operators import Node
from sluicegate.language.queries import parse_query
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Grant
from sluicegate.rewrite.graphs import DEFAULT_LIMIT, list_graphs
from sluicegate.rewrite.pipeline import Draft, rewrite

NAME = "rewrite"
SUMMARY = "secure query rewriting: by operators, by policies, against sqlglot's parser, in a large catalog"

SEEDS = {"fig8a": 81, "fig8b": 82, "fig13a": 131, "fig13b": 132, "ratios": 7, "crowd": 10_000}
NOTES = [
    "sqlglot (pure Python) parses the query's text without our window brackets, which it does not read",
    "rewriting is timed from the resolved graph to the verified plan, all grants united in one plan; what lasts between runs are a catalog's indices (but not for the first rewrite after a change) and answers of z3",
    "Table III has fewer joins than its inputs need: 1, 1 and 3 uncounted unions complete Q3, Q4 and Q5",
]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    figures: int
    sets: int
    ratios: int
    listings: int
    crowd: int


FULL = Size(figures=100, sets=100, ratios=300, listings=20, crowd=10_000)
QUICK = Size(figures=1, sets=1, ratios=1, listings=1, crowd=200)


def run(json: bool, out: Path | None, quick: bool) -> dict[str, object]:
    """Measure; `out` is a folder for the result and its plots. The caller prints, as JSON or not: the result is the same."""
    size = QUICK if quick else FULL
    result: dict[str, object] = {
        "bench": NAME,
        "quick": quick,
        "environment": describe_environment(),
        "seeds": SEEDS,
        "notes": NOTES,
        "fig8a": measure_fig8a(size),
        "fig8b": measure_fig8b(size),
        "fig13a": measure_fig13a(size),
        "fig13b": measure_fig13b(size),
        **measure_ratios(size),
        "graphs": measure_graphs(size),
    }
    if out is not None:
        _keep(result, out)
    return result


def _keep(result: dict[str, object], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{NAME}.json").write_text(dumps(result, indent=2) + "\n", encoding="utf-8")
    result["plots"] = [path.name for path in draw_figures(result, out)] if can_draw() else MISSING


def describe_environment() -> Row:
    libraries = {name: version(name) for name in ("sluicegate", "sqlglot", "z3-solver")}
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **libraries,
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
    }


def _work(catalog: Catalog, root: Node) -> Work:
    return lambda: rewrite(catalog, USER, root)


def measure_fig8a(size: Size) -> list[Row]:
    """Table III's queries, one read grant on all attributes of each input."""
    rows: dict[str, Row] = {}
    works: dict[str, Work] = {}
    for shape in TABLE_III:
        root = build_query(shape)
        grants = PolicyMaker(_seeded("fig8a"), root).sequence(shape.inputs, 0, 0)
        rows[shape.name] = {"query": shape.name, "operators": shape.operators, "inputs": shape.inputs}
        works[shape.name] = _work(make_catalog(grants), root)
    return _described(rows, works, size.figures)


def measure_fig8b(size: Size) -> list[Row]:
    """Q3 under more and more grants, all of which apply."""
    root = build_query(TABLE_III[2])
    grants = PolicyMaker(_seeded("fig8b"), root).applied(50)
    counts = range(10, 51, 10)
    rows: dict[str, Row] = {str(count): {"query": "Q3", "policies": count} for count in counts}
    works = {str(count): _work(make_catalog(grants[:count]), root) for count in counts}
    return _described(rows, works, size.figures)


def measure_fig13a(size: Size) -> list[Row]:
    """Table 4's queries under 45 secure reads, 10 joins, 5 aggregates on the same 18 streams."""
    catalog = make_catalog(_sixty(build_query(TABLE_4[-1]), "fig13a"))
    rows: dict[str, Row] = {}
    works: dict[str, Work] = {}
    for shape in TABLE_4:
        rows[shape.name] = {"query": shape.name, "operators": shape.operators, "inputs": shape.inputs}
        works[shape.name] = _work(catalog, build_query(shape))
    return _described(rows, works, size.figures)


def measure_fig13b(size: Size) -> list[Row]:
    """Q30 under random sets of policies; permitted and refused apart, since a refusal may end early."""
    rng = _seeded("fig13b")
    root = build_query(TABLE_4[2])
    grants = _sixty(root, "fig13b")
    counts = range(10, 61, 10)
    times: dict[tuple[int, str], list[float]] = {}
    for _ in range(size.sets):
        for count in counts:
            catalog = make_catalog(rng.sample(grants, count))
            answer = "refused" if rewrite(catalog, USER, root).plan is None else "permitted"
            times.setdefault((count, answer), []).append(time_once(_work(catalog, root)))
    return [
        {"query": "Q30", "policies": count, "answer": answer, **describe(times[count, answer])}
        for count in counts
        for answer in ("permitted", "refused")
        if (count, answer) in times
    ]


def _yardstick() -> ModuleType:
    """sqlglot, which only this measurement needs."""
    try:
        return import_module("sqlglot")
    except ImportError:
        raise SluicegateError("sqlglot is not installed; say: pip install 'sluicegate[bench]'") from None


def measure_ratios(size: Size) -> dict[str, object]:
    """A 60-operator query under 60 grants against parsing, and under 40 grants in a small and in a large catalog."""
    sqlglot = _yardstick()
    graph = build_query(TABLE_4[-1])
    grants = _sixty(graph, "ratios")
    catalog = make_catalog(grants)
    text = write_text(graph)
    plain = drop_brackets(text)
    root = read_query(text, catalog).root
    applied = make_catalog(PolicyMaker(_seeded("ratios"), graph).applied(60))
    some = _forty(grants)
    crowd = make_crowd(_seeded("crowd"), size.crowd - len(some))
    small, large = make_catalog(some), make_catalog(some, crowd)
    times = time_in_turns(
        {
            "sqlglot": lambda: sqlglot.parse_one(plain, read="spark"),
            "parse_query": lambda: parse_query(text),
            "read_query": lambda: read_query(text, catalog),
            "rewrite, 60 grants": _work(catalog, root),
            "rewrite, 60 grants that all apply": _work(applied, root),
            "rewrite, 40 grants": _work(small, root),
            "rewrite, 40 grants in a large catalog": _work(large, root),
        },
        size.ratios,
    )
    first = {
        "first rewrite, 40 grants": lambda: rewrite(replace(small), USER, root),
        "first rewrite, 40 grants in a large catalog": lambda: rewrite(replace(large), USER, root),
    }
    times |= time_in_turns(first, size.listings)
    parsed = times["sqlglot"]
    return {
        "ratio_query": {
            "operators": TABLE_4[-1].operators,
            "operators_read_from_text": count_operators(root),
            "characters": len(text),
            "characters_for_sqlglot": len(plain),
            "large_catalog": len(large.grants),
        },
        "ratios": [
            compare("rewrite, 60 grants / sqlglot", times["rewrite, 60 grants"], parsed, 10),
            compare(
                "rewrite, 60 grants that all apply / sqlglot",
                times["rewrite, 60 grants that all apply"],
                parsed,
                10,
            ),
            compare("parse_query / sqlglot", times["parse_query"], parsed),
            compare("read_query / sqlglot", times["read_query"], parsed),
            compare(
                "large catalog / 40 grants",
                times["rewrite, 40 grants in a large catalog"],
                times["rewrite, 40 grants"],
                2,
            ),
            compare(
                "large catalog / 40 grants, first rewrite after a change",
                times["first rewrite, 40 grants in a large catalog"],
                times["first rewrite, 40 grants"],
            ),
        ],
        "times": [{"what": name, **describe(each)} for name, each in times.items()],
    }


def measure_graphs(size: Size) -> list[Row]:
    """How many authorized graphs the 60-operator query has, and how long the first take to list."""
    root = build_query(TABLE_4[-1])
    maker = PolicyMaker(_seeded("ratios"), root)
    sets = {"60 grants": _sixty(root, "ratios"), "60 grants that all apply": maker.applied(60)}
    drafts = {name: rewrite(make_catalog(grants), USER, root) for name, grants in sets.items()}
    works = {name: _listing(draft) for name, draft in drafts.items()}
    times = time_in_turns(works, size.listings, warm_up=1)
    return [
        {
            "policies": name,
            "graphs": (found := list_graphs(draft, 0)).total,
            "valid": found.valid,
            "listed": DEFAULT_LIMIT,
            **describe(times[name]),
        }
        for name, draft in drafts.items()
    ]


def _listing(draft: Draft) -> Work:
    return lambda: list_graphs(draft, DEFAULT_LIMIT)


def _seeded(name: str) -> Random:
    return Random(SEEDS[name])  # noqa: S311 — a measurement has to be repeatable


def _sixty(root: Node, seed: str) -> tuple[Grant, ...]:
    return PolicyMaker(_seeded(seed), root).sequence(45, 10, 5)


def _forty(grants: Sequence[Grant]) -> tuple[Grant, ...]:
    """The reads on all attributes, and of the others some of each kind."""
    reads, joins, aggregates = grants[:45], grants[45:55], grants[55:]
    return (*reads[:30], *joins[:7], *aggregates[:3])


def _described(rows: Mapping[str, Row], works: Mapping[str, Work], rounds: int) -> list[Row]:
    times = time_in_turns(works, rounds)
    return [{**row, **describe(times[name])} for name, row in rows.items()]

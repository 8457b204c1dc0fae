"""Random cases whose table has a key, so that rows of it replace each other (D1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from sluicegate.graph.operators import sources
from sluicegate.testing.case_worlds import random_tuples
from sluicegate.testing.cases import Case, random_case

_TABLE = "D"


def random_keyed_cases(first: int) -> Iterator[tuple[int, Case]]:
    """Cases that read the table, with the numbers that they come of, from a number on."""
    number = first
    while True:
        number += 1
        rng = Random(number)  # noqa: S311 — the same number gives the same case
        case = random_case(rng)
        if _TABLE in {each.stream for each in sources(case.root)}:
            yield number, add_key(case, rng)


def add_key(case: Case, rng: Random) -> Case:
    """The case with a key of one or two attributes, and rows that have the same."""
    stream = case.catalog.streams[_TABLE]
    names = [name for name, _ in stream.attributes]
    keyed = replace(stream, key=tuple(rng.sample(names, rng.randint(1, min(2, len(names))))))
    catalog = replace(case.catalog, streams={**case.catalog.streams, _TABLE: keyed})
    rows = [*case.data[_TABLE], *random_tuples(rng, stream), *random_tuples(rng, stream)]
    return replace(case, catalog=catalog, data={**case.data, _TABLE: rows})

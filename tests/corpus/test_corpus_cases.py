"""The corpus, run by the reference model, the graph interpreter and DuckDB: one case, three judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.testing.corpus import Case, load_corpus
from sluicegate.testing.run_case import ENGINES, judge_case

HERE = Path(__file__).parent
FOLDERS = [HERE, *sorted(path for path in (HERE.parent.parent / "examples").iterdir() if path.is_dir())]
CASES = [case for folder in FOLDERS for file in load_corpus(folder) for case in file.cases]


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_case_holds(case: Case, engine: str) -> None:
    assert judge_case(case, engine) == []


def test_the_corpus_is_not_empty() -> None:
    assert len(CASES) > 250
    assert sum(1 for case in CASES if case.rows) > 150

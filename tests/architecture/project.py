"""Read the project as data: its modules, what each imports, the files that are part of it."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
SKIPPED = {
    ".git",
    ".venv",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "static",
}


@dataclass(frozen=True)
class Module:
    """A module of the package; `imports` holds full names, `early` those that importing it runs."""

    name: str
    path: Path
    tree: ast.Module
    imports: frozenset[str]
    early: frozenset[str]

    @property
    def layer(self) -> str:
        """`expr` for `sluicegate.expr.nodes`, `sluicegate` for the root itself."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else parts[0]


def walk_files(*suffixes: str) -> Iterator[Path]:
    """The project's own files, tools' caches left out."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - SKIPPED)
        paths = (Path(folder, name) for name in sorted(names))
        yield from (path for path in paths if not suffixes or path.suffix in suffixes)


@cache
def read_modules() -> dict[str, Module]:
    paths = {_module_name(path): path for path in sorted(SRC.rglob("*.py"))}
    return {name: _read_module(name, path, frozenset(paths)) for name, path in paths.items()}


def ask_modules(ask: Callable[[Module], object]) -> dict[str, object]:
    """What was found in those modules in which anything was."""
    modules = read_modules()
    assert len(modules) > 500
    return {name: found for name, module in modules.items() if (found := ask(module))}


def reached(name: str) -> set[str]:
    """Every module that this one imports, directly or not, with the packages that they are in; the root does not count."""
    modules = read_modules()
    seen: set[str] = set()
    todo = [name]
    while todo:
        for wanted in modules[todo.pop()].imports:
            for found in _with_packages(wanted):
                if found in modules and found not in seen:
                    seen.add(found)
                    todo.append(found)
    return seen


def _with_packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(2, len(parts) + 1)]


def _module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read_module(name: str, path: Path, known: frozenset[str]) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports = _imports(ast.walk(tree), package, known)
    early = _imports(_run_on_import(tree.body), package, known)
    return Module(name, path, tree, imports, early)


def _run_on_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements outside functions and outside `if TYPE_CHECKING`."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from _run_on_import(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from _run_on_import(handler.body)


def _imports(
    nodes: Iterator[ast.AST] | Iterator[ast.stmt], package: str, known: frozenset[str]
) -> frozenset[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names = {f"{base}.{alias.name}" for alias in node.names}
            found.update(names & known or {base})
    return frozenset(found)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])

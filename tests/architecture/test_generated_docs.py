"""Pages made from code are fresh, and every diagnostic code is in a table and on a page."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections import Counter
from functools import cache
from types import ModuleType

from architecture.project import ROOT, Module, read_modules


@cache
def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "scripts" / "generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_fresh() -> None:
    stale = [str(path.relative_to(ROOT)) for path in _generator().find_stale()]
    assert not stale, "run `make docs`"


def _takes_code(function: ast.FunctionDef) -> int | None:
    """Where among its arguments a function takes a parameter `code`, `self` not counted."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    return names.index("code") if "code" in names else None


@cache
def _raisers() -> dict[str, int]:
    """Functions that take a diagnostic's code, by name, with the place of that argument."""
    trees = [module.tree for module in read_modules().values()]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    places = {function.name: _takes_code(function) for function in functions}
    return {"Diagnostic": 0} | {name: place for name, place in places.items() if place is not None}


def _used_codes(module: Module) -> set[str]:
    """Codes that the module gives to one of those, as literals or as constants of its own."""
    named = {
        target.id: node.value
        for node in module.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    given = [
        arg for node in ast.walk(module.tree) if isinstance(node, ast.Call) for arg in _code_argument(node)
    ]
    known = [named.get(arg.id, arg) if isinstance(arg, ast.Name) else arg for arg in given]
    return {arg.value for arg in known if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}


def _code_argument(call: ast.Call) -> list[ast.expr]:
    place = _raisers().get(ast.unparse(call.func).split(".")[-1])
    if place is None:
        return []
    return [*call.args[place : place + 1], *(each.value for each in call.keywords if each.arg == "code")]


def test_every_code_used_has_a_meaning() -> None:
    known = _generator().collect_codes()
    missing = {name: sorted(_used_codes(module) - known) for name, module in read_modules().items()}
    assert {name: codes for name, codes in missing.items() if codes} == {}, "add them to a `*_CODES` table"


def _is_prefix(node: ast.AST) -> bool:
    """`f"unknown-{kind}"`: a code put together from a prefix."""
    first = node.values[0] if isinstance(node, ast.JoinedStr) and len(node.values) == 2 else None
    return (
        isinstance(first, ast.Constant) and re.fullmatch(r"[a-z]+(-[a-z]+)*-", str(first.value)) is not None
    )


def test_every_code_with_a_meaning_is_used() -> None:
    nodes = [node for module in read_modules().values() for node in ast.walk(module.tree)]
    texts = Counter(node.value for node in nodes if isinstance(node, ast.Constant))
    prefixes = tuple(node.values[0].value for node in nodes if _is_prefix(node))
    unused = [
        code for code in _generator().collect_codes() if texts[code] < 2 and not code.startswith(prefixes)
    ]
    assert unused == []

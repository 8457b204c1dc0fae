"""Habits that a reader relies on and a linter does not know."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from architecture.project import ROOT, Module, ask_modules, walk_files

MOST_LINES = 800
TEXT = (".py", ".md", ".toml", ".yaml", ".yml", ".sql", ".case", ".sh", ".json", ".jsonl", "")
HERE = Path(__file__).resolve()

# Places on somebody's machine, marks of unfinished work, banners, and words about the writing instead of the thing.
LEFTOVERS = re.compile(
    r"(?<![\w.])/(?:home|root|Users|work|tmp)/\w"
    r"|\b(?:TODO|FIXME|XXX|HACK)\b"
    r"|^\s*#\s*[-=#*]{4,}"
    r"|\b(?:LLM|language model|chatbot|the brief)\b",
    re.MULTILINE,
)
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def _show(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _is_text(path: Path) -> bool:
    return path != HERE and path.name not in {"uv.lock", "LICENSE"}


def test_no_module_is_too_long() -> None:
    lengths = {_show(path): len(path.read_text(encoding="utf-8").splitlines()) for path in walk_files(".py")}
    assert {path: count for path, count in lengths.items() if count > MOST_LINES} == {}


def test_nothing_was_left_behind() -> None:
    left = {_show(path): _find_leftovers(path) for path in walk_files(*TEXT) if _is_text(path)}
    assert len(left) > 1000
    assert {path: found for path, found in left.items() if found} == {}


def _find_leftovers(path: Path) -> list[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start()) + 1, match.group()) for match in LEFTOVERS.finditer(text)]


def test_modules_say_what_they_are() -> None:
    """A module begins with a docstring."""
    assert ask_modules(lambda each: each.tree.body and not ast.get_docstring(each.tree)) == {}


def test_only_commands_print() -> None:
    assert ask_modules(lambda each: each.layer not in {"cli", "testing"} and _find_prints(each)) == {}


def _find_prints(module: Module) -> list[int]:
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


def test_values_of_the_model_are_frozen() -> None:
    model = {"errors", "source", "expr", "graph", "policy"}
    assert ask_modules(lambda each: each.layer in model and _find_open(each)) == {}


def _find_open(module: Module) -> list[str]:
    classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    changing = [each.name for each in classes if any(map(_is_open_dataclass, each.decorator_list))]
    return [name for name in changing if not name.startswith("_")]


def _is_open_dataclass(decorator: ast.expr) -> bool:
    text = ast.unparse(decorator)
    return text.startswith("dataclass") and "frozen=True" not in text


def _anchor(heading: str) -> str:
    """GitHub's rule: lower case, punctuation dropped, spaces to hyphens."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _anchors(path: Path) -> set[str]:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    return {_anchor(heading) for heading in HEADING.findall(text)}


def test_links_lead_somewhere() -> None:
    dead = {_show(page): _find_dead(page) for page in walk_files(".md")}
    assert len(dead) > 50
    assert {page: found for page, found in dead.items() if found} == {}


def _find_dead(page: Path) -> list[str]:
    dead = []
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _anchors(file)):
            dead.append(target)
    return dead

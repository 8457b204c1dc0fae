"""Write the pages of docs/ that are made from code, or with `--check` say which are stale."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import sluicegate

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTE = "<!-- Made by `make docs`; change the code it is made from instead. -->"


def find_code_tables() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Every module-level table of diagnostic codes, `QUERY_CODES` as `Query`."""
    for info in pkgutil.walk_packages(sluicegate.__path__, "sluicegate."):
        layer, last = info.name.split(".")[1], info.name.rpartition(".")[2]
        # of the service and its client only their tables, which need no library
        served = layer in {"service", "client"} and not last.endswith("codes")
        skipped = layer in {"runtime", "testing"} or served
        if skipped or last == "__main__":
            continue
        module = importlib.import_module(info.name)
        for name, table in sorted(vars(module).items()):
            if name.endswith("_CODES") and isinstance(table, Mapping) and _defined_in(module, name):
                yield name.removesuffix("_CODES").replace("_", " ").capitalize(), table


def _defined_in(module: ModuleType, name: str) -> bool:
    """An imported table belongs to the page of the module that wrote it."""
    source = Path(module.__file__ or "").read_text(encoding="utf-8")
    return any(line.startswith((name + " =", name + ":")) for line in source.splitlines())


def collect_codes() -> set[str]:
    return {code for _, table in find_code_tables() for code in table}


def render_errors() -> str:
    lines = [
        "# Diagnostics",
        "",
        "Every finding has a code that does not change. It is shown as",
        "`file:line:column: error[code]: message`, with the text underlined and, where there is one, a line of help.",
        "A code that is found in several places stands in the section of each.",
    ]
    seen: set[str] = set()
    for title, table in sorted(find_code_tables(), key=lambda entry: entry[0]):
        lines += ["", f"## {title}", "", "| code | meaning |", "|---|---|"]
        for code, meaning in sorted(table.items()):
            anchor = "" if code in seen else f'<a id="{code}"></a>'
            lines.append(f"| {anchor}`{code}` | {_cell(meaning)} |")
            seen.add(code)
    return "\n".join(lines)


def render_functions() -> str | None:
    functions = _attribute("sluicegate.expr.functions", "FUNCTIONS")
    if functions is None:
        return None
    lines = [
        "# Functions",
        "",
        "The functions that expressions may call; any other name is refused. Each is total (I2): what has no value is NULL.",
        "",
        "| function | arguments |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | `{_cell(each.signature)}` |" for name, each in sorted(functions.items())]
    return "\n".join(lines)


def render_cli() -> str | None:
    build = _attribute("sluicegate.cli.main", "build_parser")
    if build is None:
        return None
    parser: argparse.ArgumentParser = build()
    lines = ["# Command line", "", "```", parser.format_help().rstrip(), "```"]
    for name, verb in _find_verbs(parser):
        lines += ["", f"## {name}", "", "```", verb.format_help().rstrip(), "```"]
        for action, own in _find_verbs(verb):
            lines += ["", f"### {name} {action}", "", "```", own.format_help().rstrip(), "```"]
    return "\n".join(lines)


def render_settings() -> str | None:
    describe = _attribute("sluicegate.service.settings", "describe_settings")
    if describe is None:
        return None
    lines = [
        "# Settings of the gateway",
        "",
        "`sluicegate serve` reads a TOML file (`--settings FILE`), then the environment, then its own options; what",
        "comes later counts. A setting that is unknown or not of its type ends it. None of them lets anybody see more.",
        "",
        "| setting | variable | kind | default | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [_settings_row(each) for each in describe()]
    lines += ["", "## The table `oidc`", "", "```toml", "[oidc]", *OIDC_EXAMPLE, "```"]
    lines += ["", "## The tables `sinks`", "", SINKS_TOLD, "", "```toml", *SINKS_EXAMPLE, "```"]
    return "\n".join(lines)


def render_ais() -> str | None:
    kinds = _attribute("sluicegate.language.ais_streams", "KINDS")
    if kinds is None:
        return None
    module = importlib.import_module("sluicegate.language.ais_streams")
    lines = [
        "# Streams of AIS",
        "",
        "What `CREATE STREAM … FROM ais` may have; how it is read is in [AIS](ais.md).",
        "",
    ]
    lines += ["| option | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(told)} |" for name, told in module.OPTIONS.items()]
    lines += ["", "| `messages` | types | tuples are |", "|---|---|---|"]
    for kind in kinds.values():
        types = "1–27" if len(kind.types) == 27 else ", ".join(map(str, kind.types))
        lines.append(f"| `{kind.name}` | {types} | {_cell(kind.meaning)} |")
    for title, attributes in [
        ("All kinds", module.COMMON),
        *((f"`{k.name}`", k.own) for k in kinds.values()),
    ]:
        if attributes:
            lines += ["", f"## {title}", "", "| attribute | type | meaning, unit |", "|---|---|---|"]
            lines += [f"| `{each.name}` | {each.type} | {_cell(each.meaning)} |" for each in attributes]
    return "\n".join(lines)


def _settings_row(each: Any) -> str:
    variable = "" if each.name in ("oidc", "sinks") else f"`{each.variable}`"
    default = f"`{each.default}`" if each.default.strip('"') else ""
    return f"| `{each.name}` | {variable} | {each.kind} | {default} | {_cell(each.told)} |"


OIDC_EXAMPLE = (
    'issuer = "https://id.example.org/realm"',
    'audience = "sluicegate"',
    'roles_claim = "realm_access.roles"   # a path of names; absent: all roles of the user',
    "trust_roles = false                   # true: the issuer's word is enough for roles and users",
    'profile = { Ward = "ward INT" }       # an attribute, its claim and type',
    'scopes = { "sluicegate.read" = ["read"], "sluicegate.push" = ["push:*"] }',
)


SINKS_TOLD = (
    "Where results may be sent, and by whom; nobody who is not named may. How a topic is reached is said as for\n"
    "[streams out of topics](kafka.md), with secrets by their names; what a sink writes is in [sinks](sinks.md)."
)
SINKS_EXAMPLE = (
    "[sinks.ships]",
    'format = "kafka"                      # or "parquet", with a `path`',
    'topic = "ships.seen"',
    'roles = ["PortAuthority"]             # and `users`',
    "[sinks.ships.options]",
    '"kafka.bootstrap.servers" = "kafka-1:9093"',
    '"kafka.security.protocol" = "SASL_SSL"',
    '"kafka.sasl.mechanism" = "SCRAM-SHA-512"',
    'username = "sluicegate"',
    'secret = "ships_writer"               # SLUICEGATE_SECRET_SHIPS_WRITER',
    'truststore = "/etc/sluicegate/ca.pem"',
)


def _find_verbs(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return sorted((name, verb) for action in actions for name, verb in action.choices.items())


def render_targets() -> str | None:
    support_table = _attribute("sluicegate.targets.base", "support_table")
    if support_table is None:
        return None
    intro = (
        "What each target can express. A query that needs more is refused before anything is translated (R7)."
    )
    return "\n".join(["# Targets", "", intro, "", support_table(_find_abilities()).rstrip()])


def _find_abilities() -> list[Any]:
    """The `Abilities` that the modules of `sluicegate.targets` begin with."""
    targets = importlib.import_module("sluicegate.targets")
    kind = importlib.import_module("sluicegate.targets.base").Abilities
    names = [info.name for info in pkgutil.iter_modules(targets.__path__, "sluicegate.targets.")]
    modules = [importlib.import_module(name) for name in names]
    found = {id(each): each for module in modules for each in vars(module).values() if isinstance(each, kind)}
    return list(found.values())


def _attribute(module: str, name: str) -> Any:
    """A part of the package, or None while the package does not have it."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as missing:
        if missing.name and module.startswith(missing.name):
            return None
        raise


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


PAGES = {
    "errors/index.md": render_errors,
    "functions.md": render_functions,
    "cli.md": render_cli,
    "targets.md": render_targets,
    "settings.md": render_settings,
    "ais-streams.md": render_ais,
}


def render_pages() -> dict[Path, str]:
    """The pages by path; one that cannot be made yet is not there."""
    os.environ["COLUMNS"] = "110"  # argparse wraps to the terminal, the page must not depend on it
    made = {DOCS / name: render() for name, render in PAGES.items()}
    return {path: f"{NOTE}\n{text}\n" for path, text in made.items() if text is not None}


def find_stale() -> list[Path]:
    """Pages whose copy in docs/ is not what the code gives."""
    pages = render_pages()
    return [
        path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a page is stale")
    checking = parser.parse_args().check
    stale = find_stale()
    pages = render_pages()
    for path in stale:
        print(f"{'stale' if checking else 'written'}: {path.relative_to(DOCS.parent)}")
        if not checking:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(pages[path], encoding="utf-8")
    return 1 if stale and checking else 0


if __name__ == "__main__":
    sys.exit(main())

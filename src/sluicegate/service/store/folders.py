"""A catalog's folder beside the store: how it differs, and the store written back as one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import InvariantError
from sluicegate.language.lexing import MAX_FILE_SIZE
from sluicegate.language.load import list_catalogs, list_policy_files, load_catalog
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_statements import print_statement
from sluicegate.language.statements import (
    AlterUser,
    CreateGrant,
    CreatePolicy,
    CreateRole,
    CreateSP,
    CreateStream,
    CreateUser,
    SetClock,
    SetFact,
    Statement,
)
from sluicegate.language.xml.write_catalog import print_authorizations
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.gate.files import create_private, publish
from sluicegate.service.store.database import fail
from sluicegate.service.store.difference import find_difference, is_same

if TYPE_CHECKING:
    from sluicegate.service.store.log import Store

Judge = Callable[[Catalog, Catalog], Sequence[str]]
"""Told the catalog as it is and as it would be: what would change for queries that run, in words."""

_FILES: dict[type[Statement], str] = {
    CreateRole: "roles",
    CreateUser: "users",
    AlterUser: "users",
    CreateStream: "streams",
    SetFact: "facts",
    CreateSP: "punctuations",
    CreateGrant: "grants",
    CreatePolicy: "policies",
    SetClock: "policies",
}
_HEAD = "-- Written by `sluicegate export`.\n"


@dataclass(frozen=True, slots=True)
class Plan:
    """What would make the store's catalog that of a folder, and the version that it was found for."""

    version: int
    statements: tuple[Statement, ...]
    effects: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.statements

    @property
    def texts(self) -> list[str]:
        return [print_statement(each) for each in self.statements]


def plan(folder: Path, store: Store, judge: Judge | None = None) -> Plan:
    """How the folder differs from the store; nothing is changed. `judge` says what that would mean for queries."""
    wanted = load_catalog(folder)
    current = store.load()
    statements = tuple(find_difference(current, wanted))
    effects = tuple(judge(current, wanted)) if judge is not None and statements else ()
    return Plan(current.version, statements, effects)


def export_catalog(catalog: Catalog, folder: Path, replace: bool = False, xml: bool = False) -> list[Path]:
    """Files by kind, read back and found equal before the first of them is put into the folder.

    With `replace`, `*.sql` files and policies that were there go: their statements would stand beside the same ones again.
    With `xml`, roles and grants are written as an authorization catalog of ASSIST's.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        present = [each for each in folder.iterdir() if each.name.lower().endswith(".sql")]
        present += [*list_policy_files(folder), *list_catalogs(folder)]
        if present and not replace:
            help_ = "take an empty folder, or say that they are to be replaced (`--replace`)"
            fail("export-folder", f"`{folder}` holds `*.sql` files or policies already", help_)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".export-") as made:
            written = _write_files(catalog, Path(made), xml)
            if not is_same(load_catalog(made), catalog):
                raise InvariantError("the exported catalog does not read back as it is (I6)")
            names = [each.rename(folder / each.name) for each in written]
        for each in present:
            if each not in names:
                each.unlink()
    except OSError as error:
        fail("export-folder", f"`{folder}` cannot be written to: {error.strerror or error}")
    return names


def _write_files(catalog: Catalog, folder: Path, xml: bool) -> list[Path]:
    texts: dict[str, list[str]] = {}
    for statement in catalog_statements(catalog):
        if xml and isinstance(statement, CreateRole | CreateGrant):
            continue
        texts.setdefault(_FILES[type(statement)], []).append(print_statement(statement) + "\n")
    parts = {name: _split(found) for name, found in (texts or {"catalog": []}).items()}
    written = [_write_xml(catalog, folder)] if xml else []
    for name, contents in parts.items():
        for number, content in enumerate(contents, 1):
            path = folder / f"{name}{'' if len(contents) == 1 else f'-{number}'}.sql"
            temporary = path.with_suffix(".part")
            with create_private(temporary) as file:
                file.write((_HEAD + content).encode("utf-8"))
                publish(file, temporary, path)
            written.append(path)
    return written


def _write_xml(catalog: Catalog, folder: Path) -> Path:
    content = print_authorizations(catalog).encode("utf-8")
    if len(content) > MAX_FILE_SIZE:
        fail("export-folder", f"in XML the grants have more than {MAX_FILE_SIZE:,} bytes", "leave --xml out")
    path = folder / "authorizations.xml"
    temporary = path.with_suffix(".part")
    with create_private(temporary) as file:
        file.write(content)
        publish(file, temporary, path)
    return path


def _split(texts: list[str]) -> list[str]:
    """Each part small enough to be read again, and at least one."""
    parts, sizes = [""], [0]
    for text in texts:
        size = len(text.encode("utf-8"))
        if sizes[-1] and sizes[-1] + size > MAX_FILE_SIZE - len(_HEAD):
            parts.append("")
            sizes.append(0)
        parts[-1] += text
        sizes[-1] += size
    return parts

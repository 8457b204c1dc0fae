"""Entries to catalogs: what is stored is printed, read again and found equal first; versions are kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.language.fold import apply
from sluicegate.language.fold_state import fail as fail_at
from sluicegate.language.lexing import MAX_FILE_SIZE
from sluicegate.language.parse_statements import parse_statement, parse_statements
from sluicegate.language.print_statements import print_statement
from sluicegate.language.statements import Begin, Commit, Statement
from sluicegate.policy.catalog import Catalog
from sluicegate.service.store.database import fail
from sluicegate.service.store.records import BEFORE_ALL, Entry
from sluicegate.source import SourceText

KEPT = 16
EVERY = 64


def read_change(text: str, name: str = "<statements>") -> list[Statement]:
    """The statements of one change; BEGIN and COMMIT may stand around them and are left out: a change is one version."""
    found: list[Statement] = []
    begun: Statement | None = None
    for statement in parse_statements(SourceText(name, text)):
        match statement:
            case Begin():
                if begun is not None:
                    fail_at("begin", "BEGIN stands inside BEGIN … COMMIT", statement.span)
                begun = statement
            case Commit():
                if begun is None:
                    fail_at("commit", "COMMIT stands without BEGIN", statement.span)
                begun = None
            case _:
                found.append(statement)
    if begun is not None:
        fail_at("not-committed", "BEGIN has no COMMIT", begun.span, "write COMMIT; at the end")
    return found


def print_change(statements: Sequence[Statement]) -> tuple[str, ...]:
    """The texts to store: each reads back as what it was (I6), or nothing is stored."""
    texts = tuple(map(print_statement, statements))
    for text, statement in zip(texts, statements, strict=True):
        if len(text) > MAX_FILE_SIZE:
            fail("store-too-large", f"a statement of {len(text):,} characters cannot be read again")
        if parse_statement(text) != statement:
            raise InvariantError(f"a statement does not read back as it was printed: {text[:200]}")
    return texts


def apply_change(catalog: Catalog, statements: Iterable[Statement], author: str | None) -> Catalog:
    """One more version."""
    return apply(catalog, [Begin(), *statements, Commit()], author)


def fold_entries(catalog: Catalog, entries: Sequence[Entry]) -> Catalog:
    """The catalog after the entries. Those of one author are folded in one go: each copy of a catalog costs its size."""
    for author, group in groupby(entries, key=lambda entry: entry.author):
        listed = list(group)
        statements = [part for entry in listed for part in _read_entry(entry)]
        try:
            catalog = apply(catalog, statements, author, recorded=True)
        except DiagnosticError as error:
            versions = f"{listed[0].version} to {listed[-1].version}"
            message = f"a change of versions {versions} cannot be made again: {error.diagnostics[0].message}"
            raise DiagnosticError([Diagnostic("store-damaged", message), *error.diagnostics]) from None
        if catalog.version != listed[-1].version:
            message = f"version {listed[-1].version} of the store gives version {catalog.version}"
            raise DiagnosticError([Diagnostic("store-damaged", message)])
    return catalog


def _read_entry(entry: Entry) -> list[Statement]:
    name = f"<version {entry.version}>"
    try:
        return [Begin(), *(parse_statement(text, name) for text in entry.statements), Commit()]
    except DiagnosticError as error:
        message = f"version {entry.version} of the store cannot be read: {error.diagnostics[0].message}"
        raise DiagnosticError([Diagnostic("store-damaged", message), *error.diagnostics]) from None


class Snapshots:
    """Catalogs by version, with the hash that each follows from: the latest few and every so many."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[str, Catalog]] = {0: (BEFORE_ALL, Catalog())}

    def put(self, hash_: str, catalog: Catalog) -> None:
        self._kept[catalog.version] = (hash_, catalog)
        recent = sorted(version for version in self._kept if version % EVERY)
        for version in recent[:-KEPT]:
            del self._kept[version]

    def nearest(self, version: int) -> tuple[str, Catalog]:
        """The newest that is not after the version."""
        return self._kept[max(each for each in self._kept if each <= version)]

    def forget_after(self, version: int) -> None:
        """The store is not the one it was (a restored one): what was folded from it is not its state."""
        self._kept = {each: kept for each, kept in self._kept.items() if each <= version}

"""A catalog from its texts, all or nothing: if anything in any file is wrong there is no catalog (bypass 14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.files import explain_missing, read_bounded, read_bytes, read_fact_file
from sluicegate.language.fold import find_warnings, fold_together
from sluicegate.language.lexing import MAX_FILE_SIZE
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.statements import CreatePolicy, FromFile, Name, PolicyText, SetFact, Statement
from sluicegate.language.xacml.stored import MAX_POLICY, read_stored
from sluicegate.language.xacml.xml import decode_xml
from sluicegate.language.xml.read_catalog import holds_query, read_authorizations
from sluicegate.language.xml.reader import GRAPH, find_root
from sluicegate.policy.catalog import Catalog
from sluicegate.source import SourceText, Span

MAX_FILES = 10_000
MAX_POLICY_FILES = 100_000
POLICIES = "policies"
MAX_TOTAL = 16 * MAX_FILE_SIZE
MAX_FINDINGS = 100


@dataclass(frozen=True)
class CatalogSources:
    """The texts of a catalog, sorted by file name; the findings' spans point into them."""

    folder: Path | None
    texts: tuple[SourceText, ...]
    policies: tuple[SourceText, ...] = ()
    """XACML policies, one in each."""
    documents: tuple[SourceText, ...] = ()
    """Authorization catalogs in ASSIST's XML, and query graphs, which are passed over."""

    def parse(self) -> list[Statement]:
        """Statements of all texts, in order, files of facts read; raises the findings of all texts together."""
        statements: list[Statement] = []
        findings: list[Diagnostic] = []
        for text in self.texts:
            try:
                statements.extend(parse_statements(text))
            except DiagnosticError as error:
                findings.extend(error.diagnostics)
        for policy in self.policies:
            try:
                statements.append(make_policy_statement(policy))
            except DiagnosticError as error:
                findings.extend(error.diagnostics)
        for document in self.documents:
            try:
                statements.extend(read_authorizations(document, statements))
            except DiagnosticError as error:
                findings.extend(error.diagnostics)
        if findings:
            raise DiagnosticError(findings[:MAX_FINDINGS])
        return [_read_files(each, self.folder) for each in statements]

    def load(self) -> Catalog:
        return fold_together(self.parse())

    def warnings(self) -> list[Diagnostic]:
        """What is accepted but its writer should know; of texts that load."""
        return find_warnings(self.parse())


def load_catalog(path: str | Path) -> Catalog:
    """The catalog of a folder: all its `*.sql` files, read together."""
    return read_sources(path).load()


def read_catalog(text: str, name: str = "<catalog>", folder: Path | None = None) -> Catalog:
    """The catalog of one text; `folder` is where FROM FILE may read."""
    return CatalogSources(folder, (SourceText(name, text),)).load()


def read_sources(path: str | Path) -> CatalogSources:
    """The texts of a folder's `*.sql` files, of its policies and of ASSIST's catalogs; other folders inside it are not looked into."""
    folder = Path(path)
    if not folder.is_dir():
        raise explain_missing(folder)
    files = sorted(_list_files(folder, ".sql"))
    if not files:
        message = f"the catalog `{folder}` has no `*.sql` files"
        raise DiagnosticError(
            [Diagnostic("empty-catalog", message, help="an empty catalog allows nothing; write one")]
        )
    texts: list[SourceText] = []
    findings: list[Diagnostic] = []
    total = 0
    for file in files:
        try:
            text = read_bounded(file, None, MAX_FILE_SIZE)
        except DiagnosticError as error:
            findings.extend(error.diagnostics)
            continue
        total += len(text)
        texts.append(SourceText(str(folder / file.name), text))
        if total > MAX_TOTAL:
            message = f"the catalog has more than {MAX_TOTAL:,} characters"
            raise DiagnosticError([Diagnostic("file-too-large", message)])
    documents = tuple(_read_documents(folder, findings))
    total += sum(len(each.text) for each in documents)
    policies = tuple(_read_policies(folder, total, findings))
    if findings:
        raise DiagnosticError(findings[:MAX_FINDINGS])
    return CatalogSources(folder, tuple(texts), policies, documents)


def read_together(paths: Iterable[Path]) -> list[Statement]:
    """The statements of several folders and files, which make one catalog; documents in XML are read last."""
    statements: list[Statement] = []
    findings: list[Diagnostic] = []
    documents: list[SourceText] = []
    for path in paths:
        try:
            found = read_sources(path) if path.is_dir() else _read_alone(path)
            documents += found.documents
            statements += replace(found, documents=()).parse()
        except DiagnosticError as error:
            findings += error.diagnostics
    for document in documents:
        try:
            statements += read_authorizations(document, statements)
        except DiagnosticError as error:
            findings += error.diagnostics
    if findings:
        raise DiagnosticError(findings[:MAX_FINDINGS])
    return statements


def _read_alone(file: Path) -> CatalogSources:
    text = SourceText(str(file), read_bounded(file, None, MAX_FILE_SIZE))
    if file.suffix.lower() == ".xml":
        return CatalogSources(file.parent, (), (), (text,))
    return CatalogSources(file.parent, (text,))


def list_policy_files(folder: Path) -> list[Path]:
    """The XACML policies of a catalog's folder: `*.xacml.xml` in it, and `*.xml` in its `policies`."""
    try:
        own = [each for each in folder.iterdir() if each.name.lower().endswith(".xacml.xml")]
        inner = folder / POLICIES
        own += (
            [each for each in inner.iterdir() if each.name.lower().endswith(".xml")] if inner.is_dir() else []
        )
    except OSError as error:
        message = f"the catalog `{folder}` cannot be read: {error.strerror or 'no access'}"
        raise DiagnosticError([Diagnostic("file-unreadable", message)]) from None
    if len(own) > MAX_POLICY_FILES:
        message = f"the catalog has more than {MAX_POLICY_FILES:,} policies"
        raise DiagnosticError([Diagnostic("file-too-large", message)])
    return sorted(own)


def _read_policies(folder: Path, total: int, findings: list[Diagnostic]) -> Iterator[SourceText]:
    for file in list_policy_files(folder):
        name = str(folder / file.relative_to(folder))
        try:
            text = decode_xml(read_bytes(file, None, 2 * MAX_POLICY), name)
        except DiagnosticError as error:
            findings.extend(error.diagnostics)
            continue
        total += len(text)
        if total > MAX_TOTAL:
            message = f"the catalog has more than {MAX_TOTAL:,} characters"
            raise DiagnosticError([Diagnostic("file-too-large", message)])
        yield SourceText(name, text)


def list_documents(folder: Path) -> list[Path]:
    """The `*.xml` files of a catalog's folder that are no XACML policies."""
    return sorted(
        each for each in _list_files(folder, ".xml") if not each.name.lower().endswith(".xacml.xml")
    )


def list_catalogs(folder: Path) -> list[Path]:
    """Those of the documents that hold roles and policies, or that may: a query graph does not count."""
    return [folder / Path(text.name).name for text in _read_documents(folder, []) if not holds_query(text)]


def _read_documents(folder: Path, findings: list[Diagnostic]) -> Iterator[SourceText]:
    """Those with ASSIST's root, or whose root cannot be told: other XML that lies there is not ours to read."""
    for file in list_documents(folder):
        try:
            text = SourceText(str(folder / file.name), read_bounded(file, None, MAX_FILE_SIZE))
        except DiagnosticError as error:
            findings.extend(error.diagnostics)
            continue
        # behind a document type could be roles, so that it is read, and refused at its place (bypass 14)
        if find_root(text) in (GRAPH, ""):
            yield text


def _list_files(folder: Path, ending: str) -> Iterator[Path]:
    """Every such file of the folder; one that is not a plain file is found unreadable later, not passed over."""
    try:
        entries = [entry for entry in folder.iterdir() if entry.name.lower().endswith(ending)]
    except OSError as error:
        message = f"the catalog `{folder}` cannot be read: {error.strerror or 'no access'}"
        raise DiagnosticError([Diagnostic("file-unreadable", message)]) from None
    if len(entries) > MAX_FILES:
        raise DiagnosticError(
            [Diagnostic("file-too-large", f"the catalog has more than {MAX_FILES:,} files")]
        )
    yield from entries


def make_policy_statement(source: SourceText) -> CreatePolicy:
    """CREATE POLICY of an XML document, under its own id; raises what is wrong with it, at its place."""
    stored = read_stored(source)
    text = PolicyText(source.text, source, stored)
    return CreatePolicy(Name(stored.policy_id), text, span=Span(source, 0, 1))


def _read_files(statement: Statement, folder: Path | None) -> Statement:
    if folder is None or not isinstance(statement, SetFact) or not isinstance(statement.value, FromFile):
        return statement
    return replace(statement, value=read_fact_file(folder, statement.value))

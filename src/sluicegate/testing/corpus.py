"""Corpus files: a catalog, an input and cases (user, query, rows or error out), run by every engine and by `sluicegate test`.

Expected rows are written as `run --json` prints them: ISO times, `null`, an attribute that is withheld left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from sluicegate.expr.nodes import Literal, Value
from sluicegate.expr.types import BOOLEAN, INT, INTEGER, STRING, Kind, Type
from sluicegate.language.fold import apply
from sluicegate.language.load import load_catalog, make_policy_statement, read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.statements import Begin, Commit
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.rewrite.manner import USUAL, Manner, Merge, OnPartial
from sluicegate.runtime.network.seats import Seat, seat_catalog
from sluicegate.source import SourceText
from sluicegate.testing.corpus_compare import compare_rows, parse_time
from sluicegate.testing.corpus_elements import (
    CARRIED,
    CorpusError,
    read_carried,
    read_corpus_punctuation,
)
from sluicegate.testing.oracle_policies import SP
from sluicegate.testing.stream_policies import write_stream_policy

__all__ = ["Case", "CorpusError", "CorpusFile", "ExpectedError", "compare_rows", "load_corpus"]

RawRow: TypeAlias = Mapping[str, object]
Rows: TypeAlias = tuple[dict[str, Any], ...]

DECISIONS = frozenset({"permit", "partial", "empty", "deny"})
_FILE_KEYS = frozenset({"name", "cites", "catalog", "catalog_file", "policies", "input", "cases"})
_EXPECTATIONS = {
    "rows",
    "error",
    "at",
    "decision",
    "grants",
    "notices",
    "graphs",
    "valid_graphs",
    "witness_attributes",
    "refused",
}
_CASE_KEYS = frozenset(
    {"name", "user", "roles", "profile", "query", "also", "policies", "input", "merge", "on_partial"}
    | _EXPECTATIONS
)


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """The code of a diagnostic and, if given, the text that it underlines."""

    code: str
    at: str | None = None


def add_policies(catalog: Catalog, texts: Iterable[str]) -> Catalog:
    made = [make_policy_statement(SourceText("<policies>", each)) for each in texts]
    return apply(catalog, [Begin(), *made, Commit()]) if made else catalog


@dataclass(frozen=True, slots=True)
class CatalogSource:
    """A text, or where it is empty the folder of `*.sql` files; FROM FILE reads beside either."""

    folder: Path
    text: str = ""
    policies: tuple[str, ...] = ()
    """XACML policies besides, as XML."""

    def load(self) -> Catalog:
        found = read_catalog(self.text, folder=self.folder) if self.text else load_catalog(self.folder)
        return add_policies(found, self.policies)


@dataclass(frozen=True, slots=True)
class Case:
    """One question and what is known of its answer; what a case does not state is None and is not checked."""

    file: Path
    name: str
    user: str
    query: str
    catalog_source: CatalogSource
    also: str
    input: Mapping[str, tuple[RawRow, ...]]
    rows: tuple[RawRow, ...] | None = None
    error: ExpectedError | None = None
    decision: str | None = None
    grants: frozenset[str] | None = None
    notices: frozenset[str] = frozenset()
    graphs: int | None = None
    valid_graphs: int | None = None
    witness_attributes: frozenset[str] | None = None
    refused: tuple[str, ...] | None = None
    """The codes of punctuations of the input that are refused, stream by stream, in order."""
    manner: Manner = USUAL
    """`merge` and `on_partial`, where the case says something of them."""
    policies: tuple[str, ...] = ()
    """XACML policies of its own."""
    roles: frozenset[str] | None = None
    """Those that the user's session has activated; None for all that it holds."""
    profile: tuple[tuple[str, Literal | None], ...] = ()
    """Attributes that the user's sign-in decides."""

    @property
    def label(self) -> str:
        return f"{self.file.name}: {self.name}"

    def load_catalog(self) -> Catalog:
        """The catalog with the case's own statements (`also`) folded into it after all others."""
        base = add_policies(self.catalog_source.load(), self.policies)
        return apply(base, parse_statements(SourceText("<also>", self.also))) if self.also else base

    def seat(self, catalog: Catalog) -> Catalog:
        """The catalog with the user in its session."""
        return seat_catalog(catalog, Seat(self.user, self.roles, self.profile))

    def typed_input(self, catalog: Catalog) -> dict[str, Rows]:
        """The input as values of the streams' types, streams without input included; an attribute not given is NULL.

        Of a punctuated stream also its punctuations, without those that are refused, and what its tuples name.
        """
        return {name: rows for name, (rows, _) in self._read_input(catalog).items()}

    def refused_input(self, catalog: Catalog) -> tuple[str, ...]:
        """The codes of the punctuations that are refused."""
        return tuple(code for _, codes in self._read_input(catalog).values() for code in codes)

    def _read_input(self, catalog: Catalog) -> dict[str, tuple[Rows, tuple[str, ...]]]:
        unknown = sorted(set(self.input) - set(catalog.streams))
        if unknown:
            raise CorpusError(f"{self.file}: input: the catalog has no stream `{unknown[0]}`")
        return {
            name: self._read_stream(catalog, stream, self.input.get(name, ()))
            for name, stream in catalog.streams.items()
        }

    def _read_stream(
        self, catalog: Catalog, stream: Stream, given: tuple[RawRow, ...]
    ) -> tuple[Rows, tuple[str, ...]]:
        rows: list[dict[str, Any]] = []
        refused: list[str] = []
        for at, row in enumerate(given):
            place = f"{self.file}: input.{stream.name}[{at}]"
            if stream.punctuated_by is not None and SP in row:
                found = read_corpus_punctuation(row, stream, catalog, place)
                if isinstance(found, str):
                    refused.append(found)
                else:
                    rows.append(found)
                continue
            rows.append(self._typed_row(stream, row, place))
        return tuple(rows), tuple(refused)

    def _typed_row(self, stream: Stream, row: RawRow, place: str) -> dict[str, Any]:
        carried = CARRIED if stream.punctuated_by is not None else frozenset[str]()
        unknown = sorted(set(row) - {name for name, _ in stream.attributes} - carried)
        if unknown:
            raise CorpusError(f"{place}: the stream has no attribute `{unknown[0]}`")
        made: dict[str, Any] = {
            name: _convert(row.get(name), of, f"{place}.{name}") for name, of in stream.attributes
        }
        return made | (read_carried(row, place) if carried else {})


@dataclass(frozen=True, slots=True)
class CorpusFile:
    path: Path
    name: str
    cites: str
    cases: tuple[Case, ...]


# libyaml's where there is one: it reads ten times as fast
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_corpus(path: Path) -> list[CorpusFile]:
    """The file, or every corpus file of the folder: `*.test.yaml` beside a catalog, `*.yaml` elsewhere."""
    if path.is_file():
        return [_load_file(path)]
    files = sorted(path.glob("*.test.yaml")) or sorted(path.glob("*.yaml"))
    return [_load_file(file) for file in files]


def _load_file(path: Path) -> CorpusFile:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 — safe, both of them
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CorpusError(f"{path}: cannot be read: {error}") from error
    reader = _Reader(path, "", content)
    reader.check_keys(_FILE_KEYS)
    source = _read_source(reader)
    shared = reader.input()
    cases = tuple(_read_case(each, source, shared) for each in reader.parts("cases"))
    _check_distinct(path, cases)
    return CorpusFile(path, reader.text("name"), reader.text("cites", ""), cases)


def _read_source(reader: _Reader) -> CatalogSource:
    if ("catalog" in reader.content) == ("catalog_file" in reader.content):
        raise reader.error("catalog", "give either `catalog` or `catalog_file`")
    policies = reader.policies()
    if "catalog" in reader.content:
        return CatalogSource(reader.path.parent, reader.text("catalog"), policies)
    folder = (reader.path.parent / reader.text("catalog_file")).resolve()
    if not folder.is_dir():
        raise reader.error("catalog_file", f"`{folder}` is not a folder")
    return CatalogSource(folder, policies=policies)


def _read_case(reader: _Reader, source: CatalogSource, shared: Mapping[str, tuple[RawRow, ...]]) -> Case:
    reader.check_keys(_CASE_KEYS)
    decision = reader.text("decision", "") or None
    if decision is not None and decision not in DECISIONS:
        raise reader.error("decision", f"must be one of {', '.join(sorted(DECISIONS))}")
    if "at" in reader.content and "error" not in reader.content:
        raise reader.error("at", "goes with `error`")
    error = (
        ExpectedError(reader.text("error"), reader.text("at", "") or None)
        if "error" in reader.content
        else None
    )
    return Case(
        file=reader.path,
        name=reader.text("name"),
        user=reader.text("user", ""),
        query=reader.text("query", ""),
        catalog_source=source,
        also=reader.text("also", ""),
        input={**shared, **reader.input()},
        rows=reader.rows("rows") if "rows" in reader.content else None,
        error=error,
        decision=decision,
        grants=reader.names("grants"),
        notices=reader.names("notices") or frozenset(),
        graphs=reader.count("graphs"),
        valid_graphs=reader.count("valid_graphs"),
        witness_attributes=reader.names("witness_attributes"),
        refused=reader.texts("refused"),
        manner=_read_manner(reader),
        policies=reader.policies(),
        roles=reader.names("roles"),
        profile=reader.profile(),
    )


def _read_manner(reader: _Reader) -> Manner:
    try:
        return Manner(Merge(reader.text("merge", "widen")), OnPartial(reader.text("on_partial", "give")))
    except ValueError:
        raise reader.error("merge", "is `widen` or `paper`, and on_partial `give` or `refuse`") from None


def _check_distinct(path: Path, cases: tuple[Case, ...]) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise CorpusError(f"{path}: cases: two are named `{case.name}`")
        seen.add(case.name)


class _Reader:
    """A mapping of the file with the way to it, for errors."""

    def __init__(self, path: Path, place: str, content: object) -> None:
        self.path = path
        self.place = place
        if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
            raise CorpusError(
                f"{path}: {place.rstrip('.') or 'the file'}: must be a mapping with texts as keys"
            )
        self.content: dict[str, object] = content

    def error(self, key: str, message: str) -> CorpusError:
        return CorpusError(f"{self.path}: {self.place}{key}: {message}")

    def check_keys(self, known: frozenset[str]) -> None:
        for key in self.content:
            if key not in known:
                raise self.error(key, f"unknown key; known are {', '.join(sorted(known))}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.content.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, "must be a text" if key in self.content else "is missing")
        return value

    def count(self, key: str) -> int | None:
        value = self.content.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.error(key, "must be a count")
        return value

    def names(self, key: str) -> frozenset[str] | None:
        if key not in self.content:
            return None
        found = [name for name in self._list(key) if isinstance(name, str)]
        if len(found) != len(self._list(key)):
            raise self.error(key, "must be a list of names")
        return frozenset(found)

    def profile(self) -> tuple[tuple[str, Literal | None], ...]:
        """Texts, whole numbers and truth values; null for an attribute that the sign-in leaves without one."""
        found = _Reader(self.path, f"{self.place}profile.", self.content.get("profile", {}))
        return tuple((name, found._literal(name)) for name in found.content)

    def _literal(self, key: str) -> Literal | None:
        match self.content[key]:
            case None:
                return None
            case bool(value):
                return Literal(value, BOOLEAN)
            case int(value):
                return Literal(value, INT)
            case str(value):
                return Literal(value, STRING)
            case _:
                raise self.error(key, "must be a text, a whole number, true, false or null")

    def texts(self, key: str) -> tuple[str, ...] | None:
        """In order, repetitions too."""
        if self.names(key) is None:
            return None
        return tuple(str(each) for each in self._list(key))

    def parts(self, key: str) -> list[_Reader]:
        return [
            _Reader(self.path, f"{self.place}{key}[{at}].", each) for at, each in enumerate(self._list(key))
        ]

    def policies(self) -> tuple[str, ...]:
        """XML, or what `write_stream_policy` makes XML of."""
        if "policies" not in self.content:
            return ()
        try:
            return tuple(
                each if isinstance(each, str) else write_stream_policy(_Reader(self.path, "", each).content)
                for each in self._list("policies")
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self.error("policies", str(error)) from error

    def rows(self, key: str) -> tuple[RawRow, ...]:
        return tuple(part.content for part in self.parts(key))

    def input(self) -> dict[str, tuple[RawRow, ...]]:
        if "input" not in self.content:
            return {}
        inner = _Reader(self.path, f"{self.place}input.", self.content["input"])
        return {stream: inner.rows_or_file(stream) for stream in inner.content}

    def rows_or_file(self, key: str) -> tuple[RawRow, ...]:
        """Rows, or the name of a `.jsonl` file beside this one."""
        if not isinstance(self.content[key], str):
            return self.rows(key)
        try:
            lines = (self.path.parent / self.text(key)).read_text(encoding="utf-8").splitlines()
            found = [json.loads(line) for line in lines if line.strip()]
        except (OSError, ValueError) as error:
            raise self.error(key, f"cannot be read: {error}") from error
        return _Reader(self.path, self.place, {key: found}).rows(key)

    def _list(self, key: str) -> list[object]:
        value = self.content.get(key)
        if not isinstance(value, list):
            raise self.error(key, "must be a list" if key in self.content else "is missing")
        return value


def _convert(value: object, of: Type, place: str) -> Value:
    """A YAML value as a value of the type; numbers are not read from texts, nor texts from numbers."""
    if value is None:
        return None
    if of.kind is Kind.BOOLEAN and isinstance(value, bool):
        return value
    if of in INTEGER and isinstance(value, int) and not isinstance(value, bool):
        return value
    if of.kind is Kind.DOUBLE and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if of.kind is Kind.STRING and isinstance(value, str):
        return value
    if of.kind is Kind.TIMESTAMP:
        time = parse_time(value)
        if time is not None:
            return time
    raise CorpusError(f"{place}: `{value}` is not a {of}")

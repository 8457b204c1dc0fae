"""The corpus loader: what it reads, how it complains, how rows are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.testing.corpus import CorpusError, compare_rows, load_corpus
from sluicegate.testing.run_case import judge_case

ROOT = Path(__file__).parents[2]

SMALL = """
name: small
catalog: |
  CREATE STREAM S (ts TIMESTAMP, id STRING, v INT, w DOUBLE, ok BOOLEAN) TIMESTAMP BY ts;
input:
  S: [{ts: "2026-01-01T00:00:00", id: a, v: 1, w: 2, ok: true}]
cases:
- name: first
  user: u
  query: SELECT id FROM S
  rows: []
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "case.yaml"
    path.write_text(text)
    return path


def test_input_has_the_types_of_the_schema(tmp_path: Path) -> None:
    (case,) = load_corpus(write(tmp_path, SMALL))[0].cases
    rows = case.typed_input(case.load_catalog())["S"]
    assert rows == ({"ts": 1_767_225_600_000_000, "id": "a", "v": 1, "w": 2.0, "ok": True},)
    assert isinstance(rows[0]["w"], float)


def test_an_attribute_not_given_is_null(tmp_path: Path) -> None:
    (case,) = load_corpus(write(tmp_path, SMALL.replace("w: 2, ", "")))[0].cases
    assert case.typed_input(case.load_catalog())["S"][0]["w"] is None


def test_also_comes_after_the_catalog(tmp_path: Path) -> None:
    text = SMALL.replace("  user: u", "  user: u\n  also: CREATE USER u;")
    (case,) = load_corpus(write(tmp_path, text))[0].cases
    assert set(case.load_catalog().users) == {"u"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  rows: []", "  rows: {}", "cases[0].rows: must be a list"),
        ("  rows: []", "  rosw: []", "cases[0].rosw: unknown key"),
        ("- name: first", "- user: v", "cases[0].name: is missing"),
        ("  rows: []", "  decision: maybe", "cases[0].decision: must be one of"),
        ("  rows: []", "  at: S", "cases[0].at: goes with `error`"),
        ("name: small", "name: small\ncatalog_file: .", "catalog: give either"),
        ("  S: [", "  S: [3, ", "input.S[0]: must be a mapping"),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = write(tmp_path, SMALL.replace(old, new))
    with pytest.raises(CorpusError) as error:
        load_corpus(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("v: 1", "v: one", "input.S[0].v: `one` is not a INT"),
        ("v: 1", "z: 1", "input.S[0]: the stream has no attribute `z`"),
        ("  S: [", "  T: [", "input: the catalog has no stream `T`"),
        ("2026-01-01T00:00:00", "noon", "input.S[0].ts: `noon` is not a TIMESTAMP"),
    ],
)
def test_input_that_does_not_fit(tmp_path: Path, old: str, new: str, said: str) -> None:
    (case,) = load_corpus(write(tmp_path, SMALL.replace(old, new)))[0].cases
    with pytest.raises(CorpusError) as error:
        case.typed_input(case.load_catalog())
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}]),
        ([{"a": 0.1 + 0.2}], [{"a": 0.3}]),
        ([{"a": 1}], [{"a": 1.0}]),
        ([{"t": "2026-01-01T00:00:00"}], [{"t": 1_767_225_600_000_000}]),
        ([{"t": "2026-01-01T01:00:00+01:00"}], [{"t": 1_767_225_600_000_000}]),
    ],
)
def test_same_bags(expected: list[dict[str, object]], actual: list[dict[str, object]]) -> None:
    assert compare_rows(expected, actual) is None


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([{"a": 1}], [{"a": 1}, {"a": 1}]),
        ([{"a": 1, "b": None}], [{"a": 1}]),
        ([{"a": True}], [{"a": 1}]),
        ([{"a": 1.0}], [{"a": 1.00001}]),
        ([{"a": "1"}], [{"a": 1}]),
        ([{"a": None}], [{"a": 0.0}]),
    ],
)
def test_different_bags(expected: list[dict[str, object]], actual: list[dict[str, object]]) -> None:
    assert compare_rows(expected, actual) is not None


def test_a_difference_is_shown_as_people_write_it() -> None:
    said = compare_rows([{"n": 1}], [{"n": None, "window_start": 1_767_225_600_000_000}])
    assert said == "missing: {n: 1}\nnot expected: {n: null, window_start: 2026-01-01T00:00:00}"


def test_the_whole_corpus_loads() -> None:
    folders = [ROOT / "tests" / "corpus", *sorted((ROOT / "examples").iterdir())]
    cases = [case for folder in folders for file in load_corpus(folder) for case in file.cases]
    assert len(cases) > 300


PUNCTUATED = """
name: punctuated
catalog: |
  CREATE STREAM S (ts TIMESTAMP, id INT) TIMESTAMP BY ts PUNCTUATED BY id;
  CREATE ROLE D;
input:
  S:
  - _sp: {ddp: {tuples: 1}, srp: [D], ts: 2026-01-01T00:00:00, sn: 1}
    _partition: 2
  - _sp: {ddp: {tuples: 1}, srp: [E], ts: "2026-01-01T00:00:00", sn: 1}
  - {ts: "2026-01-01T00:00:00", id: 1, _sp_ts: "2026-01-01T00:00:00", _sp_count: 1, _sender: d}
cases:
- name: first
  user: u
  query: SELECT id FROM S
"""


def test_elements_of_a_punctuated_stream(tmp_path: Path) -> None:
    (case,) = load_corpus(write(tmp_path, PUNCTUATED))[0].cases
    catalog = case.load_catalog()
    first, second = case.typed_input(catalog)["S"]
    assert (first["_sp"].ts, first["_sp"].sender, first["_partition"]) == (1_767_225_600_000_000, "", 2)
    named = {"_sp_ts": 1_767_225_600_000_000, "_sp_count": 1, "_sender": "d", "_partition": 0}
    assert second == {"ts": 1_767_225_600_000_000, "id": 1} | named
    assert case.refused_input(catalog) == ("sp-unknown-subject",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    _partition: 2", "    _partition: two", "input.S[0]._partition: `two` is not a number"),
        ("    _partition: 2", "    id: 2", "input.S[0]: a punctuation has no `id` beside it"),
        ("_sp_count: 1", "_sp_count: one", "input.S[2]._sp_count: `one` is not a number"),
        ('_sp_ts: "2026-01-01T00:00:00"', "_sp_ts: noon", "input.S[2]._sp_ts: `noon` is not a TIMESTAMP"),
        (" PUNCTUATED BY id", "", "input.S[0]: the stream has no attribute `_partition`"),
        ("_sender: d", "_sender: [d]", "input.S[2]._sender: must be a text"),
    ],
)
def test_elements_that_do_not_fit(tmp_path: Path, old: str, new: str, said: str) -> None:
    (case,) = load_corpus(write(tmp_path, PUNCTUATED.replace(old, new)))[0].cases
    with pytest.raises(CorpusError) as error:
        case.typed_input(case.load_catalog())
    assert said in str(error.value)


def test_what_is_refused_is_judged_too(tmp_path: Path) -> None:
    (case,) = load_corpus(write(tmp_path, PUNCTUATED + "  refused: [sp-forged]\n"))[0].cases
    (difference,) = judge_case(case)
    assert (difference.what, difference.expected, difference.got) == (
        "refused",
        "sp-forged",
        "sp-unknown-subject",
    )


def test_input_may_be_a_file_beside_the_cases(tmp_path: Path) -> None:
    text = SMALL.replace('[{ts: "2026-01-01T00:00:00", id: a, v: 1, w: 2, ok: true}]', "s.jsonl")
    (tmp_path / "s.jsonl").write_text('{"ts": "2026-01-01T00:00:00", "id": "b"}\n\n{"id": "c"}\n')
    (case,) = load_corpus(write(tmp_path, text))[0].cases
    assert [row["id"] for row in case.typed_input(case.load_catalog())["S"]] == ["b", "c"]
    (tmp_path / "s.jsonl").write_text("{")
    with pytest.raises(CorpusError, match=r"input\.S: cannot be read"):
        load_corpus(tmp_path / "case.yaml")
    (tmp_path / "s.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"input\.S: cannot be read"):
        load_corpus(tmp_path / "case.yaml")

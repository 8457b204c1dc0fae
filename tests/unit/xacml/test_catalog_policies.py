"""Policies in a catalog: statements, folders, versions, and who may change them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sluicegate.api import open as open_gate
from sluicegate.errors import DiagnosticError
from sluicegate.expr.text import write_string
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog, read_sources
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_statements import print_statement, print_statements
from sluicegate.policy.catalog import Catalog
from sluicegate.service.store.difference import find_difference, is_same
from sluicegate.service.store.folders import export_catalog
from sluicegate.service.store.folding import apply_change, print_change
from sluicegate.source import SourceText
from sluicegate.testing.stream_policies import write_stream_policy
from unit.xacml.xacml_world import policy_set

BASE = """
CREATE USER own; CREATE USER ura; CREATE STREAM weather (at TIMESTAMP, rain DOUBLE) TIMESTAMP BY at OWNER own;
"""


def write(given: Mapping[str, Any], replaces: bool = False) -> str:
    text = given["xml"] if "xml" in given else write_stream_policy(given)
    verb = "CREATE OR REPLACE" if replaces else "CREATE"
    return f"{verb} POLICY {write_string(given['id'])} AS {write_string(text)};\n"


def change(catalog: Catalog, text: str, author: str | None = None) -> Catalog:
    return apply(catalog, parse_statements(SourceText("<change>", text)), author)


def refused(catalog: Catalog, text: str, author: str | None = None) -> list[str]:
    with pytest.raises(DiagnosticError) as caught:
        change(catalog, text, author)
    return [each.code for each in caught.value.diagnostics]


P = {"id": "urn:it's:p", "user": "ura", "stream": "weather", "filter": "rain > 1"}
Q = {"id": "q", "stream": "weather"}
REFERRING = {"id": "s", "xml": policy_set("<PolicyIdReference>q</PolicyIdReference>")}


def test_statements_read_back_as_they_are_printed() -> None:
    text = (
        write(P)
        + write(Q, replaces=True)
        + "DROP POLICY 'urn:it''s:p'; SET CLOCK TIMESTAMP '2026-01-01 10:00:00.5';"
    )
    statements = parse_statements(SourceText("<text>", text))
    assert parse_statements(SourceText("<text>", print_statements(statements))) == statements
    assert print_change(statements) == tuple(map(print_statement, statements))


def test_a_policy_is_made_replaced_and_dropped() -> None:
    first = change(read_catalog(BASE), write(P))
    assert list(first.policies) == [P["id"]]
    assert refused(first, write(P)) == ["name-taken"]
    second = change(first, write({**P, "filter": "rain > 2"}, replaces=True))
    assert second.policies != first.policies
    assert second.version == first.version + 1
    assert dict(change(second, "DROP POLICY 'urn:it''s:p';").policies) == {}
    assert refused(second, "DROP POLICY 'urn:its:p';") == ["unknown-policy"]


@pytest.mark.parametrize("name", ["_1", "#x", "self", "urn:a b", "ü"])
def test_an_id_is_whatever_the_standard_lets_it_be(name: str) -> None:
    assert list(change(read_catalog(BASE), write({**Q, "id": name})).policies) == [name]


def test_versions_with_the_same_policies_share_them() -> None:
    first = change(read_catalog(BASE), write(P))
    second = change(first, "CREATE ROLE R; SET CLOCK TIMESTAMP '2026-01-01 10:00:00'; DROP ROLE R;")
    assert second.policies is first.policies
    assert second.judged_at == 1_767_261_600_000_000


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE POLICY 'other' AS " + write_string(write_stream_policy(Q)) + ";", "policy-id"),
        ("CREATE POLICY 'q' AS '<Policy>';", "xml-syntax"),
        ("CREATE POLICY 'q' AS '<!DOCTYPE x><Policy/>';", "xml-document-type"),
        ("CREATE POLICY 'q' AS '<Policy/>';", "xacml-namespace"),
        ("CREATE POLICY q AS '';", "syntax"),
        ("CREATE POLICY 'q' FROM '';", "syntax"),
        ("SET CLOCK 5;", "syntax"),
        ("SET CLOCK NULL;", "syntax"),
        (f"CREATE POLICY 'q' AS '{'x' * (1024 * 1024 + 1)}';", "text-too-large"),
        (write(REFERRING), "xacml-reference"),
        ('CREATE GRANT "xacml:weather" READ (*) ON weather TO USER ura;', "reserved-name"),
    ],
    ids=lambda text: text[:40],
)
def test_what_is_refused(text: str, code: str) -> None:
    assert refused(read_catalog(BASE), text) == [code]


def test_ids_are_there_once_also_within_sets() -> None:
    inner = write_stream_policy({**Q, "id": "p2"}).partition("?>")[2]
    catalog = change(read_catalog(BASE), write({"id": "s", "xml": policy_set(inner)}))
    assert refused(catalog, write({**Q, "id": "p2"})) == ["xacml-duplicate"]
    assert (
        len(
            change(
                catalog, write({"id": "s", "xml": policy_set()}, replaces=True) + write({**Q, "id": "p2"})
            ).policies
        )
        == 2
    )


def test_what_another_refers_to_is_not_dropped_alone() -> None:
    catalog = change(read_catalog(BASE), f"BEGIN; {write(REFERRING)} {write(Q)} COMMIT;")
    assert catalog.version == 2
    assert refused(catalog, "DROP POLICY 'q';") == ["xacml-reference"]
    assert not change(catalog, "BEGIN; DROP POLICY 'q'; DROP POLICY 's'; COMMIT;").policies


def test_only_administrators_change_policies_and_the_clock() -> None:
    catalog = change(read_catalog(BASE), write(P))
    for text in (
        write(Q),
        write(P, replaces=True),
        "DROP POLICY 'urn:it''s:p';",
        "SET CLOCK TIMESTAMP '2026-01-01';",
    ):
        assert refused(catalog, text, "own") == ["not-allowed"]


def test_other_drops_keep_policies_and_the_clock() -> None:
    catalog = change(read_catalog(BASE), write(P) + "SET CLOCK TIMESTAMP '2026-01-01';")
    after = change(catalog, "DROP STREAM weather CASCADE; DROP USER ura CASCADE;")
    assert (after.policies, after.judged_at) == (catalog.policies, catalog.judged_at)


def test_a_whole_catalog_reads_back_as_it_is_printed() -> None:
    catalog = change(read_catalog(BASE), write(P) + write(Q) + "SET CLOCK TIMESTAMP '2026-01-01';")
    again = read_catalog(print_statements(catalog_statements(catalog)))
    assert replace(again, version=catalog.version) == catalog


def test_a_difference_carries_policies_and_never_the_clock() -> None:
    before = change(
        read_catalog(BASE),
        f"BEGIN; {write(P)}{write(REFERRING)}{write(Q)} COMMIT; SET CLOCK TIMESTAMP '2026-01-02';",
    )
    wanted = change(
        read_catalog(BASE),
        write({**P, "filter": "rain > 3"}) + write({**Q, "id": "new"}) + "SET CLOCK TIMESTAMP '2025-01-01';",
    )
    for one, other in ((before, wanted), (wanted, before)):
        statements = find_difference(one, other)
        made = apply_change(one, statements, None)
        assert is_same(made, other)
        assert made.judged_at == one.judged_at
    assert find_difference(before, replace(before, judged_at=None)) == []


def test_a_folder_has_policies_in_files(tmp_path: Path) -> None:
    (tmp_path / "catalog.sql").write_text(BASE)
    (tmp_path / "one.xacml.xml").write_text(write_stream_policy(P))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "two.xml").write_text(write_stream_policy(Q), encoding="utf-16")
    (tmp_path / "policies" / "notes.txt").write_text("nothing")
    (tmp_path / "other.xml").write_text("<other>not read</other>")
    catalog = read_sources(tmp_path).load()
    assert sorted(catalog.policies) == ["q", P["id"]]
    out = tmp_path / "out"
    export_catalog(catalog, out)
    assert is_same(read_sources(out).load(), catalog)
    with pytest.raises(DiagnosticError, match="already"):
        export_catalog(catalog, out)


def test_what_is_wrong_in_a_file_is_told_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "catalog.sql").write_text(BASE)
    bad = write_stream_policy(P).replace("string-equal", "string-like", 1)
    (tmp_path / "bad.xacml.xml").write_text(bad)
    (tmp_path / "worse.xacml.xml").write_text("<Policy>\n<")
    with pytest.raises(DiagnosticError) as caught:
        open_gate(tmp_path)
    found = [(each.code, each.span) for each in caught.value.diagnostics]
    assert [code for code, _ in found] == ["xacml-function", "xml-syntax"]
    places = [span.source.position(span.start)[0] for _, span in found if span is not None]
    assert places == [1 + bad[: bad.index("string-like")].count("\n"), 2]
    (tmp_path / "worse.xacml.xml").unlink()
    for name in ("bad", "again"):
        (tmp_path / f"{name}.xacml.xml").write_text(write_stream_policy(P))
    with pytest.raises(DiagnosticError, match="exists already") as caught:
        open_gate(tmp_path)
    span = caught.value.diagnostics[0].span
    assert span is not None
    assert span.source.name.endswith("bad.xacml.xml")


def test_one_more_policy_costs_its_own_size() -> None:
    """Ten thousand uploads, one version each, would take hours if each looked at all the others' contents."""
    texts = [write({"id": f"p{at}", "user": f"u{at}", "stream": "weather"}) for at in range(1200)]
    statements = parse_statements(SourceText("<text>", "".join(texts)))
    begun = time.process_time()
    first = apply(read_catalog(BASE), statements[:300])
    small = time.process_time() - begun
    begun = time.process_time()
    apply(first, statements[300:])
    large = time.process_time() - begun
    assert large < 30 * small

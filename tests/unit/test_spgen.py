"""Results that state policies (`ON RESULT`): what the catalog takes, what it prints, who learns of them."""

from __future__ import annotations

import pytest

from sluicegate.api import Denied, Gate
from sluicegate.errors import DiagnosticError
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_statements import print_statement
from sluicegate.policy.catalog import Catalog
from sluicegate.rewrite.explain_json import explanation_json
from sluicegate.service.decisions import known_streams
from sluicegate.source import SourceText

CATALOG = """
CREATE ROLE Doctor; CREATE ROLE Nurse; CREATE USER clinic; CREATE USER dora ROLES (Doctor); CREATE USER nina ROLES (Nurse);
CREATE USER noel;
CREATE STREAM S (ts TIMESTAMP, id INT, x INT) TIMESTAMP BY ts OWNER clinic PUNCTUATED BY id GOVERNED BY PROVIDER;
CREATE STREAM R OWNER dora AS SELECT ts, id FROM S
  ON RESULT (INSERT SP AS a INTO STREAM LET a.DDP = TUPLES:ALL AND ATTRIBUTES:{ts, id}, a.SRP = frbac:Nurse WITH GRANT OPTION,
             INSERT SP INTO STREAM R LET DDP = ALL, SRP = dac:noel, SIGN = NEGATIVE, IMMUTABLE = TRUE);
"""
STATED = " ON RESULT (INSERT SP INTO STREAM LET DDP = ALL, SRP = frbac:Nurse, SIGN = POSITIVE);"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_catalog(CATALOG)


def change(catalog: Catalog, text: str, author: str | None = None) -> Catalog:
    return apply(catalog, parse_statements(SourceText("<change>", text)), author)


def test_it_is_kept_and_printed(catalog: Catalog) -> None:
    """I6: reading what was printed gives the same catalog."""
    stream = catalog.streams["R"]
    assert [(each.sn, each.positive, each.srp.grant_option) for each in stream.stated] == [
        (1, True, True),
        (2, False, False),
    ]
    assert stream.governed_by_provider
    assert stream.carries_policies
    again = read_catalog("\n".join(map(print_statement, catalog_statements(catalog))))
    assert again.streams == catalog.streams


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE STREAM Q OWNER dora PUNCTUATED BY id AS SELECT ts, id FROM S" + STATED, "named-result"),
        ("CREATE STREAM Q OWNER dora ORDER ANY AS SELECT ts, id FROM S" + STATED, "named-result"),
        ("CREATE STREAM Q OWNER dora GOVERNED BY PROVIDER AS SELECT ts, id FROM S;", "not-punctuated"),
        ("CREATE STREAM Q OWNER dora AS SELECT ts FROM S" + STATED.replace("ALL", "TUPLES:7"), "on-result"),
        ("CREATE STREAM Q OWNER dora AS SELECT ts FROM S" + STATED.replace("DDP = ALL", "QUERY = 'Q1'"), "on-result"),
        ("CREATE STREAM Q OWNER dora AS SELECT ts FROM S" + STATED.replace("LET", "S LET"), "on-result"),
        ("CREATE SP p INTO STREAM R LET DDP = TUPLES:7, SRP = frbac:Nurse, SIGN = POSITIVE;", "on-result"),
    ],
)  # fmt: skip
def test_what_is_refused(catalog: Catalog, text: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        change(catalog, text)
    assert [each.code for each in caught.value.diagnostics] == [code]


def test_who_makes_one_passes_on_its_own_rights_alone(catalog: Catalog) -> None:
    made = change(catalog, "CREATE STREAM Q AS SELECT ts, id FROM S" + STATED, author="nina")
    assert made.streams["Q"].owner == "nina"
    with pytest.raises(DiagnosticError, match="another owner"):
        change(catalog, "CREATE STREAM Q OWNER dora AS SELECT ts, id FROM S" + STATED, author="nina")
    with pytest.raises(DiagnosticError, match="belongs to another"):
        change(
            catalog,
            "CREATE SP p INTO STREAM R LET DDP = ALL, SRP = frbac:Nurse, SIGN = POSITIVE;",
            author="nina",
        )


def test_only_those_whom_it_names_learn_of_it(catalog: Catalog) -> None:
    assert {
        user: "R" in known_streams(catalog, user).streams for user in ("nina", "dora", "noel", "clinic")
    } == {
        "nina": True,
        "dora": True,  # its maker
        "noel": False,
        "clinic": False,
    }


def test_policies_without_an_on_result_end_at_the_result(catalog: Catalog) -> None:
    """Tuples that carry policies cannot be handed on in silence, by a grant of the maker's."""
    silent = "CREATE STREAM Q OWNER dora AS SELECT ts, id FROM S; CREATE GRANT q READ (*) ON Q TO Nurse;"
    gate = Gate(change(catalog, silent))
    with pytest.raises(DiagnosticError) as caught:
        gate.authorize("nina", "SELECT id FROM Q")
    (found,) = caught.value.diagnostics
    assert found.code == "not-served"
    assert "ON RESULT" in (found.help or "")


def test_what_stands_for_the_provider_is_no_grant(catalog: Catalog) -> None:
    gate = Gate(catalog)
    found = explanation_json(gate.explain("nina", "SELECT id FROM R"))
    assert (found["decision"], found["grants"], found["reasons"]) == ("permit", [], [])
    assert [each["grants"] for each in found["graphs"]] == [[]]  # type: ignore[attr-defined]
    with pytest.raises(Denied):
        gate.authorize("noel", "SELECT id FROM R")

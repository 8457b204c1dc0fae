"""When a user's queries need not be judged anew: never where what decides about policies of tuples has changed (R10)."""

from __future__ import annotations

import pytest

from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.runtime.network.authorize import is_same_for
from sluicegate.source import SourceText

CATALOG = """
CREATE ROLE C; CREATE ROLE A INHERITS C; CREATE ROLE B INHERITS C; CREATE ROLE Other;
CREATE USER u ROLES (A, B); CREATE USER maker ROLES (Other); CREATE USER v;
CREATE STREAM S (ts TIMESTAMP, id INT) TIMESTAMP BY ts PUNCTUATED BY id GOVERNED BY PROVIDER;
"""
RESULT = """
CREATE STREAM R OWNER maker AS SELECT ts, id FROM S
  ON RESULT (INSERT SP INTO STREAM LET DDP = ALL, SRP = frbac:A, SIGN = POSITIVE);
"""


@pytest.mark.parametrize(
    ("text", "change", "same"),
    [
        (CATALOG, "ALTER ROLE A INHERITS NONE;", False),
        (CATALOG, "ALTER USER maker DROP ROLE Other;", True),
        (CATALOG + RESULT, "ALTER USER maker DROP ROLE Other;", False),
        (CATALOG + RESULT, "ALTER USER maker DISABLE;", False),
        (CATALOG, "CREATE SP p INTO STREAM S LET DDP = TUPLES:ALL, SRP = frbac:A, SIGN = POSITIVE;", False),
        (CATALOG, "ALTER USER v DISABLE;", True),
    ],
)
def test_what_makes_a_difference(text: str, change: str, same: bool) -> None:
    old = read_catalog(text)
    new = apply(old, parse_statements(SourceText("<change>", change)))
    assert old.roles_of("u") == new.roles_of("u")
    assert is_same_for("u", old, new) is same

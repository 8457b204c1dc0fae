"""Random changes over a few names, so that they meet: created, altered, dropped, granted, passed on, refused."""

from __future__ import annotations

from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError
from sluicegate.expr.text import write_string
from sluicegate.policy.catalog import Catalog
from sluicegate.service.store import Store
from sluicegate.service.store.folding import apply_change, read_change
from sluicegate.testing.stream_policies import write_stream_policy

BASE = """
CREATE ROLE doctor; CREATE ROLE nurse;
CREATE USER ann ROLES (doctor) SET (ward = 'a'); CREATE USER bob ROLES (nurse);
CREATE STREAM Pulse (pid INT, ward STRING, rate DOUBLE, t TIMESTAMP) TIMESTAMP BY t WATERMARK '1 minute' OWNER bob;
SET FACT limit_of('a') = 5;
CREATE GRANT base READ (*) ON Pulse WHERE ward = self.ward AND pid < limit_of('a') TO doctor WITH GRANT OPTION;
"""

POLICIES = [
    write_string(write_stream_policy({"id": "x", "stream": "Pulse", "role": "doctor", "filter": each}))
    for each in ("rate > 1", "ward = 'a'")
]
POLICY_SET = write_string(
    '<PolicySet xmlns="urn:oasis:names:tc:xacml:3.0:core:schema:wd-17" PolicySetId="s" Version="1.0" '
    'PolicyCombiningAlgId="urn:oasis:names:tc:xacml:3.0:policy-combining-algorithm:deny-overrides">'
    "<Target/><PolicyIdReference>x</PolicyIdReference></PolicySet>"
)

roles = st.sampled_from(["doctor", "nurse", "clerk"])
users = st.sampled_from(["ann", "bob", "cyd"])
streams = st.sampled_from(["Pulse", "Beds"])
grants = st.sampled_from(["base", "g1", "g2"])
wards = st.sampled_from(["'a'", "'b'", "NULL"])


def _fill(template: str, **parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.fixed_dictionaries(parts).map(lambda found: template.format(**found))


replaces = st.sampled_from(["", "OR REPLACE "])
statements = st.one_of(
    _fill("CREATE ROLE {a} INHERITS {b};", a=roles, b=roles),
    _fill("CREATE ROLE {a};", a=roles),
    _fill("ALTER ROLE {a} INHERITS {b};", a=roles, b=roles | st.just("NONE") | st.just("nurse, clerk")),
    _fill("CREATE USER {a} ROLES ({b}) SET (ward = 'a', bed = 1);", a=users, b=roles),
    _fill("ALTER USER {a} {b} ROLE {c};", a=users, b=st.sampled_from(["ADD", "DROP"]), c=roles),
    _fill("ALTER USER {a} SET (ward = {b});", a=users, b=wards),
    _fill("ALTER USER {a} {b};", a=users, b=st.sampled_from(["DISABLE", "ENABLE"])),
    _fill("ALTER USER {a} FOLLOW Pulse (rate) ON pid WITHIN '{b} minutes';", a=users, b=st.sampled_from("12")),
    _fill("CREATE USER {a} SET (pid = 1) FOLLOW Pulse (rate) ON pid WITHIN '1 minute';", a=users),
    _fill("CREATE STREAM {a} (pid INT, ward STRING, rate {b}, t TIMESTAMP) TIMESTAMP BY t OWNER {c};",
          a=streams, b=st.sampled_from(["DOUBLE", "INT"]), c=users),
    _fill("CREATE STREAM {a} AS SELECT pid, t FROM Pulse WHERE rate > 1;", a=st.sampled_from(["Fast", "Beds"])),
    _fill("ALTER STREAM {a} {b};", a=streams, b=st.sampled_from(
        ["ADD bed INT", "DROP bed", "DROP rate", "ADD rate INT", "OWNER ann", "WATERMARK '5 minutes'",
         "FROM log OPTIONS (path = 'x')", "FROM log", "PUNCTUATED BY ward", "PUNCTUATED BY ward ORDER ANY"])),
    _fill("CREATE {r}GRANT {a} READ (pid, {b}) ON {c} WHERE pid > {d} TO {e};", r=replaces, a=grants,
          b=st.sampled_from(["rate", "ward"]), c=streams, d=st.sampled_from(["1", "limit_of('a')", "nix('x')"]), e=roles),
    _fill("CREATE {r}GRANT {a} AVG (rate) ON {c} DURING [start('x'), NULL] WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour'"
          " MIN GROUP 3 TO USER {e};", r=replaces, a=grants, c=streams, e=users),
    _fill("CREATE GRANT {a} READ (pid) ON Pulse WHERE ward = 'a' AND pid < limit_of('a') GRANTED BY {b} TO {c};",
          a=grants, b=users, c=roles),
    _fill("SET {p}FACT {a}('{b}') = {c};", p=st.sampled_from(["", "PUBLIC "]),
          a=st.sampled_from(["limit_of", "nix", "start"]), b=st.sampled_from("ax"),
          c=st.sampled_from(["1", "2", "2.5", "TIMESTAMP '2026-01-01 00:00:00'", "'text'"])),
    _fill("CREATE {r}POLICY '{a}' AS {b};", r=replaces, a=st.just("x"), b=st.sampled_from(POLICIES)),
    _fill("CREATE {r}POLICY 's' AS {b};", r=replaces, b=st.just(POLICY_SET)),
    _fill("DROP POLICY '{a}';", a=st.sampled_from("xs")),
    _fill("SET CLOCK TIMESTAMP '2026-01-0{a}';", a=st.sampled_from("12")),
    _fill("DROP FACT {a}('{b}');", a=st.sampled_from(["limit_of", "nix", "start"]), b=st.sampled_from("ax")),
    _fill("CREATE SP {a} INTO STREAM Pulse LET DDP = *, SRP = {b};", a=st.sampled_from(["p1", "p2"]),
          b=st.sampled_from(["frbac:doctor", "frbac:nurse"])),
    _fill("DROP {k};", k=st.sampled_from(
        ["GRANT base", "GRANT g1", "SP p1", "ROLE nurse CASCADE", "ROLE clerk", "USER ann CASCADE", "USER cyd CASCADE",
         "STREAM Pulse CASCADE", "STREAM Beds CASCADE", "STREAM Fast"])),
)  # fmt: skip
authors = st.sampled_from([*[None] * 12, "ann", "bob", "cyd"])
changes = st.lists(
    st.tuples(statements | st.lists(statements, min_size=2, max_size=2).map("\n".join), authors),
    min_size=8,
    max_size=16,
)


def fold_directly(catalog: Catalog, text: str, author: str | None) -> Catalog | None:
    """By the language alone; None where it refuses."""
    try:
        return apply_change(catalog, read_change(text), author)
    except DiagnosticError:
        return None


def append_all(store: Store, found: list[tuple[str, str | None]]) -> list[Catalog]:
    """Append what can be, beside a fold of our own; the catalogs by version."""
    states = [Catalog()]
    for text, author in [(BASE, None), *found]:
        direct = fold_directly(states[-1], text, author)
        try:
            store.append(text, author, "because")
        except DiagnosticError:
            assert direct is None
        else:
            assert direct is not None
            states.append(direct)
    return states

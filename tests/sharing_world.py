"""A small catalog whose readers see different parts of the same streams, and their queries in network form."""

from __future__ import annotations

from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.environment import environment
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.rewrite.sharing.optimize import normalize

TEXT = """
CREATE STREAM S (ts TIMESTAMP, k INT, g STRING, n INT) TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, k INT, m INT) TIMESTAMP BY ts;
CREATE STREAM U (ts TIMESTAMP, k INT, w INT) TIMESTAMP BY ts;
CREATE STREAM D (k INT, d STRING); CREATE STREAM E (k INT, e STRING);
CREATE ROLE Every; CREATE ROLE High; CREATE ROLE Higher; CREATE ROLE Own; CREATE ROLE Lim; CREATE ROLE Sums; CREATE ROLE Part;
CREATE USER ann ROLES (Every) SET (k = 1);
CREATE USER bob ROLES (Own) SET (k = 1);
CREATE USER eve ROLES (Own) SET (k = 2);
SET FACT lim('a') = 3;
CREATE GRANT every_s READ (*) ON S TO Every; CREATE GRANT every_t READ (*) ON T TO Every;
CREATE GRANT every_u READ (*) ON U TO Every; CREATE GRANT every_d READ (*) ON D TO Every;
CREATE GRANT every_e READ (*) ON E TO Every;
CREATE GRANT high READ (*) ON S WHERE n >= 2 TO High; CREATE GRANT high_t READ (*) ON T TO High;
CREATE GRANT higher READ (*) ON S WHERE n >= 4 TO Higher; CREATE GRANT higher_t READ (*) ON T WHERE m > 0 TO Higher;
CREATE GRANT own READ (*) ON S WHERE k = self.k TO Own; CREATE GRANT own_t READ (*) ON T WHERE k = self.k TO Own;
CREATE GRANT lim READ (*) ON S WHERE n < lim('a') TO Lim; CREATE GRANT lim_t READ (k) ON T TO Lim;
CREATE GRANT sums AGGREGATE (SUM(n), COUNT(*)) ON S WHERE n >= 2 BY (g) TO Sums;
CREATE GRANT part READ (ts, k, g) ON S TO Part; CREATE GRANT part_t READ (ts, k) ON T TO Part;
"""
CATALOG = read_catalog(TEXT)


def make_plan(user: str, query: str, catalog: Catalog = CATALOG) -> AuthorizedPlan:
    """The user's authorized plan in network form; the user may have something of the query."""
    plan = rewrite(catalog, catalog.users[user], read_query(query, catalog).root).plan
    assert plan is not None
    return normalize(plan, environment(catalog, user), owner=user)

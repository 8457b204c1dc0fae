# Nothing in the queries made here comes from outside.
# ruff: noqa: S608
"""Streams, users, grants and queries of the measurements on Spark: soldiers who report where and how they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog

WINDOW, REACH = 5, 2
"""Seconds: of the aggregate's windows, and of each side of the join."""
_STREAMS = """
CREATE STREAM Position (ts TIMESTAMP, SID STRING, Platoon STRING, Pos DOUBLE)
  TIMESTAMP BY ts WATERMARK '1 second';
CREATE STREAM Health (ts TIMESTAMP, SID STRING, Platoon STRING, Heart INT, BPressure INT)
  TIMESTAMP BY ts WATERMARK '1 second';
CREATE ROLE Doctor;
CREATE GRANT health READ (*) ON Health WHERE Platoon = self.Platoon TO Doctor;
CREATE GRANT position READ (*) ON Position WHERE Platoon = self.Platoon TO Doctor;
"""
_PREDICATES = (
    "Heart >= {n}",
    "BPressure >= {n}",
    "Heart + BPressure >= {n}",
    "Heart <= 2 * {n}",
    "BPressure < 3 * {n}",
    "Heart * 2 > BPressure + {n} / 100",
    "Heart <> {n}",
    "BPressure <> {n}",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A kind of query: in our language, as a function of its constant, and what a Spark engineer would write."""

    name: str
    text: str
    by_hand: str
    """Over views `position` and `health`, with the policy as ordinary conditions."""
    streams: tuple[str, ...]

    def ask(self, least: int) -> str:
        return self.text.format(n=least) + " START AT EARLIEST"


SELECT = Asked(
    "select",
    "SELECT ts, SID, Heart FROM Health WHERE Heart >= {n}",
    "SELECT ts, SID, Heart FROM health WHERE Platoon = '{p}' AND Heart >= {n}",
    ("Health",),
)
AGGREGATE = Asked(
    "aggregate",
    f"SELECT SID, AVG(Heart) AS mean, MAX(BPressure) AS most, COUNT(*) AS n FROM Health [RANGE {WINDOW} SECONDS]"
    " WHERE Heart >= {n} GROUP BY SID",
    "SELECT SID, window.start AS window_start, window.end AS window_end, avg(Heart) AS mean,"
    f" max(BPressure) AS most, count(*) AS n FROM health WHERE Platoon = '{{p}}' AND Heart >= {{n}}"
    f" GROUP BY SID, window(ts, '{WINDOW} seconds')",
    ("Health",),
)
JOIN = Asked(
    "join",
    f"SELECT Health.SID, Heart, Pos FROM Position [RANGE {REACH} SECONDS] JOIN Health [RANGE {REACH} SECONDS]"
    " ON Position.SID = Health.SID WHERE Heart >= {n}",
    "SELECT h.SID AS SID, h.Heart AS Heart, p.Pos AS Pos FROM position AS p JOIN health AS h ON p.SID = h.SID"
    f" AND h.ts > p.ts - INTERVAL {REACH} SECONDS AND h.ts < p.ts + INTERVAL {REACH} SECONDS"
    " WHERE p.Platoon = '{p}' AND h.Platoon = '{p}' AND h.Heart >= {n}",
    ("Position", "Health"),
)
KINDS = (SELECT, AGGREGATE, JOIN)


def make_soldiers(users: int) -> Catalog:
    """Users `u0`, `u1`, …, each of a platoon of its own."""
    people = [f"CREATE USER u{at} ROLES (Doctor) SET (Platoon = 'P{at}');" for at in range(users)]
    return read_catalog("\n".join([_STREAMS, *people]))


def list_shapes() -> Iterator[str]:
    """Queries on `Health` no two of which have one shape."""
    shown = [each for size in (3, 2, 1) for each in combinations(("ts", "SID", "Heart", "BPressure"), size)]
    for columns, predicate in product(shown, _PREDICATES):
        yield f"SELECT {', '.join(columns)} FROM Health WHERE {predicate.format(n=60)} START AT EARLIEST"

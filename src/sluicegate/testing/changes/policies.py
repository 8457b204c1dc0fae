"""The policies, and random changes of them: profiles, facts, grants, roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.policy.catalog import Catalog
from sluicegate.source import SourceText
from sluicegate.testing.changes.world import KINDS, MOST, Settings

STEADY = ("c0", "c1")
"""Users whom no change concerns."""
MOVED = tuple(f"m{at}" for at in range(4))
"""Users with a profile and a role; its grants name a fact."""
GRANTED = tuple(f"g{at}" for at in range(3))
"""Users with grants of their own."""


@dataclass(frozen=True, slots=True)
class People:
    """Who there is, by what concerns them."""

    steady: tuple[str, ...] = STEADY
    moved: tuple[str, ...] = MOVED
    granted: tuple[str, ...] = GRANTED

    @property
    def changed(self) -> tuple[str, ...]:
        return (*self.moved, *self.granted)

    @property
    def everybody(self) -> tuple[str, ...]:
        return (*self.steady, *self.changed)


PEOPLE = People()
STREAMS = """
CREATE STREAM S (ts TIMESTAMP, id BIGINT, kind STRING, n INT) TIMESTAMP BY ts WATERMARK '1 second';
CREATE STREAM T (ts TIMESTAMP, id BIGINT, kind STRING, n INT) TIMESTAMP BY ts WATERMARK '1 second';
CREATE ROLE Steady; CREATE ROLE Moved; CREATE ROLE Idle;
SET FACT most('n') = 9;
CREATE GRANT steady_s READ (ts, id, kind, n) ON S WHERE kind = self.Kind AND n <= 9 TO Steady;
CREATE GRANT steady_t READ (ts, id, kind, n) ON T WHERE kind = self.Kind AND n <= 9 TO Steady;
CREATE GRANT moved_s READ (ts, id, kind, n) ON S WHERE kind = self.Kind AND n <= most('n') TO Moved;
CREATE GRANT moved_t READ (ts, id, kind, n) ON T WHERE kind = self.Kind AND n <= most('n') TO Moved;
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A version: its statements, its catalog, and the settings of the users whom it concerns."""

    what: str
    text: str
    catalog: Catalog
    settings: Mapping[str, Settings]


def make_catalog(people: People = PEOPLE) -> tuple[Catalog, dict[str, Settings]]:
    text, settings = write_catalog(people)
    return read_catalog(text), settings


def write_catalog(people: People = PEOPLE) -> tuple[str, dict[str, Settings]]:
    """The first version; `Idle` has no grants, so that it never stands between."""
    text, settings = STREAMS, {}
    for role, users in (("Steady", people.steady), ("Moved", people.moved)):
        for at, user in enumerate(users):
            settings[user] = Settings(KINDS[at % len(KINDS)])
            text += f"CREATE USER {user} ROLES ({role}) SET (Kind = '{settings[user].kind}');\n"
    for at, user in enumerate(people.granted):
        settings[user] = Settings(KINDS[at % len(KINDS)])
        text += f"CREATE USER {user} ROLES (Idle);\n" + _write_grants(user, settings[user])
    return text, settings


def _write_grants(user: str, settings: Settings) -> str:
    """Without a bound where all of `n` is allowed: then the graph has another form, not only other constants."""
    bound = f" AND n <= {settings.most}" if settings.most < MOST else ""
    return "".join(
        f"CREATE OR REPLACE GRANT {user}_{stream} READ (ts, id, kind, n) ON {stream} "
        f"WHERE kind = '{settings.kind}'{bound} TO USER {user};\n"
        for stream in "ST"
    )


def choose_change(
    rng: Random, catalog: Catalog, now: Mapping[str, Settings], user: str, people: People = PEOPLE
) -> Change:
    """Of the user's grants, or of its profile; sometimes a grant dropped, a role lost or found again."""
    if user in people.granted:
        return _change_grant(rng, catalog, now, user)
    if rng.random() < 0.15:
        return _change_role(catalog, now, user)
    return _change_profile(rng, catalog, now, user)


def _change_profile(rng: Random, catalog: Catalog, now: Mapping[str, Settings], user: str) -> Change:
    kind = rng.choice(KINDS)
    before = now[user]
    after = Settings(before.kind and kind, before.most)
    return _make("profile", catalog, f"ALTER USER {user} SET (Kind = '{kind}');", {user: after})


def change_fact(
    rng: Random, catalog: Catalog, now: Mapping[str, Settings], people: People = PEOPLE
) -> Change:
    """It concerns all who have the role."""
    most = rng.randint(2, MOST)
    after = {user: Settings(now[user].kind, most) for user in people.moved}
    return _make("fact", catalog, f"SET FACT most('n') = {most};", after)


def _change_role(catalog: Catalog, now: Mapping[str, Settings], user: str) -> Change:
    """A lost role withdraws; the profile is kept."""
    if now[user].kind is not None:
        text = f"ALTER USER {user} DROP ROLE Moved;"
        return _make("role dropped", catalog, text, {user: Settings(None, now[user].most)})
    kind = catalog.users[user].attribute("Kind")
    assert kind is not None
    found = Settings(str(kind.value), now[user].most)
    return _make("role added", catalog, f"ALTER USER {user} ADD ROLE Moved;", {user: found})


def _change_grant(rng: Random, catalog: Catalog, now: Mapping[str, Settings], user: str) -> Change:
    if now[user].kind is not None and rng.random() < 0.25:
        text = f"DROP GRANT {user}_S; DROP GRANT {user}_T;"
        return _make("grant dropped", catalog, text, {user: Settings(None)})
    after = Settings(rng.choice(KINDS), rng.choice((MOST, rng.randint(2, MOST))))
    return _make("grant", catalog, _write_grants(user, after), {user: after})


def _make(what: str, catalog: Catalog, text: str, settings: Mapping[str, Settings]) -> Change:
    made = apply(catalog, parse_statements(SourceText("<change>", text)))
    return Change(what, text, made, settings)

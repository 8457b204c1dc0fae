"""R8: the same event time is told of one population; what changes a population begins behind what was told (R11)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Literal
from sluicegate.expr.types import INT
from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.policy.bind import Binder
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.population import Population, find_population
from sluicegate.source import SourceText

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa

from sluicegate.runtime.engine import Engine
from sluicegate.runtime.ledger_file import _format, _parse
from sluicegate.runtime.network.seats import Seat

MINUTE = 60_000_000
WORLD = """
    CREATE STREAM S (ts TIMESTAMP, id INT, x INT) TIMESTAMP BY ts;
    CREATE STREAM T (ts TIMESTAMP, id INT) TIMESTAMP BY ts;
    CREATE ROLE Crew;
    CREATE USER u ROLES (Crew) SET (level = 1); CREATE USER reader;
    CREATE USER captain ROLES (Crew) SET (id = 7) FOLLOW S (x) ON id WITHIN '10 minutes';
    CREATE GRANT fleet SUM (x) ON S WHERE id IN fleet('acme')
      WINDOW AT LEAST '10 minutes' STEP AT LEAST '10 minutes' TO USER u WITH GRANT OPTION;
    CREATE GRANT steady MAX (id) ON S WHERE id > 0 TO Crew;
    CREATE GRANT mine MIN (x) ON S WHERE id < self.level TO USER u;
    CREATE GRANT near COUNT (*) ON S WHERE x < self.x TO USER captain;
    CREATE STREAM R OWNER u AS SELECT SUM(x) AS s FROM S [RANGE 10 MINUTES];
    CREATE GRANT reads READ (*) ON R TO USER reader;
"""
BEFORE = WORLD + "SET FACT fleet('acme') = {1, 2, 3};"
AFTER = WORLD + "SET FACT fleet('acme') = {1, 2};"
COPY = """
    CREATE GRANT again SUM (x) ON S WHERE id IN fleet('acme')
      WINDOW AT LEAST '10 minutes' STEP AT LEAST '10 minutes' TO USER u;
"""
LIVE = "SELECT SUM(x) FROM S [RANGE 10 MINUTES]"
REPLAY = f"{LIVE} START AT EARLIEST"
STEADY = "SELECT MAX(id) FROM S [RANGE 10 MINUTES] START AT EARLIEST"
MINE = "SELECT MIN(x) FROM S [RANGE 10 MINUTES] START AT EARLIEST"
MakeEngine = Callable[[str], Engine]


def push(engine: Engine, begin: int, end: int) -> None:
    times = pa.array([at * MINUTE for at in range(begin, end)], pa.timestamp("us", "UTC"))
    one = pa.array([1] * (end - begin), pa.int32())
    engine.push("S", pa.table({"ts": times, "id": one, "x": one}))


def refuse(engine: Engine, query: str, user: str | Seat = "u") -> Diagnostic:
    with pytest.raises(DiagnosticError) as error:
        engine.register(user, query)
    return error.value.diagnostics[0]


def population(text: str, grant: str, user: str = "u") -> Population:
    catalog = read_catalog(text)
    return find_population(Binder(catalog, catalog.users[user]), catalog.grants[grant])


def pass_on(catalog: Catalog, author: str, text: str) -> Catalog:
    """With a grant that the author makes by the grant option."""
    return apply(catalog, parse_statements(SourceText("<grant>", text)), author)


def make_old(folder: Path) -> None:
    """The ledger as it was written before populations were."""
    path = folder / "state" / "ledger" / "ledger.log"
    lines = path.read_bytes().splitlines()
    head, *texts = [_parse(at, line) for at, line in enumerate(lines)]
    records = [json.loads(text) for text in texts]
    for each in records:
        del each["since"]
        for entry in each["entries"]:
            del entry["population"]
    texts = [head, *(json.dumps(each, separators=(",", ":")) for each in records)]
    path.write_bytes(b"".join(_format(at, text) for at, text in enumerate(texts)))


def test_a_population_is_known_by_what_its_grant_names() -> None:
    assert population(BEFORE, "fleet") == population(BEFORE, "fleet")
    assert population(BEFORE, "fleet") != population(AFTER, "fleet")
    assert [name for name, _ in population(BEFORE, "fleet").values] == ["fleet('acme')"]
    assert population(BEFORE, "steady") == population(AFTER, "steady")
    assert population(BEFORE, "steady").is_fixed
    raised = BEFORE.replace("level = 1", "level = 2")
    assert population(BEFORE, "mine") != population(raised, "mine")
    assert population(BEFORE, "near", "captain").moves
    assert population(BEFORE, "near", "captain") != population(
        BEFORE.replace("(id = 7)", "(id = 8)"), "near", "captain"
    )


def test_the_bounds_of_windows_that_are_given_whole_are_no_part_of_it() -> None:
    one = "CREATE GRANT g SUM (x) ON S DURING [TIMESTAMP '2026-01-0{}', NULL] TO USER u;"
    two = "CREATE GRANT g COUNT (*) ON S, T DURING [TIMESTAMP '2026-01-0{}', NULL] TO USER u;"
    for text, same in ((one, True), (two, False)):
        first, second = (population(BEFORE + text.format(day), "g") for day in (1, 2))
        assert (first == second) == same


def test_a_replay_over_a_population_that_lost_a_member_is_refused(make_engine: MakeEngine) -> None:
    engine = make_engine(BEFORE)
    push(engine, 0, 60)
    first = engine.register("u", REPLAY)
    engine.register("u", REPLAY)
    for each in (first, *[each.handle for each in engine.running if each.handle != first]):
        engine.remove(each)
    engine.register("u", REPLAY, "same")
    engine.remove("same")
    engine.apply(read_catalog(AFTER))
    told = refuse(engine, REPLAY)
    assert told.code == "ledger-population"
    assert told.help is not None
    assert "START AT LATEST" in told.help
    assert refuse(engine, f"{LIVE} START AT TIMESTAMP '1970-01-01 00:30:00'").code == "ledger-population"
    engine.register("u", LIVE, "live")
    engine.register("u", STEADY)
    # nor under the old population again where the new one is told, nor under the new one where it was not yet
    push(engine, 60, 90)
    engine.apply(read_catalog(BEFORE))
    assert engine.find("live") is not None
    assert refuse(engine, f"{LIVE} START AT TIMESTAMP '1970-01-01 01:10:00'").code == "ledger-population"


def test_a_copy_of_the_grant_does_not_help(make_engine: MakeEngine) -> None:
    engine = make_engine(BEFORE)
    push(engine, 0, 60)
    engine.remove(engine.register("u", REPLAY))
    engine.apply(read_catalog(AFTER.replace("CREATE GRANT fleet", "CREATE GRANT moved") + COPY))
    assert refuse(engine, REPLAY).code == "ledger-population"


def test_an_average_and_a_count_of_a_copy_tell_no_more_than_the_sum(make_engine: MakeEngine) -> None:
    functions = "AGGREGATE (SUM (x), AVG (x), COUNT (*)) ON S WHERE id IN fleet"
    before, after = (text.replace("SUM (x) ON S WHERE id IN fleet", functions) for text in (BEFORE, AFTER))
    engine = make_engine(before)
    push(engine, 0, 60)
    engine.remove(engine.register("u", REPLAY))
    engine.apply(read_catalog(after + COPY.replace("SUM (x) ON S WHERE id IN fleet", functions)))
    averages = "SELECT AVG(x), COUNT(*) FROM S [RANGE 10 MINUTES]"
    assert refuse(engine, f"{averages} START AT EARLIEST").code == "ledger-population"
    assert (
        refuse(engine, "SELECT AVG(x) FROM S [RANGE 10 MINUTES] START AT EARLIEST").code
        == "ledger-population"
    )
    engine.register("u", f"{averages} START AT LATEST")


def test_a_changed_profile_is_another_population(make_engine: MakeEngine) -> None:
    engine = make_engine(BEFORE)
    push(engine, 0, 60)
    engine.remove(engine.register("u", MINE))
    engine.apply(read_catalog(BEFORE.replace("level = 1", "level = 2")))
    assert refuse(engine, MINE).code == "ledger-population"
    engine.apply(read_catalog(BEFORE))
    engine.register("u", MINE)


LEVELS = """
    CREATE STREAM S (ts TIMESTAMP, id INT, x INT) TIMESTAMP BY ts; CREATE ROLE Crew;
    CREATE USER u ROLES (Crew) SET (level = {}); CREATE USER friend;
    CREATE GRANT g SUM (x) ON S WHERE id < self.level TO Crew WITH GRANT OPTION;
"""
WRITTEN_OUT = "CREATE GRANT {} SUM (x) ON S WHERE id < {} TO USER {} WITH GRANT OPTION;"


@pytest.mark.parametrize("first", ["grant", "copy"])
def test_a_copy_with_the_profile_written_out_is_of_the_same_population(
    make_engine: MakeEngine, first: str
) -> None:
    low, high = (read_catalog(LEVELS.format(level)) for level in (1, 2))
    engine = make_engine(LEVELS.format(1))
    push(engine, 0, 60)
    if first == "copy":
        engine.apply(pass_on(low, "u", WRITTEN_OUT.format("mine", 1, "u")))
    # the grant is the role's, the copy the user's own
    engine.remove(engine.register("u" if first == "grant" else Seat("u", roles=frozenset()), REPLAY))
    engine.apply(pass_on(high, "u", WRITTEN_OUT.format("mine", 2, "u")) if first == "grant" else high)
    assert refuse(engine, REPLAY).code == "ledger-population"
    engine.register("u", LIVE)


def test_a_copy_that_comes_back_by_a_friend_is_of_the_same_population(make_engine: MakeEngine) -> None:
    engine = make_engine(LEVELS.format(1))
    push(engine, 0, 60)
    engine.remove(engine.register("u", REPLAY))
    high = pass_on(read_catalog(LEVELS.format(2)), "u", WRITTEN_OUT.format("there", 2, "friend"))
    high = pass_on(high, "friend", WRITTEN_OUT.format("back", 2, "u"))
    found = find_population(Binder(high, high.users["u"]), high.grants["back"])
    assert [name for name, _ in found.values] == ["self.level"]
    theirs = find_population(Binder(high, high.users["friend"]), high.grants["there"])
    assert [name for name, _ in theirs.values] == ["u.self.level"]
    engine.apply(high)
    assert refuse(engine, REPLAY).code == "ledger-population"


def test_no_session_hides_what_a_copy_rests_on(make_engine: MakeEngine) -> None:
    engine = make_engine(LEVELS.format(1))
    push(engine, 0, 60)
    engine.remove(engine.register("u", REPLAY))
    engine.apply(pass_on(read_catalog(LEVELS.format(2)), "u", WRITTEN_OUT.format("mine", 2, "u")))
    assert refuse(engine, REPLAY, Seat("u", roles=frozenset())).code == "ledger-population"
    # whose sign-in gives the value of before
    again = engine.find(engine.register(Seat("u", profile=(("level", Literal(1, INT)),)), REPLAY))
    assert again is not None
    assert [each.grant for each in again.allowed.releases] == ["g"]


def test_what_moves_is_given_as_it_comes(make_engine: MakeEngine) -> None:
    engine = make_engine(BEFORE)
    push(engine, 0, 60)
    query = "SELECT COUNT(*) FROM S [RANGE 10 MINUTES]"
    assert refuse(engine, f"{query} START AT EARLIEST", "captain").code == "ledger-population"
    engine.remove(engine.register("captain", query))
    engine.register("captain", query)


def test_queries_that_run_go_on_through_a_change(make_engine: MakeEngine) -> None:
    """All of one user at once, and readers of a result: each in turn would stand against the others (R11)."""
    engine = make_engine(BEFORE)
    for name in ("a", "b"):
        engine.register("u", LIVE, name)
    engine.register("u", REPLAY, "c")
    for name in ("d", "e"):
        engine.register("reader", "SELECT s FROM R", name)
    push(engine, 0, 60)
    for at, text in enumerate((AFTER, BEFORE, AFTER)):
        assert engine.apply(read_catalog(text)) == {}
        assert {each.version for each in engine.running} == {at + 2}
        assert {len(each.allowed.releases) for each in engine.running if each.user == "u"} == {1}
        push(engine, 60 + at, 61 + at)
    engine.remove("a")
    engine.register("u", LIVE, "a")
    engine.register("reader", "SELECT s FROM R")


def test_queries_go_on_through_a_change_while_nobody_runs_them(make_engine: MakeEngine) -> None:
    engine = make_engine(BEFORE)
    for name in ("a", "b"):
        engine.register("u", LIVE, name)
    engine.register("reader", "SELECT s FROM R", "d")
    push(engine, 0, 60)
    again = make_engine(AFTER)
    assert sorted(each.handle for each in again.running) == ["a", "b", "d"]
    assert refuse(again, REPLAY).code == "ledger-population"
    push(again, 60, 70)
    for each in again.running:
        again.remove(each.handle)
    last = make_engine(AFTER)
    last.register("u", LIVE, "a")
    assert refuse(last, REPLAY).code == "ledger-population"


def test_queries_of_an_older_ledger_go_on(make_engine: MakeEngine, tmp_path: Path) -> None:
    engine = make_engine(BEFORE)
    push(engine, 0, 60)
    engine.register("u", REPLAY, "a")
    engine.register("reader", "SELECT s FROM R", "d")
    engine.stop()
    make_old(tmp_path)
    again = make_engine(BEFORE)
    assert sorted(each.handle for each in again.running) == ["a", "d"]
    assert {each.population for each in again.ledger.past("u")} == {population(BEFORE, "fleet")}
    # known to be the same: its query ran on unchanged
    again.register("u", REPLAY)
    again.apply(read_catalog(AFTER))
    assert refuse(again, REPLAY).code == "ledger-population"


def test_what_an_older_ledger_says_was_given_is_of_an_unknown_population(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    engine = make_engine(BEFORE)
    push(engine, 0, 60)
    for query in (REPLAY, STEADY):
        engine.remove(engine.register("u", query))
    engine.stop()
    make_old(tmp_path)
    again = make_engine(BEFORE)
    told = refuse(again, REPLAY)
    assert (told.code, bool(told.help)) == ("ledger-population", True)
    # nor under another grant: it may have told of any
    again.apply(read_catalog(BEFORE.replace("CREATE GRANT fleet", "CREATE GRANT moved")))
    assert refuse(again, REPLAY).code == "ledger-population"
    again.register("u", STEADY)
    again.register("u", LIVE)

"""Networks of shared operators: what is shared, where switches stand, queries that come and go (seed 003; R17, R18)."""

from __future__ import annotations

import json
from functools import partial
from itertools import permutations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sharing_world import make_plan
from sluicegate.errors import InvariantError
from sluicegate.graph.interpret import run
from sluicegate.graph.operators import Aggregate, Item, Node, Project
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.rewrite.sharing import idents
from sluicegate.rewrite.sharing.draw_svg import draw_network
from sluicegate.rewrite.sharing.model import Network, SwitchKind, check_network
from sluicegate.rewrite.sharing.optimize import add_query, build_network, find_signatures, remove_query
from sluicegate.rewrite.sharing.place_switches import find_live, find_running, place_switches
from sluicegate.rewrite.sharing.write_network import count_parts, network_json, write_network

WEARABLES = Path(__file__).resolve().parents[2] / "examples" / "wearables"
HIGH = "SELECT k, n FROM S WHERE n > 5"
HIGHER = "SELECT k FROM S WHERE n > 7 AND g = 'a'"
PAIRS = "SELECT S.k, m FROM S [RANGE 1 MINUTE], T [RANGE 1 MINUTE] WHERE S.k = T.k AND n > 5"
FEWER_PAIRS = "SELECT S.n FROM T [RANGE 1 MINUTE], S [RANGE 1 MINUTE] WHERE S.k = T.k AND n > 7 AND m < 3"
SUMS = "SELECT g, SUM(n) AS total FROM S [RANGE 1 MINUTE] WHERE n > 5 GROUP BY g"
QUERIES = {"high": HIGH, "higher": HIGHER, "pairs": PAIRS, "fewer": FEWER_PAIRS, "sums": SUMS}


def make_plans(*names: str) -> dict[str, AuthorizedPlan]:
    return {name: make_plan("ann", QUERIES[name]) for name in names or QUERIES}


def read_wearables() -> Catalog:
    return read_catalog(
        "\n".join((WEARABLES / f"{name}.sql").read_text(encoding="utf-8") for name in ("streams", "grants"))
    )


def paper_network() -> Network:
    """CQ1 and CQ2 of the paper's figure 1, with equal windows as its text says."""
    catalog = read_wearables()
    first, second = ((WEARABLES / f"cq{at}.query").read_text(encoding="utf-8") for at in (1, 2))
    first = first.replace("RANGE 5 min", "RANGE 10 min")
    return build_network({"Q1": make_plan("ann", first, catalog), "Q2": make_plan("ann", second, catalog)})


def texts(network: Network, idents: frozenset[str]) -> list[str]:
    shown = network_json(network, ())["operators"]
    return sorted(each["text"][0] for each in shown if each["id"] in idents)


def test_names_are_whole_digests_of_which_people_see_the_beginning() -> None:
    """What a name is made of is partly what users write: of a few digits one could make those of another's filter."""
    network = build_network(make_plans())
    assert {len(each.removeprefix("op-").removeprefix("in-")) for each in network.operators} == {64}
    shown = write_network(network, place_switches(network)) + draw_network(network, place_switches(network))
    assert all(each not in shown and each[:15] in shown for each in network.operators)
    assert idents.shorten(f"#~{'ab' * 32}.0 > 1") == f"#~{'ab' * 6}.0 > 1"
    columns = {item.field.qualifier for each in network.operators.values() for item in _items(each.node)}
    assert {len(each.lstrip("#~")) for each in columns if "~" in each} == {64}


def _items(node: Node) -> tuple[Item, ...]:
    return node.items if isinstance(node, Project) else node.group_by if isinstance(node, Aggregate) else ()


@pytest.mark.parametrize("together", [True, False])
def test_operators_that_differ_are_never_shared_under_one_name(
    monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """Should two digests ever meet, nobody gets the other's rows."""
    whole = idents.hash_text
    plans, other = make_plans("high", "sums"), make_plan("ann", "SELECT k FROM S WHERE n < 3")
    monkeypatch.setattr(idents, "hash_text", lambda text: whole(text[:2] if "select" in text else text))
    first = Network() if together else add_query(Network(), "other", other)
    make = (
        partial(build_network, plans | {"other": other})
        if together
        else partial(add_query, first, "sums", plans["sums"])
    )
    with pytest.raises(InvariantError, match="have one name"):
        make()


SHARED = [
    "σ Stream2.speed < 30",
    "σ time_of_day(Stream1.ts) > TIME '06:00:00' AND time_of_day(Stream1.ts) < TIME '19:00:00'",
    "⋈ Stream1.location = Stream2.location   [10 minutes / 1 minute; 10 minutes / 1 minute]",
]
OF_Q1 = ["π Stream1.heartRate, Stream1.streamid"]
OF_Q2 = [
    "π Stream1.heartRate, Stream1.streamid",
    "σ Stream2.speed < 0 AND time_of_day(Stream1.ts) > TIME '08:00:00'",
    "σ Stream3.screentime > 5",
    "⋈ Stream2.location = Stream3.location   [10 minutes / 1 minute; 10 minutes / 1 minute]",
]


def test_the_papers_two_queries_share_their_first_join() -> None:
    network = paper_network()
    check_network(network)
    found = {each.ident for each in network.operators.values() if not each.is_input}
    common = frozenset(each for each in found if network.operators[each].is_common)
    assert texts(network, common) == sorted(SHARED)
    assert texts(network, frozenset(found) - common) == sorted(OF_Q1 + OF_Q2)


@pytest.mark.parametrize("as_printed", [False, True])
def test_what_stops_in_the_papers_network_when_one_query_loses_everybody(as_printed: bool) -> None:
    network = paper_network()
    switches = place_switches(network, as_printed)
    every = find_running(network, switches, {"Q1", "Q2"})
    stopped = every - find_running(network, switches, {"Q1"})
    assert texts(network, stopped) == sorted(OF_Q2)
    assert (len(stopped), len(every)) == (4, 8)
    assert texts(network, every - find_running(network, switches, {"Q2"})) == OF_Q1


def test_the_papers_two_queries_apart_are_its_six_of_ten() -> None:
    network = paper_network()
    alone = {
        query: sum(
            not each.is_input for each in build_network({query: network.plan(query)}).operators.values()
        )
        for query in ("Q1", "Q2")
    }
    assert alone == {"Q1": 4, "Q2": 7}
    catalog = read_wearables()
    second = make_plan("ann", (WEARABLES / "cq2.query").read_text(encoding="utf-8"), catalog)
    assert count_parts(build_network({"Q2": second}), ())["operators"] == 6


def test_switches_of_the_papers_network() -> None:
    network = paper_network()
    printed = count_parts(network, place_switches(network, as_printed=True))
    assert [printed[f"{each.value}_switches"] for each in SwitchKind] == [1, 2, 2]
    whole = place_switches(network)
    assert {(each.kind, each.queries) for each in whole if each.kind is SwitchKind.INITIAL} == {
        (SwitchKind.INITIAL, frozenset({"Q1", "Q2"})),
        (SwitchKind.INITIAL, frozenset({"Q2"})),
    }


def test_a_stronger_filter_stands_on_the_weaker_one_and_so_does_a_join() -> None:
    network = build_network(make_plans())
    check_network(network)
    shown = [each["text"][0] for each in network_json(network, ())["operators"]]
    assert shown.count("σ S.n > 5") == 1
    assert "σ S.g = 'a' AND S.n > 7" in shown
    assert "σ S.n > 7 AND T.m < 3" in shown
    assert sum(each.startswith("⋈") for each in shown) == 1


def test_filters_that_say_the_same_in_other_words_are_one_operator() -> None:
    plans = {
        "a": make_plan("ann", "SELECT k FROM S WHERE n > 5"),
        "b": make_plan("ann", "SELECT k FROM S WHERE n >= 6"),
    }
    network = build_network(plans)
    check_network(network)
    assert sum(text.startswith("σ") for text in texts(network, frozenset(network.operators))) == 1


@pytest.mark.parametrize("order", list(permutations(("high", "higher", "pairs", "sums"))))
def test_a_network_built_at_once_does_not_depend_on_the_order(order: tuple[str, ...]) -> None:
    plans = make_plans(*order)
    assert find_signatures(build_network(plans)) == find_signatures(
        build_network(dict(sorted(plans.items())))
    )


@pytest.mark.parametrize("order", list(permutations(("high", "pairs", "sums"))))
def test_equal_parts_are_found_in_whichever_order_queries_come(order: tuple[str, ...]) -> None:
    network = Network()
    for name in order:
        network = add_query(network, name, make_plans(name)[name])
        check_network(network)
    assert find_signatures(network) == find_signatures(build_network(make_plans(*order)))


def test_who_comes_and_goes_leaves_the_others_as_they_were() -> None:
    before = build_network(make_plans("high", "pairs"))
    more = add_query(before, "fewer", make_plans("fewer")["fewer"])
    for ident, each in before.operators.items():
        assert more.operators[ident].node is each.node
        assert more.operators[ident].inputs == each.inputs
    assert remove_query(more, "fewer") == before
    check_network(remove_query(more, "high"))
    assert remove_query(remove_query(before, "high"), "pairs") == Network()


def test_a_weaker_filter_that_comes_later_stands_by_itself() -> None:
    """To put it below would change an operator that runs."""
    network = add_query(Network(), "higher", make_plans("higher")["higher"])
    network = add_query(network, "high", make_plans("high")["high"])
    assert texts(network, network.find_part("higher")) == sorted(["S", "σ S.g = 'a' AND S.n > 7", "π S.k"])


def test_a_query_is_there_once_and_only_what_is_there_goes() -> None:
    network = build_network(make_plans("high"))
    with pytest.raises(InvariantError, match="`high` is in the network"):
        add_query(network, "high", make_plans("high")["high"])
    with pytest.raises(InvariantError, match="`sums` is not in the network"):
        remove_query(network, "sums")


def test_nothing_runs_for_nobody() -> None:
    network = build_network(make_plans())
    switches = place_switches(network)
    names = sorted(network.outputs)
    for bits in range(1 << len(names)):
        opened = {name for at, name in enumerate(names) if bits >> at & 1}
        live = {each for each in find_live(network, opened) if not network.operators[each].is_input}
        assert find_running(network, switches, opened) == live


def test_algorithm_2_as_printed_lets_a_common_prefix_run_for_nobody() -> None:
    network = build_network(make_plans("high", "pairs", "sums"))
    printed = place_switches(network, as_printed=True)
    assert len(find_running(network, printed, ())) > 0
    assert find_running(network, place_switches(network), ()) == frozenset()


def test_equal_queries_share_everything_but_their_terminal_switch() -> None:
    plan = make_plans("pairs")["pairs"]
    network = build_network({"a": plan, "b": plan})
    kinds = [each.kind for each in place_switches(network)]
    assert kinds.count(SwitchKind.TERMINAL) == 2
    assert SwitchKind.IN_NETWORK not in kinds
    assert len(network.operators) == len(build_network({"a": plan}).operators)


def test_json_and_text_tell_the_network() -> None:
    network = paper_network()
    switches = place_switches(network)
    found = network_json(network, switches, {"Q1"})
    assert json.loads(json.dumps(found)) == found
    assert found["counts"]["common_prefix"] == 3
    assert sorted(
        each["text"][0] for each in found["operators"] if not each["runs"] and each["kind"] != "input"
    ) == sorted(OF_Q2)
    assert {each["queries"][0] for each in found["switches"] if not each["open"]} == {"Q2"}
    text = write_network(network, switches)
    assert text.count("common prefix") == 3
    assert "through a switch for Q2 (in-network)" in text


def test_the_picture_has_every_operator_and_switch_and_no_markup_of_others() -> None:
    plans = {"<script>alert(1)</script>": make_plan("ann", "SELECT k FROM S WHERE g = '<b>&\"'")}
    network = build_network(plans)
    switches = place_switches(network)
    root = ElementTree.fromstring(draw_network(network, switches, ()))
    tags = [each.tag.rpartition("}")[2] for each in root.iter()]
    assert not {"script", "b"} & set(tags)
    assert tags.count("rect") == len(network.operators) + len(network.outputs)
    assert tags.count("circle") == len(switches)
    assert tags.count("line") == len(network.edges)
    assert ElementTree.fromstring(draw_network(Network(), ())).tag.endswith("svg")


@pytest.mark.parametrize("field", ["queries", "inputs"])
def test_a_broken_network_is_found(field: str) -> None:
    from dataclasses import replace

    network = build_network(make_plans("pairs"))
    ident = next(each.ident for each in network.operators.values() if each.inputs)
    broken = replace(network.operators[ident], **{field: frozenset() if field == "queries" else ()})
    with pytest.raises(InvariantError):
        check_network(Network({**network.operators, ident: broken}, network.outputs))


def test_with_the_windows_of_the_papers_figure_only_filters_are_shared() -> None:
    catalog = read_wearables()
    texts_ = [(WEARABLES / f"cq{at}.query").read_text(encoding="utf-8") for at in (1, 2)]
    network = build_network({f"Q{at}": make_plan("ann", text, catalog) for at, text in enumerate(texts_, 1)})
    common = frozenset(
        ident for ident, each in network.operators.items() if each.is_common and not each.is_input
    )
    assert texts(network, common) == sorted(SHARED[:2])


def test_joins_of_streams_are_not_associative() -> None:
    """At 0, 9 and 18 seconds, in windows of 10: S and T pair, and their pair, which is T's age, with U."""
    windows = "[RANGE 10 SECONDS]"
    keys = "S.k = T.k AND T.k = U.k"
    data: dict[str, list[dict[str, object]]] = {
        "S": [{"ts": 0, "k": 1}],
        "T": [{"ts": 9_000_000, "k": 1}],
        "U": [{"ts": 18_000_000, "k": 1, "w": 5}],
    }
    for order, count in (("STU", 1), ("UTS", 0)):
        named = ", ".join(f"{each} {windows}" for each in order)
        plan = make_plan("ann", f"SELECT w FROM {named} WHERE {keys}")
        assert len(run(plan.root, data)) == count


def test_the_picture_in_the_docs_is_of_this_network() -> None:
    kept = WEARABLES.parents[1] / "docs" / "design" / "network.svg"
    network = paper_network()
    assert kept.read_text(encoding="utf-8") == draw_network(network, place_switches(network), {"Q1"})

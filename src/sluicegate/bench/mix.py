# Nothing in the texts made here comes from outside.
# ruff: noqa: S608
"""Seed 001's mix of query graphs (its Table 3): filter, map and aggregation boxes in seven combinations, over two streams.

A graph is three texts, like the paper's three files: a policy whose obligations are the graph, a request for just that, and
what one would write for Spark directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

COMPOSITION: Mapping[str, int] = {
    "FB": 160,
    "MB": 170,
    "AB": 130,
    "FB+MB": 124,
    "FB+AB": 254,
    "MB+AB": 290,
    "FB+MB+AB": 372,
}
ALPHA, RANKS = 0.223, 300
MIX_NOTES = [
    "the mix is the paper's: 160 filters, 170 maps, 130 aggregations, 124 filters with maps, 254 filters with aggregations, 290 maps with aggregations, 372 of all three, of 1,500; smaller runs have these parts of it",
    "the paper says that specifications were generated randomly to fit the streams' schemas, not from what: here a filter compares one of two attributes of a stream with a random number, a map is one of three lists of attributes, an aggregation one of two lists of functions over one of four time windows; windows of tuples, which the paper's examples have, are left out, for Spark has none to compare with",
    "the weather stream has the schema of the paper's Example 1; of the positions of personal devices, its other source, the paper gives none, and this one is made up",
    "a policy has a role of its own; where there are more requests than policies, the further ones are of other users with the role and ask for less: a filter more, or windows twice as long",
]
_TIMES = ((30, 30), (60, 30), (60, 60), (120, 60))
"""Sizes and steps of windows, seconds."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream and what graphs over it are made of."""

    name: str
    time: str
    attributes: Mapping[str, str]
    compared: tuple[str, ...]
    maps: tuple[tuple[str, ...], ...]
    functions: tuple[tuple[tuple[str, str], ...], ...]


WEATHER = Feed(
    "weather",
    "samplingtime",
    {
        "samplingtime": "TIMESTAMP",
        "temperature": "DOUBLE",
        "humidity": "DOUBLE",
        "solarradiation": "DOUBLE",
        "rainrate": "DOUBLE",
        "windspeed": "DOUBLE",
        "winddirection": "DOUBLE",
        "barometer": "DOUBLE",
    },
    ("rainrate", "windspeed"),
    (
        ("samplingtime", "rainrate", "windspeed"),
        ("samplingtime", "temperature", "humidity", "rainrate", "windspeed"),
        ("samplingtime", "rainrate", "windspeed", "winddirection", "barometer"),
    ),
    (
        (("LAST", "samplingtime"), ("AVG", "rainrate"), ("MAX", "windspeed")),
        (("MIN", "rainrate"), ("MAX", "rainrate")),
    ),
)
POSITIONS = Feed(
    "positions",
    "ts",
    {"ts": "TIMESTAMP", "device": "STRING", "lat": "DOUBLE", "lon": "DOUBLE", "speed": "DOUBLE"},
    ("speed", "lat"),
    (("ts", "speed", "lat"), ("ts", "device", "speed", "lat"), ("ts", "lat", "lon", "speed")),
    ((("AVG", "speed"), ("MAX", "speed")), (("LAST", "lat"), ("COUNT", "speed"))),
)
FEEDS = (WEATHER, POSITIONS)


@dataclass(frozen=True, slots=True)
class Graph:
    """A filter, a map, an aggregation, each of which may be missing; `window` is (size, step) in seconds."""

    kind: str
    feed: Feed
    filter: tuple[str, float] | None
    shown: tuple[str, ...]
    functions: tuple[tuple[str, str], ...] = ()
    window: tuple[int, int] | None = None

    @property
    def condition(self) -> str:
        return "" if self.filter is None else f" WHERE {self.filter[0]} > {self.filter[1]!r}"

    def write_grant(self, name: str, role: str) -> str:
        """The graph as a policy."""
        if self.window is None:
            return f"CREATE GRANT {name} READ ({', '.join(self.shown)}) ON {self.feed.name}{self.condition} TO {role};"
        size, step = self.window
        calls = ", ".join(f"{function}({attribute})" for function, attribute in self.functions)
        return (
            f"CREATE GRANT {name} AGGREGATE ({calls}) ON {self.feed.name}{self.condition}"
            f" WINDOW AT LEAST '{size} seconds' STEP AT LEAST '{step} seconds' TO {role};"
        )

    def write_query(self) -> str:
        """The graph as a request; a map below an aggregation is a query inside a query."""
        if self.window is None:
            return f"SELECT {', '.join(self.shown)} FROM {self.feed.name}{self.condition}"
        size, step = self.window
        window = f"[RANGE {size} SECONDS SLIDE {step} SECONDS]"
        if "MB" not in self.kind:
            calls = ", ".join(f"{function}({attribute})" for function, attribute in self.functions)
            return f"SELECT {calls} FROM {self.feed.name} {window}{self.condition}"
        calls = ", ".join(f"{function}(m.{attribute})" for function, attribute in self.functions)
        inner = f"SELECT {', '.join(self.shown)} FROM {self.feed.name}{self.condition}"
        return f"SELECT {calls} FROM ({inner}) AS m {window}"

    def write_direct(self, view: str) -> str:
        """The graph as Spark takes it, over a view that has a watermark."""
        if self.window is None:
            return f"SELECT {', '.join(self.shown)} FROM {view}{self.condition}"
        size, step = self.window
        calls = ", ".join(_write_call(each, self.feed.time, at) for at, each in enumerate(self.functions))
        return (
            f"SELECT window.start AS window_start, window.end AS window_end, {calls} FROM {view}{self.condition}"
            f" GROUP BY window({self.feed.time}, '{size} seconds', '{step} seconds')"
        )

    def narrow(self, rng: Random) -> Graph:
        """A request of less: the paper's customised query."""
        if self.window is not None:
            return replace(self, window=(2 * self.window[0], 2 * self.window[1]))
        attribute, least = self.filter or (
            next(each for each in self.feed.compared if each in self.shown),
            0.0,
        )
        return replace(self, filter=(attribute, round(least + rng.uniform(0.5, 5.0), 3)))


def _write_call(call: tuple[str, str], time: str, at: int) -> str:
    function, attribute = call
    text = f"max_by({attribute}, {time})" if function == "LAST" else f"{function.lower()}({attribute})"
    return f"{text} AS o{at}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a user; its credentials are those that the policy of that number wants."""

    user: str
    policy: int
    graph: Graph

    @property
    def query(self) -> str:
        return self.graph.write_query()


@dataclass(frozen=True, slots=True)
class Mix:
    """Policies and the unique requests that match them, in the order in which they are made."""

    policies: tuple[Graph, ...]
    requests: tuple[Asked, ...]

    def write_catalog(self) -> str:
        """The streams, a role and a grant for each policy, and the users who ask."""
        roles = [f"CREATE ROLE r{at};" for at in range(len(self.policies))]
        users = [f"CREATE USER {each.user} ROLES (r{each.policy});" for each in self.requests]
        grants = [each.write_grant(f"g{at}", f"r{at}") for at, each in enumerate(self.policies)]
        return "\n".join([*map(write_stream, FEEDS), *roles, *users, *grants])


def make_mix(requests: int, policies: int, seed: int) -> Mix:
    """So many unique requests of so many policies; of each kind, in both, the paper's part."""
    rng = Random(seed)  # noqa: S311 — repeatable
    asked, made = share_out(requests), share_out(policies)
    graphs: list[Graph] = []
    pairs: list[tuple[int, Graph]] = []
    for kind in COMPOSITION:
        own = range(len(graphs), len(graphs) + max(made[kind], 1 if asked[kind] else 0))
        graphs += [_make_graph(kind, rng) for _ in own]
        for at in range(asked[kind]):
            policy = own[at % len(own)]
            pairs.append((policy, graphs[policy] if at < len(own) else graphs[policy].narrow(rng)))
    rng.shuffle(pairs)
    return Mix(
        tuple(graphs), tuple(Asked(f"u{at}", policy, graph) for at, (policy, graph) in enumerate(pairs))
    )


def share_out(total: int) -> dict[str, int]:
    """The composition's parts of a total; what rounding leaves goes to the largest remainders."""
    whole = sum(COMPOSITION.values())
    exact = {kind: total * part / whole for kind, part in COMPOSITION.items()}
    found = {kind: int(part) for kind, part in exact.items()}
    rest = sorted(exact, key=lambda kind: found[kind] - exact[kind])
    for kind in rest[: total - sum(found.values())]:
        found[kind] += 1
    return found


def draw_zipf(requests: Sequence[Asked], length: int, ranks: int, seed: int) -> list[Asked]:
    """A sequence in which the request of rank r is asked for with a chance that goes with r to the power of -0.223."""
    rng = Random(seed)  # noqa: S311 — repeatable
    ranked = rng.sample(list(requests), min(ranks, len(requests)))
    weights = list(accumulate(rank**-ALPHA for rank, _ in zip(count(1), ranked, strict=False)))
    return rng.choices(ranked, cum_weights=weights, k=length)


def _make_graph(kind: str, rng: Random) -> Graph:
    feed = rng.choice(FEEDS)
    chosen = (rng.choice(feed.compared), round(rng.uniform(0.0, 40.0), 3)) if "FB" in kind else None
    shown = rng.choice(feed.maps) if "MB" in kind else tuple(feed.attributes)
    if "AB" not in kind:
        return Graph(kind, feed, chosen, shown)
    functions = rng.choice(feed.functions)
    # each list of attributes has what the functions need
    return Graph(kind, feed, chosen, shown, functions, rng.choice(_TIMES))


def write_stream(feed: Feed) -> str:
    columns = ", ".join(f"{name} {of}" for name, of in feed.attributes.items())
    return f"CREATE STREAM {feed.name} ({columns}) TIMESTAMP BY {feed.time} WATERMARK '1 second';"


def make_table(feed: Feed, begin: int, rows: int, seed: int) -> pa.Table:
    """Tuples, one a second of event time from `begin` (microseconds) on."""
    import pyarrow as pa

    rng = Random(seed)  # noqa: S311 — repeatable
    columns = {name: [_make_value(of, rng) for _ in range(rows)] for name, of in feed.attributes.items()}
    times = [begin + at * 1_000_000 for at in range(rows)]
    return pa.table({**columns, feed.time: pa.array(times, pa.timestamp("us", "UTC"))})


def _make_value(of: str, rng: Random) -> object:
    return f"d{rng.randrange(20)}" if of == "STRING" else round(rng.uniform(0.0, 60.0), 3)

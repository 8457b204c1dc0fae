"""What `bench xacml` found of requests, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from sluicegate.bench.sample import Row, describe
from sluicegate.bench.served import Taken
from sluicegate.bench.service_tables import trips
from sluicegate.runtime.stages import STAGES


@dataclass
class Requests:
    """Samples in the order in which they were taken."""

    grants_fresh: list[Taken] = field(default_factory=list)
    grants_again: list[Taken] = field(default_factory=list)
    fresh: list[Taken] = field(default_factory=list)
    again: list[Taken] = field(default_factory=list)
    proxy_fresh: list[Taken] = field(default_factory=list)
    proxy_again: list[Taken] = field(default_factory=list)
    zipf_fresh: list[Taken] = field(default_factory=list)
    zipf_proxy: list[Taken] = field(default_factory=list)
    zipf_hits: list[bool] = field(default_factory=list)
    loaded_first: list[float] = field(default_factory=list)
    loaded_last: list[float] = field(default_factory=list)

    def list_samples(self) -> dict[str, dict[str, list[float]]]:
        """Milliseconds, for the plots."""
        return {
            "unique": {
                "grants": _list(self.grants_fresh),
                "XACML": _list(self.fresh),
                "XACML, known": _list(self.again),
                "through the proxy": _list(self.proxy_fresh),
                "through the proxy, known": _list(self.proxy_again),
            },
            "zipf": {
                "nothing kept": _list(self.zipf_fresh),
                "through the proxy": _list(self.zipf_proxy),
            },
        }


def _list(taken: Sequence[Taken]) -> list[float]:
    return [round(each.round_trip * 1000, 3) for each in taken]


def describe_requests(found: Requests) -> dict[str, object]:
    return {
        "loading_over_http": [
            {"policies": "none before", **describe(found.loaded_first)},
            {"policies": "all of the mix before", **describe(found.loaded_last)},
        ],
        "unique": _describe_unique(found),
        "stages": _describe_stages(found.fresh),
        "zipf": _describe_zipf(found),
        "zipf_gains": _describe_gains(found),
        "ratios": _compare(found),
    }


def _describe_unique(found: Requests) -> list[Row]:
    ways = [
        ("grants, fresh", found.grants_fresh),
        ("grants, known", found.grants_again),
        ("XACML, fresh", found.fresh),
        ("XACML, known", found.again),
        ("XACML through the proxy, fresh", found.proxy_fresh),
        ("XACML through the proxy, known", found.proxy_again),
    ]
    return [{"way": name, **describe(trips(taken))} for name, taken in ways]


def _describe_stages(taken: Sequence[Taken]) -> list[Row]:
    rows: list[Row] = [
        {"stage": name, **describe([each.stages.get(name, 0.0) for each in taken])} for name in STAGES
    ]
    return [*rows, {"stage": "transport", **describe([each.transport for each in taken])}]


def _describe_zipf(found: Requests) -> list[Row]:
    pairs = list(zip(found.zipf_proxy, found.zipf_hits, strict=True))
    ways: list[tuple[str, Sequence[float]]] = [
        ("nothing kept", trips(found.zipf_fresh)),
        ("through the proxy, all requests", trips(found.zipf_proxy)),
        ("through the proxy, asked for before", [each.round_trip for each, hit in pairs if hit]),
        ("through the proxy, for the first time", [each.round_trip for each, hit in pairs if not hit]),
    ]
    return [{"way": name, **describe(times)} for name, times in ways if times]


def _describe_gains(found: Requests) -> Row:
    """The paper: over 100 % better for nearly 40 % of the requests, at least 10 % for the others."""
    fresh, kept = trips(found.zipf_fresh), trips(found.zipf_proxy)
    gains = [one / other - 1 for one, other in zip(fresh, kept, strict=True)]
    return {
        "requests": len(gains),
        "asked for before": round(sum(found.zipf_hits) / len(gains), 3),
        "over 100 % better": round(sum(each > 1.0 for each in gains) / len(gains), 3),
        "at least 10 % better": round(sum(each >= 0.1 for each in gains) / len(gains), 3),
        "sum of times, of nothing kept": round(sum(kept) / sum(fresh), 3),
    }


def _compare(found: Requests) -> list[Row]:
    pairs = [
        ("XACML / grants, fresh", trips(found.fresh), trips(found.grants_fresh)),
        ("XACML, fresh / known", trips(found.fresh), trips(found.again)),
        ("through the proxy / straight, fresh", trips(found.proxy_fresh), trips(found.fresh)),
        ("through the proxy, fresh / known", trips(found.proxy_fresh), trips(found.proxy_again)),
        ("loading one more, all before / none before", found.loaded_last, found.loaded_first),
    ]
    return [{"ratio": name, "p50": round(median(one) / median(other), 2)} for name, one, other in pairs]

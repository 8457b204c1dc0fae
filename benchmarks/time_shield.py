"""How fast the shield decides, alone: a million elements of one partition, by the share of punctuations and their patterns.

Punctuations lie there as objects, tuples as Arrow columns; reading them from a feed is not in the time. Prints JSON, the
median of the runs in elements a second.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa

from sluicegate.expr.types import INT, TIMESTAMP
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import Anything, Constant, DataDescription, Pattern, Range, Restriction
from sluicegate.runtime.shield.partition import Elements, new_partition, take_elements
from sluicegate.runtime.shield.prune import Limits

OBJECTS = 110_000
ROLES = tuple(Restriction("frbac", Constant(role)) for role in ("Doctor", "Nurse", "Cardiologist"))


def make_stream(order_any: bool) -> Stream:
    attributes = (("ts", TIMESTAMP), ("k", INT), ("x", INT))
    return Stream("S", attributes, "ts", 1_000, "owner", punctuated_by="k", order_any=order_any)


def make_elements(count: int, ratio: int, form: str, seed: int, begin: int = 0) -> Elements:
    """A punctuation, then `ratio` tuples that name it, and so on; each policy is of one punctuation."""
    pick = np.random.default_rng(seed)
    segments = count // (ratio + 1)
    keys = pick.integers(0, OBJECTS, segments)
    every = Anything()
    patterns: list[Pattern] = [every] * segments
    if form == "constant":
        patterns = [Constant(key) for key in keys.tolist()]
    elif form == "range":
        patterns = [Range(key, key + 100, True) for key in keys.tolist()]
    sps = [
        Punctuation("owner", begin + at, 1, DataDescription(every, pattern, every), ROLES[at % 3])
        for at, pattern in enumerate(patterns)
    ]
    segment = np.repeat(np.arange(segments), ratio)
    ts = pa.array(begin + segment).cast(pa.timestamp("us", "UTC"))
    table = pa.table(
        {
            "ts": ts,
            "k": pa.array(keys[segment].astype(np.int32)),
            "_sender": pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(len(segment), np.int32)), ["owner"]
            ).cast(pa.string()),
            "_sp_ts": ts,
            "_sp_count": pa.array(np.ones(len(segment), np.int64)),
        }
    )
    first = np.arange(segments, dtype=np.int64) * (ratio + 1)
    tuple_at = (first[:, None] + np.arange(1, ratio + 1)).ravel()
    return Elements(sps, first, table, tuple_at, segments * (ratio + 1))


def time_one(count: int, ratio: int, form: str, order_any: bool, runs: int) -> dict[str, Any]:
    """A batch on what a first one left behind, so that there is a state to carry."""
    stream = make_stream(order_any)
    before, after = make_elements(count, ratio, form, 1), make_elements(count, ratio, form, 2, begin=count)
    outcome, state = take_elements(new_partition(stream), before, stream, Limits())
    seconds, released = [], 0
    gc.collect()
    for _ in range(runs):
        start = time.perf_counter()
        outcome, left = take_elements(state, after, stream, Limits())
        seconds.append(time.perf_counter() - start)
        released = int(np.count_nonzero(outcome.reason == 0))
    return {
        "pattern": form,
        "order": "any" if order_any else "arrival",
        "tuples_per_punctuation": ratio,
        "elements_per_second": round(after.count / statistics.median(seconds)),
        "slowest": round(after.count / max(seconds)),
        "released": released,
        "kept_punctuations": len(left.rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    for order_any in (False, True):
        for form in ("*", "constant", "range"):
            for ratio in (1, 10, 100):
                print(json.dumps(time_one(asked.elements, ratio, form, order_any, asked.runs)), flush=True)


if __name__ == "__main__":
    main()

"""Which placement of the shields a tick is worth: by the share of tuples that pass, told from a few of the newest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.graph.operators import POLICY, Join, Shield, Union, shields, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.runtime.network.placement import Placement
from sluicegate.targets.spark_shield import CLASS

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

OVER_FROM = 0.2
"""The share of tuples that pass on each side of a join, from which on it is better run before its shields: below it, what one
side loses spares the join more than judging every tuple costs. Measured (docs/measurements/shield.md)."""
SAMPLE = 20_000
"""Tuples that are looked at."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Of a punctuated stream: classes of some of its tuples, and the verdicts on all classes."""

    policies: Ints
    verdicts: pa.Table


def choose_placement(plan: AuthorizedPlan, look: Callable[[str], Seen]) -> Placement:
    """Above a join of shielded sides unless one of them loses most of its tuples. `look` tells of the stream that a source names.

    Past selections alone nothing is moved: that was about as fast when measured.
    """
    joined = [each for node in walk(plan.root) if isinstance(node, Join) for each in shields(node)]
    if not joined or any(isinstance(node, Union) for node in walk(plan.root)):
        return Placement.DOWN
    asked = {id(shield): shield for shield in joined}.values()
    least = min(find_share(each, look(each.input.stream)) for each in asked)
    return Placement.OVER if least >= OVER_FROM else Placement.DOWN


def find_share(shield: Shield, seen: Seen) -> float:
    """The share of tuples that pass, the mean over those who ask; 0 where none was seen."""
    asking = len(seen.verdicts["who"].unique()) if seen.verdicts.num_rows else 0
    if not len(seen.policies) or not asking:
        return 0.0
    names = [name for name, _ in shield.input.attributes]
    needed = [names.index(each) for each in shield.needed]
    columns: Mapping[int, Ints] = {at: np.asarray(seen.verdicts[f"m{at}"]) for at in range(len(names))}
    if needed:
        mask = np.bitwise_and.reduce([columns[at] for at in needed])
    else:
        told = [names.index(each) for each in shield.told] or list(range(len(names)))
        mask = np.bitwise_or.reduce([columns[at] for at in told])
    classes = np.asarray(seen.verdicts[CLASS])[mask != 0]
    highest = int(max(classes.max(initial=0), seen.policies.max()))
    passing = np.bincount(classes, minlength=highest + 1)
    return float(passing[seen.policies].mean()) / asking


def sample_policies(paths: Sequence[Path]) -> Ints:
    """The classes of the first tuples in the last of these folders of Parquet files."""
    import pyarrow.parquet as pq

    files = sorted(paths[-1].glob("*.parquet")) if paths else []
    for file in files[:1]:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(SAMPLE, columns=[POLICY]):
                return np.asarray(batch.column(0).drop_null(), np.int64)
    return np.empty(0, np.int64)

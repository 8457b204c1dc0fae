"""Security punctuations (D12) as values: patterns, the data they describe, the subjects they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sluicegate.expr.nodes import Scalar


@dataclass(frozen=True, slots=True)
class Nothing:
    """Matches no value."""


@dataclass(frozen=True, slots=True)
class Anything:
    """`*`, `ALL`."""


@dataclass(frozen=True, slots=True)
class Constant:
    value: Scalar


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`, both included when `closed`, neither when not."""

    low: Scalar
    high: Scalar
    closed: bool


@dataclass(frozen=True, slots=True)
class OneOf:
    values: tuple[Scalar, ...]


Pattern: TypeAlias = Nothing | Anything | Constant | Range | OneOf


@dataclass(frozen=True, slots=True)
class DataDescription:
    """Which streams, tuples and attributes; what is not described is everything."""

    streams: Pattern = Anything()
    tuples: Pattern = Anything()
    attributes: Pattern = Anything()


@dataclass(frozen=True, slots=True)
class Restriction:
    """A model prefix (`frbac`, `dac`, `user`) and the subjects as a pattern; an unknown model denies."""

    model: str
    subjects: Pattern
    grant_option: bool = False


@dataclass(frozen=True, slots=True)
class ServerPunctuation:
    """A punctuation that the server adds to a stream (`CREATE SP`): it may only narrow."""

    name: str
    stream: str
    ddp: DataDescription
    srp: Restriction
    positive: bool = True
    immutable: bool = False

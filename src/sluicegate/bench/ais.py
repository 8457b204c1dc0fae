"""How many sentences of AIS one core decodes, and how much of that is pyais' own work."""

from __future__ import annotations

import gc
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from sluicegate.bench.keep import keep_result
from sluicegate.bench.sample import Row, Work, describe, quantile
from sluicegate.expr.types import BIGINT, DOUBLE, STRING, TIMESTAMP
from sluicegate.language.check_ais import read_ais_options
from sluicegate.policy.model import Stream

NAME = "ais"
SUMMARY = "sentences of AIS a second on one core, to messages, tuples and the log; pyais' share of the time"
SEED = 8
NOTES = [
    "the sentences are those of `sluicegate ais simulate`: mostly position reports, each with a tag block, static data in two parts, many heard by two receivers",
    "seconds are those of a processor, so that what else the machine does does not count; a feed's waits for the disk do not either",
    "the works take turns; everything is one thread, so that a second is a second of one core",
    "pyais alone is its `decode` of each message's sentences, which reads them too, and neither tag blocks nor checksums",
]


@dataclass(frozen=True, slots=True)
class Size:
    ships: int
    seconds: float
    rounds: int


FULL, QUICK = Size(300, 600, 7), Size(20, 30, 1)


def run(json: bool, out: Path | None, quick: bool) -> dict[str, object]:
    """Measure; `out` is a folder for the result."""
    size = QUICK if quick else FULL
    text = _make_text(size)
    sentences = text.count(b"\n")
    with TemporaryDirectory() as folder:
        works = _make_works(text, Path(folder))
        times = _time_in_turns(works, size.rounds)
    median = {name: quantile(found, 0.5) for name, found in times.items()}
    result: dict[str, object] = {
        "bench": NAME,
        "quick": quick,
        "environment": _describe_environment(),
        "seed": SEED,
        "notes": NOTES,
        "sentences": sentences,
        "bytes": len(text),
        "works": [
            {"work": name, "sentences_per_second": round(sentences / median[name]), **describe(found)}
            for name, found in times.items()
        ],
        "pyais_share": _share(median),
    }
    if out is not None:
        keep_result(result, out)
    return result


def _time_in_turns(works: Mapping[str, Work], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each work in each round, after one that does not count."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(-1, rounds):
        for name, work in works.items():
            gc.collect()
            start = process_time()
            work()
            taken = process_time() - start
            if turn >= 0:
                times[name].append(taken)
    return times


def _make_text(size: Size) -> bytes:
    from sluicegate.testing.port_traffic.traffic import PortTraffic

    begin = datetime(2026, 1, 1, tzinfo=UTC)
    return b"".join(report.lines for report in PortTraffic(size.ships, SEED, begin).run(size.seconds))


def _share(median: Mapping[str, float]) -> Row:
    """Of the time that a message takes to become JSON, a tuple, or a row of the log; what was heard twice is decoded once."""
    return {
        "of_messages_to_json": round(median["pyais' classes alone"] / median["to JSON, as `ais decode`"], 3),
        "of_messages_to_tuples": round(
            median["pyais' classes alone, heard once"] / median["to tuples of `ships`"], 3
        ),
        "of_messages_to_the_log": round(
            median["pyais' classes alone, heard once"] / median["to the log, as a feed"], 3
        ),
    }


def _make_works(text: bytes, folder: Path) -> dict[str, Work]:
    from pyais import decode

    from sluicegate.runtime.ais.decode import decode_message, write_fields
    from sluicegate.runtime.ais.reader import Message

    messages = [each for each in _read(text) if isinstance(each, Message)]
    once = list({(each.payload, each.time): each for each in messages}.values())
    (folder / "port.nmea").write_bytes(text)
    numbers = iter(range(1 << 30))
    return {
        "to messages: lines, tags, checksums, parts": lambda: _read(text),
        "pyais' classes alone": lambda: [decode_message(each) for each in messages],
        "pyais' classes alone, heard once": lambda: [decode_message(each) for each in once],
        "pyais alone, its own reader": lambda: [decode(*each.raw.split(b"\n")) for each in messages],
        "to JSON, as `ais decode`": lambda: [
            write_fields(decode_message(each), each.time) for each in _read(text) if isinstance(each, Message)
        ],
        "to tuples of `ships`": _make_tuples(text, folder),
        "to the log, as a feed": lambda: _feed(folder, next(numbers)),
    }


def _read(text: bytes) -> list[Any]:
    from sluicegate.runtime.ais.lines import LineCutter
    from sluicegate.runtime.ais.reader import Reader

    cutter, reader = LineCutter(), Reader()
    return [found for number, line in cutter.feed(text) for found in reader.read(number, line)]


def _declare(folder: Path) -> Stream:
    attributes = (
        *(("SID", BIGINT), ("Name", STRING), ("Type", STRING)),
        *(("Long", DOUBLE), ("Lat", DOUBLE), ("T", TIMESTAMP)),
    )
    options = (("file", str(folder / "port.nmea")),)
    return Stream("AIS", attributes, "T", format="ais", options=options)


def _make_tuples(text: bytes, folder: Path) -> Callable[[], object]:
    from sluicegate.runtime.ais.decoder import Decoded, Decoder
    from sluicegate.runtime.ais.receivers import Piece
    from sluicegate.runtime.ais.state import State

    stream = _declare(folder)
    options = read_ais_options(stream)

    def work() -> Decoded:
        found = Decoded()
        Decoder(stream, options, State()).take(Piece(text), found)
        return found

    return work


def _feed(folder: Path, number: int) -> None:
    """Into a log of its own, on the disk."""
    from sluicegate.runtime.ais.feed import AisFeed
    from sluicegate.runtime.ais.receivers import Receivers

    feed = AisFeed(_declare(folder), folder / f"log-{number}", Receivers())
    feed.start()
    feed.wait()


def _describe_environment() -> Row:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **{name: version(name) for name in ("sluicegate", "pyais", "pyarrow")},
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load_at_start": None if load is None else round(load, 1),
    }

"""Tables with a key outside of live queries: read once from their database, or given as a frame."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Value
from sluicegate.language.database_options import DATABASES, read_database
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.frames import make_table
from sluicegate.runtime.inputs import DeadLetter, Loaded, Misfit
from sluicegate.runtime.table.databases import open_database
from sluicegate.runtime.table.fit_values import find_key, fit_values
from sluicegate.targets.duckdb_operators import ARRIVAL
from sluicegate.targets.spark_text import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOGGER = logging.getLogger(__name__)


def load_databases(streams: Mapping[str, Stream], wanted: Collection[str]) -> dict[str, Loaded]:
    """Of the streams that are wanted, the tables of databases, as they are now."""
    return {name: load_table(streams[name]) for name in sorted(wanted) if streams[name].format in DATABASES}


def load_table(stream: Stream) -> Loaded:
    """A table as it is now; a diagnostic where it cannot be read, without the driver's own words."""
    try:
        return _load(stream)
    except DiagnosticError:
        raise
    except Exception as error:
        _LOGGER.debug("the table of %s cannot be read", stream.name, exc_info=error)
        raise refuse_feed("table-unreachable", f"the table of `{stream.name}` cannot be read") from None


def _load(stream: Stream) -> Loaded:
    declared = read_database(stream)
    database = open_database(declared)
    found: dict[tuple[Value, ...], list[tuple[Value, ...]]] = {}
    unfit: set[tuple[Value, ...] | None] = set()
    dead, count = [], 0
    places = [[name for name, _ in stream.attributes].index(each) for each in stream.key]
    with database.reading():
        for piece in database.rows([name for name, _ in stream.attributes]):
            for each in piece:
                count += 1
                try:
                    row = fit_values(stream, each)
                    found.setdefault(tuple(row[at] for at in places), []).append(row)
                except Misfit as reason:
                    unfit.add(find_key(stream, each))
                    dead.append(DeadLetter(stream.name, count, str(reason)))
            if count > declared.rows:
                message = f"the table of `{stream.name}` has more than {declared.rows} rows"
                raise refuse_feed("table-too-large", message)
    database.close()
    # a key that two rows have says nothing about which is meant, whether or not both fit
    clash = [same for key, same in found.items() if len(same) > 1 or key in unfit]
    rows = [same[0] for key, same in found.items() if len(same) == 1 and key not in unfit]
    dead += [DeadLetter(stream.name, 0, "the key is not the row's alone") for same in clash for _ in same]
    return Loaded(make_table(stream, rows, range(len(rows))), tuple(dead))


def settle_frames(frames: Mapping[str, DataFrame], streams: Mapping[str, Stream]) -> dict[str, DataFrame]:
    """The frames, of tables with a key only the rows in force: the last to arrive under each key."""
    return {
        name: _settle(frame, streams[name].key)
        if name in streams and streams[name].key and not frame.isStreaming
        else frame
        for name, frame in frames.items()
    }


def _settle(frame: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Without arrival numbers nobody can tell which row is the last: where a key stands twice, none is."""
    over = f"PARTITION BY {', '.join(map(quote_name, key))}"
    rank = f"row_number() OVER ({over} ORDER BY {quote_name(ARRIVAL)} DESC)"
    mark = rank if ARRIVAL in frame.columns else f"count(*) OVER ({over})"
    known = " AND ".join(f"{quote_name(each)} IS NOT NULL" for each in key)
    kept = frame.where(known).selectExpr("*", f"{mark} AS _in_force").where("_in_force = 1")
    return kept.drop("_in_force")

# Every name and literal in the SQL made here comes out of `duckdb_text`, quoted.
# ruff: noqa: S608
"""Run an authorized plan on DuckDB over rows in memory; the second engine of the differential tests (I4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import duckdb

from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP, Type
from sluicegate.expr.values import conform
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME, AuthorizedPlan
from sluicegate.policy.model import Stream
from sluicegate.targets.duckdb import result_types, translate
from sluicegate.targets.duckdb_operators import ARRIVAL
from sluicegate.targets.duckdb_text import quote_name, sql_type
from sluicegate.testing.in_force import keep_in_force

Rows = Sequence[Mapping[str, Value]]


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    # small inputs: starting threads costs more than they save
    connection.execute("SET threads = 1")
    return connection


@cache
def _tables() -> dict[str, tuple[tuple[str, Type], ...]]:
    """What the connection's tables look like, by lower-case name."""
    return {}


def run_duckdb(
    plan: AuthorizedPlan,
    data: Mapping[str, Rows],
    catalog_streams: Mapping[str, Stream],
    env: Environment = EMPTY,
) -> list[dict[str, Value]]:
    """The plan's rows, in the form of `graph.rows.result_rows`; the order means nothing."""
    text = translate(plan, env)
    for name in sorted({source.stream for source in sources(plan.root)}):
        load_table(catalog_streams[name], keep_in_force(catalog_streams[name], data[name]))
    return [_result(plan, row) for row in _fetch(text, result_types(plan))]


def load_table(stream: Stream, rows: Rows) -> None:
    """Fill the stream's table with the rows, and nothing else."""
    table = quote_name(stream.name)
    known = _tables().get(stream.name.casefold())
    if known != stream.attributes:
        columns = [f"{quote_name(name)} {sql_type(of)}" for name, of in stream.attributes]
        columns.append(f"{quote_name(ARRIVAL)} BIGINT")
        _connection().execute(f"CREATE OR REPLACE TABLE {table} ({', '.join(columns)})")
        _tables()[stream.name.casefold()] = stream.attributes
    elif rows or known:
        _connection().execute(f"TRUNCATE {table}")
    if rows:
        _insert(table, stream.attributes, rows)


def _insert(table: str, attributes: Iterable[tuple[str, Type]], rows: Rows) -> None:
    """One list for each column: far cheaper than a statement for each row."""
    parts, lists = [], []
    for name, of in attributes:
        wanted = "BIGINT" if of == TIMESTAMP else sql_type(of)
        value = f"unnest(CAST(? AS {wanted}[]))"
        parts.append(f"make_timestamp({value})" if of == TIMESTAMP else value)
        lists.append([conform(row.get(name), of) for row in rows])
    parts.append("unnest(CAST(? AS BIGINT[]))")
    lists.append(list(range(len(rows))))
    _connection().execute(f"INSERT INTO {table} SELECT {', '.join(parts)}", lists)


def _fetch(text: str, types: Sequence[Type]) -> list[tuple[Any, ...]]:
    # microseconds, so that no driver's idea of a date or a zone comes between
    names = [f"c{at}" for at in range(max(len(types), 1))]
    shown = [f"epoch_us({name})" if of == TIMESTAMP else name for name, of in zip(names, types, strict=False)]
    query = f"SELECT {', '.join(shown or names)} FROM ({text}) AS r({', '.join(names)})"
    return _connection().execute(query).fetchall()


def _result(plan: AuthorizedPlan, row: tuple[Any, ...]) -> dict[str, Value]:
    values = iter(row)
    result: dict[str, Value] = {}
    for output in plan.outputs:
        value = next(values)
        if output.shown is None or next(values) is True:
            result[output.name] = value
    label = next(values) if plan.label is not None else None
    if label is not None:
        result[GRANT_NAME] = label
    start, end = (next(values), next(values)) if plan.windowed else (None, None)
    if start is not None:
        result |= {START_NAME: start, END_NAME: end}
    return result

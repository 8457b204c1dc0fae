"""Run a plan over input files and give rows as Python has them, for the library."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.expr.evaluate import Environment
from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import END_NAME, START_NAME, AuthorizedPlan
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.batch import check_served, run_files, run_tables
from sluicegate.runtime.inputs import load_input
from sluicegate.runtime.session import check_session
from sluicegate.runtime.table.load import load_databases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def run_inputs(
    plan: AuthorizedPlan | None,
    paths: Mapping[str, Path],
    env: Environment,
    catalog: Catalog,
    spark: SparkSession | None = None,
) -> list[dict[str, object]]:
    """The plan's rows over the files that it reads."""
    if plan is None:
        return []
    check_served(plan, catalog.streams)
    wanted = {each.stream for each in sources(plan.root)}
    tables = {
        name: load_input(catalog.streams[name], path).table for name, path in paths.items() if name in wanted
    }
    tables |= {
        name: each.table for name, each in load_databases(catalog.streams, wanted - set(paths)).items()
    }
    if spark is None:
        return _present(plan, run_files(plan, tables, env, catalog))
    check_session(spark)
    return _present(plan, run_tables(spark, plan, tables, env, catalog))


def _present(plan: AuthorizedPlan, rows: list[dict[str, Value]]) -> list[dict[str, object]]:
    times = {each.name for each in plan.outputs if each.column.of == TIMESTAMP}
    times |= {START_NAME, END_NAME} if plan.windowed else set()
    return [
        {name: to_moment(value) if name in times else value for name, value in row.items()} for row in rows
    ]


def to_moment(value: Value) -> datetime | None:
    """Microseconds since 1970 as a moment in UTC."""
    return _EPOCH + timedelta(microseconds=value) if isinstance(value, int) else None


def to_micros(moment: datetime) -> int:
    """A moment as microseconds since 1970; in UTC where it names no zone (D1)."""
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (known - _EPOCH) // timedelta(microseconds=1)

"""A PostgreSQL server for the tests of one process, and a schema of its own for each test."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

SERVICES = Path(__file__).parents[2] / "scripts" / "services.sh"
MAY_NOT_INSTALL = 3
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Servers that start and stop take their time."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("slow")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server to throw away; skips where there is none and none may be installed."""
    psycopg = pytest.importorskip("psycopg", reason="pip install 'sluicegate[postgres]'")
    # into pipes of its own the server would hold open what pytest waits for
    done = subprocess.run([SERVICES, "start"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == MAY_NOT_INSTALL:
        pytest.skip("PostgreSQL is not installed: sudo scripts/services.sh install")
    assert done.returncode == 0
    told = dict(line.split("=", 1) for line in done.stdout.splitlines())
    try:
        assert psycopg
        yield told["url"]
    finally:
        subprocess.run([SERVICES, "stop", told["folder"]], check=True)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """An empty place in the server."""
    import psycopg

    schema = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{postgres_server}&options={quote(f'-csearch_path={schema}')}"

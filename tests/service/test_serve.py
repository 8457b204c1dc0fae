"""`sluicegate serve` as people start it: a folder, a store that it fills, an administrator's first password."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from service.gateway_world import CATALOG, wait_until

pytestmark = pytest.mark.spark


@contextmanager
def _serve(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The address, and what it says on standard error, until it is told to end."""
    args = ["serve", str(folder / "catalog"), "--settings", str(folder / "gateway.toml"), "--port", "0"]
    command = [sys.executable, "-m", "sluicegate", *args]
    said: list[str] = []
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = threading.Thread(target=said.extend, args=(process.stderr,), daemon=True)
        errors.start()
        try:
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None, said
            yield found[0], said
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            errors.join(5)


def test_it_fills_an_empty_store_and_never_merges_afterwards(tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "all.sql").write_text(CATALOG)
    (tmp_path / "gateway.toml").write_text('administrators = ["owner"]\nstore = "s.db"\nstate = "state"\n')
    with _serve(tmp_path) as (url, said):
        path = tmp_path / "state" / "first-password-0"
        assert path.stat().st_mode & 0o777 == 0o600
        user, password = path.read_text().split()
        answer = httpx.post(f"{url}/v1/sign-in", json={"user": user, "password": password}, timeout=60)
        headers = {"authorization": f"Bearer {answer.json()['token']}"}
        assert httpx.get(f"{url}/v1/me", headers=headers).json()["is_admin"]
        assert httpx.get(f"{url}/readyz").json() == {"status": "ready", "version": 1}
    lines = [json.loads(line) for line in said if line.startswith("{")]
    assert {"/v1/sign-in", "/v1/me"} <= {line.get("route") for line in lines}
    assert password not in "".join(said)
    (tmp_path / "catalog" / "more.sql").write_text("CREATE ROLE Later;")
    with _serve(tmp_path) as (url, said):
        wait_until(lambda: httpx.get(f"{url}/readyz").status_code == 200)
        assert httpx.get(f"{url}/readyz").json()["version"] == 1
        assert any("the folder differs from the store by 1 statement" in line for line in said)

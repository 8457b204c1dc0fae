"""A browser for tests of the console, and pages that are signed in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from console.browsing import Tab
from sluicegate.service.routes.console import STATIC

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPTS = Path(__file__).parents[2] / "scripts"
MAY_NOT_INSTALL = 3
HERE = Path(__file__).parent
SOFTWARE_GL = ["--enable-unsafe-swiftshader"]
"""WebGL by the processor, and the page itself too, as on a machine without a graphics card."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("slow")


def miss(reason: str) -> None:
    """Skips, but not in CI: there everything can be had, and a console that was not tried is no success."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def chromium() -> str:
    if not (STATIC / "index.html").exists():
        miss("the console is not built: scripts/build_console.sh")
    done = subprocess.run([SCRIPTS / "browser.sh", "install"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        miss("there is no chromium: sudo scripts/browser.sh install")
    return done.stdout.strip()


@pytest.fixture(scope="module")
def launch(chromium: str) -> Iterator[Callable[..., Browser]]:
    """Starts browsers; with other arguments than software WebGL where a test wants that.

    Not for the session: while the driver is there no test of another file could run a loop of its own.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with playwright.sync_playwright() as driver:
        started: dict[tuple[str, ...], Any] = {}

        def start(*args: str) -> Any:
            if args not in started:
                flags = ["--no-sandbox", *(args or SOFTWARE_GL)]
                started[args] = driver.chromium.launch(executable_path=chromium, args=flags)
            return started[args]

        yield start
        for each in started.values():
            each.close()


@pytest.fixture
def open_tab(launch: Callable[..., Browser]) -> Iterator[Callable[..., Tab]]:
    """A tab of a browser of its own, signed in as a user; at the end nothing may have gone wrong in it."""
    opened: list[Tab] = []

    def start(url: str, user: str | None = None, *args: str, **more: Any) -> Tab:
        made = Tab(launch(*args).new_context(**{"viewport": {"width": 1280, "height": 900}, **more}), url)
        opened.append(made)
        if user is not None:
            made.sign_in(user)
        return made

    yield start
    for each in opened:
        each.close()

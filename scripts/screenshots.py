"""Make the README's pictures anew: `sluicegate demo`, three accounts, the same query of each.

    .venv/bin/python scripts/screenshots.py [FOLDER]

Needs the built console, and chromium (scripts/browser.sh install).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = {"harbour": "port-authority", "acme": "shipping-company", "vega": "captain"}
SIZE = {"width": 1180, "height": 912}
MOST_BYTES = 300_000
TRAILS_SECONDS = 10
"""How long the ships move before the picture is taken: one sees where they come from, and none that the captain left behind."""
SOFTWARE_GL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]


@contextmanager
def run_demo() -> Iterator[tuple[str, dict[str, str]]]:
    """A demo of its own: its address, and the passwords of this run."""
    command = [sys.executable, "-m", "sluicegate", "demo", "--port", "0", "--no-browser"]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)  # noqa: S603
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline()]
            while lines[-1] and not lines[-1].startswith("Ctrl-C"):
                lines.append(process.stdout.readline())
            found = re.search(r"serving on (http://\S+:\d+)", lines[0])
            if found is None:
                errors.seek(0)
                raise SystemExit(f"the demo did not start: {errors.read()}")
            rows = [line.split() for line in lines if line.split()[:1]]
            yield found[1], {row[0]: row[1] for row in rows if row[0] in PICTURES}
        finally:
            process.terminate()
            process.wait(timeout=60)


def open_ships(browser: Browser, url: str, user: str, password: str) -> Page:
    """The account's saved query, run; its map."""
    page = browser.new_page(viewport=SIZE, color_scheme="light")
    page.set_default_timeout(120_000)
    page.goto(url)
    page.fill("#user", user)
    page.fill("#password", password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("navigation").wait_for()
    page.evaluate("location.hash = '#/query'")
    page.get_by_role("button", name="Ships", exact=True).click()
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("() => Number(document.querySelector('.map-ships')?.dataset.count) > 1")
    return page


def take_picture(page: Page, path: Path) -> None:
    page.wait_for_timeout(TRAILS_SECONDS * 1_000)
    page.get_by_role("button", name="Show everything").click()
    page.wait_for_timeout(1_000)
    page.screenshot(path=path)
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes: more than a page should have to load")
    count = page.locator(".map-ships").get_attribute("data-count")
    print(f"{path}: {count} ships")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    chromium = subprocess.check_output([ROOT / "scripts" / "browser.sh", "find"], text=True).strip()  # noqa: S603
    with run_demo() as (url, passwords), sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", *SOFTWARE_GL])
        for user, name in PICTURES.items():
            page = open_ships(browser, url, user, passwords[user])
            take_picture(page, folder / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()

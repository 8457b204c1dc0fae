"""A tab that is looked at: what it says, whom it asks, and what goes wrong in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from service.gateway_world import PASSWORD

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Request

ROOT = Path(__file__).parents[2]
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"


class Tab:
    """One page in a context of its own, as another person's browser is."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context, self.url = context, url
        self.page = context.new_page()
        self.page.set_default_timeout(45_000)
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._hear)
        self.page.on("request", self._see)
        self.page.goto(url)

    def _hear(self, message: ConsoleMessage) -> None:
        # a refused request is told by the page itself; everything else that is an error is one of ours
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.wrong.append(message.text)

    def _see(self, request: Request) -> None:
        if request.url.startswith("http"):
            self.asked.append(request.url)

    def close(self) -> None:
        self.context.close()
        assert not self.wrong, self.wrong
        here = urlsplit(self.url).netloc
        assert {urlsplit(each).netloc for each in self.asked} == {here}

    def sign_in(self, user: str, password: str = PASSWORD) -> None:
        self.page.fill("#user", user)
        self.page.fill("#password", password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("navigation").wait_for()

    def go(self, place: str) -> None:
        self.page.evaluate("place => { location.hash = place }", f"#/{place}")

    def find(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def write(self, text: str) -> None:
        """Into the text editor of the page."""
        self.find(".cm-content").click()
        self.page.keyboard.press("Control+A")
        # over a selection the browser would put the old text's style on the new, which the policy refuses, and logs
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(text)

    def run_query(self, text: str) -> str:
        """Writes and runs it; the handle."""
        self.go("query")
        self.write(text)
        self.press("Run")
        self.page.wait_for_url("**/#/live/*")
        return self.page.url.rsplit("/", 1)[-1]

    def read_table(self, column: int = 0) -> list[str]:
        """A column of the result's rows in sight, as text."""
        cells = self.find(f".vbody .vrow > div:nth-child({column + 1})")
        return [text.strip() for text in cells.all_inner_texts()]

    def wait_until(self, script: str, argument: Any = None, seconds: float = 45.0) -> None:
        self.page.wait_for_function(script, arg=argument, timeout=seconds * 1000)

    def check_accessibility(self) -> list[str]:
        """Serious findings of axe on the page as it is."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("async () => JSON.stringify((await axe.run()).violations)")
        return [
            f"{each['id']}: {node['target']} {node['failureSummary']}"
            for each in json.loads(found)
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

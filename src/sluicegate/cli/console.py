"""What commands write to: UTF-8 whatever the locale, colour only where somebody looks, no control characters of others."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from dataclasses import dataclass
from typing import TextIO

from sluicegate.errors import Diagnostic, Severity

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_OWN_STYLES = r"\x1b\[(?:0|1|2|3[12346])m"
# Names and literals come from files and queries: none may move the cursor or turn text around on a terminal.
_CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
_UNSAFE = re.compile(_CONTROLS)
_UNSAFE_BUT_STYLES = re.compile(f"({_OWN_STYLES})|{_CONTROLS}")


@dataclass(frozen=True, slots=True)
class Console:
    """Standard output and error of one run of a command."""

    out: TextIO
    err: TextIO
    colour: bool = False

    def style(self, text: str, *styles: str) -> str:
        """The text in colours, where there are colours."""
        if not self.colour or not text:
            return text
        lead = "".join(f"\x1b[{_STYLES[each]}m" for each in styles)
        return f"{lead}{text}\x1b[0m"

    def write(self, text: str) -> None:
        """Text for people, on standard output."""
        self.out.write(self._clean(text) + "\n")

    def write_exact(self, text: str) -> None:
        """Text for another program, which must get it as it is."""
        self.out.write(text + "\n")

    def write_json(self, value: object) -> None:
        # ASCII, so that a quoted name cannot act on the terminal here either
        self.out.write(json.dumps(value, indent=2) + "\n")

    def complain(self, text: str) -> None:
        """Text for people, on standard error; without colour, which says nothing there that the words do not."""
        self.err.write(_UNSAFE.sub(_escape, text) + "\n")

    def render(self, diagnostic: Diagnostic) -> str:
        """As `Diagnostic.render`, its severity in colour."""
        word = diagnostic.severity.value
        colour = "red" if diagnostic.severity is Severity.ERROR else "yellow"
        first, *rest = diagnostic.render().split("\n")
        head = first.replace(f"{word}[", self.style(word, colour, "bold") + "[", 1)
        return "\n".join([head, *rest])

    def _clean(self, text: str) -> str:
        if not self.colour:
            return _UNSAFE.sub(_escape, text)
        return _UNSAFE_BUT_STYLES.sub(lambda found: found[1] or _escape(found), text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def open_console() -> Console:
    """Of this process. A name that is not text is shown escaped rather than being an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return Console(sys.stdout, sys.stderr, _wants_colour(sys.stdout))


def _wants_colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()

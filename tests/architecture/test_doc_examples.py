"""Every SQL example of the documentation can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from architecture.project import ROOT, walk_files
from sluicegate.language.parse_statements import parse_statement
from sluicegate.language.queries import parse_query

BLOCK = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _examples(page: Path) -> list[str]:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    texts = [re.sub(r"--[^\n]*", "", block) for block in blocks]
    return [part.strip() + ";" for text in texts for part in text.split(";") if part.strip()]


EXAMPLES = [
    pytest.param(text, id=f"{page.relative_to(ROOT)}:{number}")
    for page in walk_files(".md")
    for number, text in enumerate(_examples(page), 1)
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_example_can_be_read(text: str) -> None:
    if text.upper().startswith("SELECT"):
        parse_query(text)
    else:
        parse_statement(text)

"""Texts of punctuations that are read in pieces, by several threads, are read as in one piece."""

from __future__ import annotations

import pytest

from sluicegate.expr.types import INT, STRING, Type

pa = pytest.importorskip("pyarrow")


def _write(at: int, key: str) -> str:
    role = ("Doctor", "Nurse", "Clerk")[at * at % 3]
    ts = "2026-13-01T10:00:00" if at % 11 == 5 else f"2026-01-01T10:00:{at % 60:02d}"
    return f'{{"ddp": {{"tuples": {key}}}, "srp": ["{role}"], "ts": "{ts}", "sn": {1 + at % 4}}}'


@pytest.mark.parametrize("key", [INT, STRING], ids=str)
@pytest.mark.parametrize("count", [0, 1, 7, 50])
def test_pieces_are_put_together(key: Type, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from sluicegate.runtime.shield.templates import find_templates

    keys = ['"*"', *(str(at) if key == INT else f'"k{at}"' for at in range(5))]
    texts = pa.array([_write(at, keys[at % len(keys)]) for at in range(count)], pa.string())
    whole = find_templates(texts, key, 1 << 60)
    monkeypatch.setattr("sluicegate.runtime.shield.templates.PIECE", 3)
    cut = find_templates(texts, key, 1 << 60)

    def tell(found: object) -> list[tuple[object, ...]]:
        rests = found.rests  # type: ignore[attr-defined]  # of a module that needs Arrow
        return [(at, rests[number], *others) for at, number, *others in found.parts()]  # type: ignore[attr-defined]

    assert tell(cut) == tell(whole)
    assert len(cut.rests) == len(set(cut.rests))
    assert len(whole.at) >= count * 3 // 4

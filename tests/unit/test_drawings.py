"""Every query of the corpus as a drawing and back: the graph stays the same. What is wrong is told at its field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drawn_corpus import read_corpus
from sluicegate.language.draw_graph import draw_query
from sluicegate.language.drawings import write_drawing
from sluicegate.language.load import load_catalog
from sluicegate.language.resolve import read_query

ROOT = Path(__file__).parents[2]


def test_every_query_of_the_corpus_is_drawn_and_stays_itself() -> None:
    drawn = 0
    for label, query, catalog in read_corpus():
        drawing = draw_query(query)
        written = write_drawing(drawing, catalog)
        assert written.problems == (), (label, written.problems)
        again = read_query(written.text or "", catalog)
        found, wanted = ((each.root, each.united, each.start, each.on_result) for each in (again, query))
        assert found == wanted, label
        assert draw_query(again) == drawing, label
        drawn += 1
    assert drawn > 150


FIG_5: dict[str, Any] = {
    "nodes": [
        {"id": "a", "kind": "source", "stream": "AIS", "alias": "", "inputs": []},
        {"id": "r", "kind": "source", "stream": "Route", "alias": "", "inputs": []},
        {
            "id": "j",
            "kind": "join",
            "inputs": ["a", "r"],
            "predicate": "AIS.SID = Route.SID",
            "windows": [{"size": "1 hour", "step": "", "rows": False}, None],
        },
        {
            "id": "s",
            "kind": "select",
            "inputs": ["j"],
            "predicate": "next_leg = 'Los Angeles' AND free_load >= 10",
        },
        {
            "id": "p",
            "kind": "project",
            "inputs": ["s"],
            "items": [{"value": "AIS.SID", "name": ""}, {"value": "Long", "name": "x"}],
        },
    ],
    "united": False,
    "ending": "",
}


def _change(node: str, **parts: Any) -> dict[str, Any]:
    return {**FIG_5, "nodes": [{**each, **(parts if each["id"] == node else {})} for each in FIG_5["nodes"]]}


def test_a_drawing_becomes_the_text_of_a_query() -> None:
    written = write_drawing(FIG_5, load_catalog(ROOT / "examples" / "ships"))
    assert written.text == (
        "SELECT AIS.SID, AIS.Long AS x FROM AIS [RANGE 1 HOUR] JOIN Route ON AIS.SID = Route.SID "
        "WHERE Route.next_leg = 'Los Angeles' AND Route.free_load >= 10"
    )
    assert [each.name for each in written.nodes["p"].fields] == ["SID", "x"]


@pytest.mark.parametrize(
    ("drawing", "node", "field", "code"),
    [
        (_change("s", predicate="next_legg = 'x'"), "s", "predicate", "unknown-attribute"),
        (_change("s", predicate="free_load"), "s", "predicate", "not-a-condition"),
        (_change("s", predicate=""), "s", "predicate", "syntax"),
        (_change("s", inputs=[]), "s", "inputs", "drawing-inputs"),
        (_change("s", inputs=["p"]), "s", "inputs", "drawing-cycle"),
        (_change("s", kind="delete"), "s", "kind", "drawing-form"),
        (_change("j", inputs=["a", "a"]), "j", "predicate", "unknown-alias"),
        (_change("j", inputs=["a", "a"], predicate=""), "j", "windows.1.size", "join-window"),
        (_change("p", items=[{"value": "nope", "name": ""}]), "p", "items.0.value", "unknown-attribute"),
        (_change("p", items=[{"value": "1", "name": "x"}] * 2), "p", "items.1.name", "duplicate-output"),
        (_change("a", stream="Nowhere"), "a", "stream", "unknown-stream"),
        (_change("j", windows=[{"size": "soon", "step": ""}, None]), "j", "windows.0.size", "syntax"),
        (_change("p", inputs=["j"]), "", "", "drawing-root"),
        (_change("p", inputs=["nobody"]), "", "", "drawing-form"),
        ({"nodes": []}, "", "", "drawing-root"),
        ({"nodes": [{"id": "a", "inputs": ["b"]}]}, "", "", "drawing-form"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(
    drawing: dict[str, Any], node: str, field: str, code: str
) -> None:
    written = write_drawing(drawing, load_catalog(ROOT / "examples" / "ships"))
    assert written.text is None
    assert (node, field, code) in [(each.node, each.field, each.code) for each in written.problems]


def test_a_drawing_whose_text_would_be_huge_is_refused() -> None:
    first = {"id": "0", "kind": "source", "stream": "Route", "inputs": []}
    more = [{"id": str(at), "kind": "union", "inputs": [str(at - 1)] * 2} for at in range(1, 60)]
    written = write_drawing({"nodes": [first, *more]}, load_catalog(ROOT / "examples" / "ships"))
    assert [each.code for each in written.problems] == ["too-many-operators"]

"""Drawn queries: operators whose predicates, values and windows are texts, as an editor has them; and back to text.

A drawing is JSON: `nodes` (each with `id`, `kind`, `inputs` and the texts of its form), `united`, and `ending` (START AT,
ON RESULT). Every text goes through the same parser and resolver as a query's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.graph.operators import Node
from sluicegate.language.draw_nodes import DrawnProblem, NodeBuilder
from sluicegate.language.from_clause import MAX_DEPTH, MAX_OPERATORS
from sluicegate.language.graph_to_query import resolved_to_query
from sluicegate.language.lexing import check_text
from sluicegate.language.print_query import print_query
from sluicegate.language.resolve import ResolvedQuery
from sluicegate.policy.catalog import Catalog
from sluicegate.source import SourceText

MAX_ID = 1_000

DRAWING_CODES: dict[str, str] = {
    "drawing-cycle": "operators of a drawing feed each other in a circle",
    "drawing-form": "a part of a drawing is missing, or not of its type",
    "drawing-inputs": "an operator of a drawing has more or fewer inputs than it takes",
    "drawing-root": "a drawing ends in no operator, or in several",
    "drawing-text": "no text says what is drawn",
}


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a drawing: its text where nothing is wrong, the operators that could be made, and all problems."""

    text: str | None
    nodes: Mapping[str, Node]
    problems: tuple[DrawnProblem, ...]


def _order(drawn: Mapping[str, Mapping[str, Any]], builder: NodeBuilder) -> list[str]:
    """Inputs before what they feed; operators in a circle are told and left out."""
    try:
        return list(
            TopologicalSorter({number: each["inputs"] for number, each in drawn.items()}).static_order()
        )
    except CycleError as error:
        circle = set(error.args[1])
        for number in sorted(circle):
            builder.report(number, "inputs", "drawing-cycle", "operators feed each other in a circle")
        rest = {number: each for number, each in drawn.items() if number not in circle}
        kept = {number for number, each in rest.items() if not circle & set(each["inputs"])}
        return _order({number: rest[number] for number in kept}, builder) if kept == set(rest) else []


def _check_size(drawn: Mapping[str, Mapping[str, Any]], order: Sequence[str]) -> None:
    """As a text has it, where an operator that feeds two others stands twice."""
    sizes: dict[str, int] = {}
    depths: dict[str, int] = {}
    for number in order:
        below = drawn[number]["inputs"]
        sizes[number] = 1 + sum(sizes[each] for each in below)
        depths[number] = 1 + max((depths[each] for each in below), default=0)
    if max(sizes.values(), default=0) > MAX_OPERATORS:
        raise _refuse("too-many-operators", f"a query has at most {MAX_OPERATORS:,} operators")
    if max(depths.values(), default=0) > MAX_DEPTH:
        raise _refuse("too-deep", f"operators are nested more than {MAX_DEPTH} deep")


def _build(
    drawn: Mapping[str, Mapping[str, Any]], order: Sequence[str], builder: NodeBuilder
) -> dict[str, Node | None]:
    """The operator of each id; None where it, or something below it, is wrong."""
    made: dict[str, Node | None] = {}
    for number in order:
        entry = drawn[number]
        try:
            made[number] = builder.build(number, entry, [made[each] for each in entry["inputs"]])
        except DiagnosticError as error:
            builder.add(number, error.diagnostics)
            made[number] = None
        except InvariantError:
            message = "both sides have attributes of one name: give one of the sources another alias"
            builder.report(number, "inputs", "duplicate-alias", message)
            made[number] = None
    return made


def write_drawing(drawing: Mapping[str, Any], catalog: Catalog) -> Written:
    """The text of a drawing; its reader is to read that, and nothing else."""
    builder = NodeBuilder(catalog)
    made: dict[str, Node | None] = {}
    text: str | None = None
    try:
        drawn = _check_form(drawing)
        order = _order(drawn, builder)
        _check_size(drawn, order)
        made = _build(drawn, order, builder)
        root = None if builder.problems else _find_root(drawn, made)
        text = None if root is None or builder.problems else _write(root, drawing)
    except DiagnosticError as error:
        builder.add("", error.diagnostics)
    nodes = {number: node for number, node in made.items() if node is not None}
    return Written(text, nodes, tuple(builder.problems))


def _check_form(drawing: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    nodes = drawing.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise _refuse("drawing-root", "nothing is drawn yet", "put a stream on the canvas")
    if len(nodes) > MAX_OPERATORS:
        raise _refuse("too-many-operators", f"a query has at most {MAX_OPERATORS:,} operators")
    found: dict[str, Mapping[str, Any]] = {}
    for each in nodes:
        if not isinstance(each, Mapping) or not isinstance(each.get("id"), str) or each["id"] in found:
            raise _refuse("drawing-form", "every operator of a drawing has an id of its own")
        check_text(SourceText("id", each["id"]), limit=MAX_ID)
        found[each["id"]] = each
    for each in found.values():
        inputs = each.get("inputs")
        if not isinstance(inputs, list) or any(
            not isinstance(one, str) or one not in found for one in inputs
        ):
            raise _refuse("drawing-form", "an input of an operator is the id of another")
    return found


def _find_root(drawn: Mapping[str, Mapping[str, Any]], made: Mapping[str, Node | None]) -> Node | None:
    used = {number for each in drawn.values() for number in each["inputs"]}
    ends = [number for number in drawn if number not in used]
    if len(ends) != 1:
        told = "several operators feed nothing" if ends else "every operator feeds another"
        raise _refuse("drawing-root", f"{told}: a query has one end", "connect them, or delete what is left")
    return made[ends[0]]


def _write(root: Node, drawing: Mapping[str, Any]) -> str:
    resolved = ResolvedQuery(root, (), united=drawing.get("united") is True)
    try:
        text = print_query(resolved_to_query(resolved))
    except (TypeError, ValueError) as error:
        raise _refuse("drawing-text", f"no text says what is drawn: {error}") from None
    ending = drawing.get("ending", "")
    if not isinstance(ending, str):
        raise _refuse("drawing-form", "the ending of a drawing is a text")
    return f"{text} {ending.strip()}".strip()


def _refuse(code: str, message: str, help: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, None, help)])


def print_ending(resolved: ResolvedQuery) -> str:
    """START AT and ON RESULT, as a text that is kept beside the drawing."""
    whole = print_query(resolved_to_query(resolved))
    plain = resolved_to_query(ResolvedQuery(resolved.root, resolved.outputs, resolved.united))
    return whole[len(print_query(plain)) :].strip()


__all__ = ["DRAWING_CODES", "DrawnProblem", "Written", "print_ending", "write_drawing"]

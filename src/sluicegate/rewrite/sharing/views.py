"""Nodes of a plan as views of canonical graphs: a core, and what each of the node's columns is over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column, Expr, columns
from sluicegate.graph.operators import WINDOW_END, WINDOW_START, Field, Item, Node, Project, field_of
from sluicegate.rewrite.sharing.idents import Idents, hash_text
from sluicegate.rewrite.sharing.terms import write_key

BOUNDS = (WINDOW_START, WINDOW_END)


@dataclass(frozen=True, slots=True)
class View:
    """A node of a plan as a canonical core, and what each of the node's columns is over the core's."""

    core: Node
    exprs: Mapping[Column, Expr]


def put_projection(
    view: View,
    used: Iterable[Column],
    idents: Idents,
    in_order: bool = False,
    renamed: frozenset[Column] = frozenset(),
) -> tuple[Node, dict[Column, Column]]:
    """The view's columns as fields, and their names; bare ones keep theirs, unless they are to be `renamed`.

    In order: one field for each, by position.
    """
    wanted = list(dict.fromkeys(used))
    exprs = {each: view.exprs[each] for each in wanted}
    if not in_order:
        wanted.sort(key=lambda each: (each in BOUNDS, write_key(exprs[each])))
    items: list[Item] = []
    names: dict[Column, Column] = {}
    for column in wanted:
        taken = {each.field for each in items}
        field = _name(column, exprs[column], taken, idents.digest(view.core), column in renamed)
        items.append(Item(field, exprs[column]))
        names[column] = field.column
    if _changes_nothing(items, view.core, in_order):
        return view.core, names
    return Project(view.core, tuple(items)), names


def _name(column: Column, expr: Expr, taken: set[Field], below: str, renamed: bool) -> Field:
    if column in BOUNDS:
        return field_of(column)
    if isinstance(expr, Column) and expr not in BOUNDS and field_of(expr) not in taken and not renamed:
        return field_of(expr)
    mark = f"{'#' if column.hidden else ''}~{hash_text(below + write_key(expr))}"
    number = sum(each.qualifier == mark for each in taken)
    return Field(mark, str(number), expr.type)


def _changes_nothing(items: Sequence[Item], core: Node, in_order: bool) -> bool:
    if any(each.expr != each.field.column for each in items):
        return False
    fields = [each.field for each in items]
    return fields == list(core.fields) if in_order else set(fields) == set(core.fields)


def take_bare(view: View, column: Column) -> Column:
    """The core's column that a column is."""
    found = view.exprs[column]
    if not isinstance(found, Column):
        raise InvariantError(f"`{column.name}` parts rows and is computed")
    return found


def with_bare(view: View, wanted: Iterable[Column], idents: Idents) -> View:
    """With columns that part rows as fields of the core."""
    if all(isinstance(view.exprs[each], Column) for each in wanted):
        return view
    core, names = put_projection(view, view.exprs, idents)
    return View(core, dict(names))


def without_bounds(view: View, idents: Idents) -> View:
    """A join ends the bounds of windows: what is computed from them is computed below it."""
    kept = {column: expr for column, expr in view.exprs.items() if column not in BOUNDS}
    if not any(bound in columns(expr) for expr in kept.values() for bound in BOUNDS):
        return View(view.core, kept)
    core, names = put_projection(View(view.core, kept), kept, idents)
    return View(core, dict(names))

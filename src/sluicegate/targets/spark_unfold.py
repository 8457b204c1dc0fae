# Every name in the SQL made here comes out of `spark_text`, quoted, or is a number.
# ruff: noqa: S608
"""Unfolding in Spark's SQL: rows once for every case in which they are shown; the meaning is that of `graph.interpret`."""

from __future__ import annotations

from collections import Counter

from sluicegate.expr.nodes import Column, Not
from sluicegate.graph.operators import Node, Unfold, shown_field, walk
from sluicegate.targets.spark_operators import ORDER, TIME, Context
from sluicegate.targets.spark_text import list_items

CASE_NUMBER = "h_case"


def write_unfold(node: Unfold, ctx: Context) -> str:
    """Every row meets the number of every case; a case's condition decides whether they stay together.

    Not by `explode`: Spark 4.3 notes the columns that it need not keep by position, and when a filter moves below the
    generator later, the positions no longer fit: the query then fails for a column that is gone.
    """
    if _find_flag(node) is not None:
        return _write_flagged(node, ctx)
    items = [_show(each.column, node, ctx) for each in node.input.fields]
    items += [ctx.name(_is_shown(column, node), shown_field(column).column) for column in node.variable]
    items += ctx.carry(node, f"i.{TIME}", f"concat(i.{ORDER}, array(CAST({_number(node)} AS BIGINT)))")
    writer = ctx.writer(node)
    read = ctx.read(node.input, node)
    truths = [writer.write_truth(case.when) for case in node.cases]
    if len(truths) <= 1:
        return f"SELECT {list_items(items)} FROM {read} WHERE {(truths or ['FALSE'])[0]}"
    if _is_choice(node):
        chosen = f"CASE WHEN {truths[0]} THEN 0 WHEN {truths[1]} THEN 1 END AS {CASE_NUMBER}"
        rows = f"(SELECT i.*, {chosen} FROM {read}) AS i"
        return f"SELECT {list_items(items)} FROM {rows} WHERE i.{CASE_NUMBER} IS NOT NULL"
    whens = " ".join(f"WHEN {number} THEN {truth}" for number, truth in enumerate(truths))
    cases = f"(VALUES {', '.join(f'({number})' for number in range(len(truths)))}) AS n({CASE_NUMBER})"
    where = f"CASE {_number(node)} {whens} END"
    return f"SELECT /*+ BROADCAST(n) */ {list_items(items)} FROM {read} CROSS JOIN {cases} WHERE {where}"


def find_absorbed(root: Node) -> frozenset[int]:
    """The nodes, by `id`, that are written in the step of the only one that reads them.

    A query over a shielded stream unfolds once for each attribute that may be hidden, and each step more is more for Spark
    to analyse in every tick.
    """
    readers = Counter(id(each) for node in walk(root) for each in node.inputs)
    return frozenset(
        id(node.input)
        for node in walk(root)
        if isinstance(node, Unfold)
        and isinstance(node.input, Unfold)
        and readers[id(node.input)] == 1
        and _find_flag(node.input) is not None
        and (flag := _find_flag(node)) is not None
        and flag in (each.column for each in node.input.input.fields)
        and flag not in _list_variable(node.input)
    )


def _find_flag(node: Unfold) -> Column | None:
    """The column that chooses between the two cases, where nothing has to be computed for that."""
    first = node.cases[0].when if _is_choice(node) else None
    return first if isinstance(first, Column) and first not in node.variable else None


def _list_variable(node: Node) -> set[Column]:
    """What a node, and those below that may be written with it, change."""
    found: set[Column] = set()
    while isinstance(node, Unfold):
        found.update(node.variable)
        node = node.input
    return found


def _write_flagged(node: Unfold, ctx: Context) -> str:
    """With what it absorbed: every row once, or not at all where a flag is unknown."""
    chain = [node]
    while id(chain[0].input) not in ctx.steps and isinstance(chain[0].input, Unfold):
        chain.insert(0, chain[0].input)
    below = chain[0].input
    values = {each.column: f"i.{ctx.names.of(each.column)}" for each in below.fields}
    order, where = f"i.{ORDER}", []
    for each in chain:
        flag = values[_flag_of(each)]
        for column in each.variable:
            shown = _choose(flag, *(column in case.shown for case in each.cases))
            values[column] = f"CASE WHEN {shown} THEN {values[column]} END"
            values[shown_field(column).column] = shown
        order = f"concat({order}, array(CASE WHEN {flag} THEN 0L ELSE 1L END))"
        where.append(f"{flag} IS NOT NULL")
    items = [ctx.name(values[each.column], each.column) for each in node.fields]
    items += ctx.carry(node, f"i.{TIME}", order)
    return f"SELECT {list_items(items)} FROM {ctx.read(below, chain[0])} WHERE {' AND '.join(where)}"


def _flag_of(node: Unfold) -> Column:
    flag = _find_flag(node)
    if flag is None:
        raise TypeError("an unfolding without a flag was absorbed")
    return flag


def _choose(flag: str, first: bool, second: bool) -> str:
    """Whether something that is shown in these cases is shown."""
    if first and second:
        return "TRUE"
    return flag if first else f"(NOT {flag})" if second else "FALSE"


def _is_choice(node: Unfold) -> bool:
    """Whether no row is shown twice, since one case is that the other is not: then rows need not be multiplied."""
    whens = [case.when for case in node.cases]
    return len(whens) == 2 and whens[1] == Not(whens[0])


def _number(node: Unfold) -> str:
    if len(node.cases) <= 1:
        return "0"
    return f"i.{CASE_NUMBER}" if _is_choice(node) else f"n.{CASE_NUMBER}"


def _is_shown(column: Column, node: Unfold) -> str:
    numbers = [str(number) for number, case in enumerate(node.cases) if column in case.shown]
    return f"({_number(node)} IN ({', '.join(numbers)}))" if numbers else "FALSE"


def _show(column: Column, node: Unfold, ctx: Context) -> str:
    value = f"i.{ctx.names.of(column)}"
    if column not in node.variable:
        return value
    return ctx.name(f"CASE WHEN {_is_shown(column, node)} THEN {value} END", column)
